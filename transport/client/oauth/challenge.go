package oauth

import (
	"net/http"
	"slices"
	"strings"
)

// challenge is what a server says in WWW-Authenticate about the scheme Bearer.
type challenge struct {
	found    bool
	err      string   // error
	scopes   []string // scope
	metadata string   // resource_metadata
}

// maxChallenge is how much of WWW-Authenticate is looked at.
const maxChallenge = 16 << 10

// bearerChallenge finds the first challenge for Bearer (RFC 9110 section
// 11.6.1). There may be several fields, and several challenges in each.
func bearerChallenge(header http.Header) challenge {
	for _, value := range header.Values("WWW-Authenticate") {
		if len(value) > maxChallenge {
			continue
		}
		scanner := challengeScanner{rest: value}
		for scheme, params := range scanner.all {
			if strings.EqualFold(scheme, "Bearer") {
				return challenge{
					found: true, err: params["error"], metadata: params["resource_metadata"],
					scopes: strings.Fields(params["scope"]),
				}
			}
		}
	}
	return challenge{}
}

// challengeScanner reads a field value.
type challengeScanner struct{ rest string }

// all gives each scheme with its parameters, whose names are in lower case. It
// stops where the value is malformed, with what is known of the challenge.
func (s *challengeScanner) all(yield func(scheme string, params map[string]string) bool) {
	for s.skip(", \t"); s.rest != ""; s.skip(", \t") {
		scheme := s.token()
		if scheme == "" {
			return
		}
		params, ok := s.params()
		if !yield(scheme, params) || !ok {
			return
		}
	}
}

// params reads the parameters of a challenge, up to the next scheme. It reports
// false where they are malformed.
func (s *challengeScanner) params() (params map[string]string, ok bool) {
	params = map[string]string{}
	for {
		s.skip(", \t")
		before := s.rest
		name := strings.ToLower(s.token())
		if name == "" {
			return params, s.rest == ""
		}
		s.skip(" \t")
		if !strings.HasPrefix(s.rest, "=") { // the next scheme
			s.rest = before
			return params, true
		}
		s.rest = s.rest[1:]
		s.skip(" \t")
		value, ok := s.value()
		if !ok {
			return params, false
		}
		if _, twice := params[name]; !twice {
			params[name] = value
		}
	}
}

// value reads a token or a quoted-string.
func (s *challengeScanner) value() (string, bool) {
	if !strings.HasPrefix(s.rest, `"`) {
		text := s.token()
		s.skip("=") // the end of a token68
		return text, true
	}
	var text []byte
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			s.rest = s.rest[i+1:]
			return string(text), true
		case c == '\\' && i+1 < len(s.rest):
			i++
			text = append(text, s.rest[i])
		default:
			text = append(text, c)
		}
	}
	return "", false
}

// token reads what is no delimiter, which is more than a token may have: a
// token68 is one as well, but for the "=" at its end.
func (s *challengeScanner) token() string {
	end := strings.IndexAny(s.rest, ", \t=\"")
	if end < 0 {
		end = len(s.rest)
	}
	text := s.rest[:end]
	s.rest = s.rest[end:]
	return text
}

func (s *challengeScanner) skip(set string) { s.rest = strings.TrimLeft(s.rest, set) }

// union gives the scopes of several lists, each once, in order.
func union(lists ...[]string) []string {
	var all []string
	for _, scope := range slices.Concat(lists...) {
		if !slices.Contains(all, scope) {
			all = append(all, scope)
		}
	}
	return all
}
