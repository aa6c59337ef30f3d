package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/mcpengine/mcpengine/engine"
)

// Policy says who calls, what they may see, and what needs their word first. Patterns are those of path.Match, and hold
// for names as the gateway offers them, and for URIs.
//
//	{"callers": [
//	  {"name": "analyst", "token_env": "ANALYST_TOKEN", "see": ["docs_*"], "confirm": ["docs_delete*"]}
//	]}
type Policy struct {
	Callers []Caller `json:"callers"`

	byToken map[[sha256.Size]byte]*Caller
	byName  map[string]*Caller
}

// Caller is one who may use the gateway.
type Caller struct {
	Name     string   `json:"name"`
	TokenEnv string   `json:"token_env"` // environment variable that holds the bearer token
	See      []string `json:"see"`       // what is in lists and may be used; nothing where it is empty
	Confirm  []string `json:"confirm"`   // what the user has to allow each time
}

// readPolicy reads a policy from a file, and the tokens from the environment.
func readPolicy(file string) (*Policy, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p := &Policy{}
	decoder := json.NewDecoder(f)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := p.index(os.Getenv); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// index checks the policy and makes it ready to be asked.
func (p *Policy) index(getenv func(string) string) error {
	p.byToken, p.byName = map[[sha256.Size]byte]*Caller{}, map[string]*Caller{}
	if len(p.Callers) == 0 {
		return errors.New("no callers")
	}
	for i := range p.Callers {
		c := &p.Callers[i]
		token := getenv(c.TokenEnv)
		digest := sha256.Sum256([]byte(token))
		switch {
		case c.Name == "" || p.byName[c.Name] != nil:
			return fmt.Errorf("caller %d: the name %q is empty or taken", i+1, c.Name)
		case token == "":
			return fmt.Errorf("caller %s: the environment variable %q holds no token", c.Name, c.TokenEnv)
		case p.byToken[digest] != nil:
			return fmt.Errorf("caller %s: another caller has the same token", c.Name)
		}
		for _, pattern := range append(c.See[:len(c.See):len(c.See)], c.Confirm...) {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("caller %s: pattern %q: %w", c.Name, pattern, err)
			}
		}
		p.byName[c.Name], p.byToken[digest] = c, c
	}
	return nil
}

// callerKey is where the context holds the caller's name.
type callerKey struct{}

// callerOf gives the caller's name, for engine.Options.Principal.
func callerOf(ctx context.Context) string {
	name, _ := ctx.Value(callerKey{}).(string)
	return name
}

// authenticate lets requests with a known token through, and tells who sent them. Tokens are found by their digests, so
// the time that it takes tells nothing about them. For OAuth, put package transport/auth here instead.
func (p *Policy) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		caller := p.byToken[sha256.Sum256([]byte(token))]
		if !strings.EqualFold(scheme, "Bearer") || caller == nil {
			w.Header().Set("WWW-Authenticate", `Bearer realm="gateway"`)
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization") // it ends here
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller.Name)))
	})
}

// visible is engine.Options.Visible.
func (p *Policy) visible(principal string, _ engine.Kind, name string) bool {
	c := p.byName[principal]
	return c != nil && matches(c.See, name)
}

// confirm is one of engine.Options.Before: it has the user allow what the policy wants allowed. A client that cannot ask
// its user may not call it.
func (p *Policy) confirm(ctx context.Context, call *engine.Call) error {
	c := p.byName[callerOf(ctx)]
	if c == nil || !matches(c.Confirm, call.Name()) {
		return nil
	}
	answer, err := call.Elicit(ctx, &engine.ElicitRequest{
		Key:     "confirm",
		Message: fmt.Sprintf("Allow the call of %s?", call.Name()),
		Schema:  json.RawMessage(`{"type":"object","properties":{}}`),
	})
	if missing := (*engine.CapabilityError)(nil); errors.As(err, &missing) {
		return fmt.Errorf("%s has to be confirmed by the user, whom this client cannot ask", call.Name())
	}
	if err != nil {
		return err
	}
	if answer.Action != "accept" {
		return fmt.Errorf("the user did not allow %s", call.Name())
	}
	return nil
}

// matches reports whether one of the patterns matches. The patterns have been checked.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if p == "*" {
			return true // also where the name holds slashes
		}
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
