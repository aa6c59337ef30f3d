package auth

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxKeysBytes is how long the answer with the keys may be.
	maxKeysBytes = 512 << 10
	// maxKeys is how many keys are kept.
	maxKeys = 64
	// minRSABits is the size below which RSA keys are left out (RFC 7518
	// section 3.3).
	minRSABits = 2048
)

// errKeys means that the issuer's keys are not to be had.
var errKeys = errors.New("auth: the keys of the issuer are not available")

// keySet keeps the keys of an issuer. Its lock is not held while they are
// fetched, which one goroutine at a time does.
type keySet struct {
	url                           string
	client                        *http.Client
	now                           func() time.Time
	maxAge, maxStale, minInterval time.Duration

	mu       sync.Mutex // guards what follows
	keys     []jose.JSONWebKey
	fetched  time.Time     // when keys came
	tried    time.Time     // when the last fetch began
	fetching chan struct{} // closed at the end of the fetch that runs, or nil
	failed   error         // of the last fetch
}

func newKeySet(o *JWTOptions) *keySet {
	s := &keySet{
		url: o.JWKSURL, client: o.HTTPClient, now: o.Now,
		maxAge:      orDuration(o.KeysMaxAge, 10*time.Minute),
		maxStale:    orDuration(o.KeysMaxStale, time.Hour),
		minInterval: orDuration(o.KeysMinInterval, 10*time.Second),
	}
	s.maxStale = max(s.maxStale, s.maxAge)
	if s.client == nil {
		s.client = &http.Client{
			Timeout:       fetchTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return s
}

// fetchTimeout is how long one fetch may take, whatever the client allows.
const fetchTimeout = 10 * time.Second

func orDuration(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// find gives the keys that a token's header may mean. Where there is none, it
// waits for a fetch, if one is due or runs.
func (s *keySet) find(ctx context.Context, id, algorithm string) ([]jose.JSONWebKey, error) {
	s.mu.Lock()
	found := s.current(id, algorithm)
	if s.now().Sub(s.fetched) >= s.maxAge || len(found) == 0 {
		s.startFetch(ctx)
	}
	running := s.fetching
	s.mu.Unlock()
	if len(found) > 0 {
		return found, nil
	}
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errKeys, ctx.Err())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if found = s.current(id, algorithm); len(found) > 0 {
		return found, nil
	}
	if s.now().Sub(s.fetched) >= s.maxStale {
		return nil, fmt.Errorf("%w: %w", errKeys, s.failed)
	}
	return nil, refusal("signed with an unknown key")
}

// current gives the keys that fit, unless they are too old. s.mu is held.
func (s *keySet) current(id, algorithm string) []jose.JSONWebKey {
	if s.now().Sub(s.fetched) >= s.maxStale {
		return nil
	}
	var found []jose.JSONWebKey
	for _, key := range s.keys {
		if (id == "" || key.KeyID == id) && (key.Algorithm == "" || key.Algorithm == algorithm) {
			found = append(found, key)
		}
	}
	if id == "" && len(found) > 1 {
		return nil // a token that does not say which key must not make us try all
	}
	return found
}

// startFetch starts a fetch, unless one runs or was begun a short time ago.
// s.mu is held.
func (s *keySet) startFetch(ctx context.Context) {
	now := s.now()
	if s.fetching != nil || !s.tried.IsZero() && now.Sub(s.tried) < s.minInterval {
		return
	}
	s.tried = now
	done := make(chan struct{})
	s.fetching = done
	go func() {
		// Others wait for it as well, so it does not end with the request.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
		defer cancel()
		keys, err := s.fetch(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil {
			s.keys, s.fetched = keys, now
		}
		s.fetching, s.failed = nil, err
		close(done)
	}()
}

// fetch gets the keys.
func (s *keySet) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, application/jwk-set+json")
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxKeysBytes+1))
	if err != nil {
		return nil, err
	}
	switch {
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("status %d", res.StatusCode)
	case len(body) > maxKeysBytes:
		return nil, fmt.Errorf("more than %d bytes", maxKeysBytes)
	}
	return parseKeys(body)
}

// parseKeys reads a JWK set (RFC 7517 section 5). Keys that are not understood,
// not public, not for signatures, or weak are left out.
func parseKeys(body []byte) ([]jose.JSONWebKey, error) {
	var set map[string]json.RawMessage // whose names are compared exactly
	var list []json.RawMessage
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(set["keys"], &list); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range list {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) != nil || !key.Valid() || !key.IsPublic() || key.Use == "enc" {
			continue
		}
		if public, ok := key.Key.(*rsa.PublicKey); ok && public.N.BitLen() < minRSABits {
			continue
		}
		if keys = append(keys, key); len(keys) == maxKeys {
			break
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no usable key")
	}
	return keys, nil
}
