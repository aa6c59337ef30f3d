package oauth

import (
	"fmt"
	"net/http"
	"testing"
)

func TestBearerChallenge(t *testing.T) {
	for _, c := range []struct {
		fields []string
		want   string
	}{
		{nil, "{false  [] }"},
		{[]string{`Bearer`}, "{true  [] }"},
		{[]string{`bearer error="invalid_token", scope="a b"`}, "{true invalid_token [a b] }"},
		{[]string{`Bearer resource_metadata="https://h/x", scope=a`}, "{true  [a] https://h/x}"},
		{[]string{`Basic realm="x, Bearer scope=\"no\"", Bearer scope="yes"`}, "{true  [yes] }"},
		{[]string{`Negotiate YWJj==, Bearer scope="yes"`}, "{true  [yes] }"},
		{[]string{`Negotiate, Basic realm=x`, `Bearer SCOPE = "yes"`}, "{true  [yes] }"},
		{[]string{`Bearer scope="first", scope="second"`}, "{true  [first] }"},
		{[]string{`Bearer error="a\"b"`}, `{true a"b [] }`},
		{[]string{`Bearer scope="a", error="cut off`}, "{true  [a] }"},
		{[]string{`Bearer scope="a" error="b"`}, "{true b [a] }"},
		{[]string{`, ,Bearer scope="a",,`}, "{true  [a] }"},
		{[]string{`="x"`, `"Bearer"`}, "{false  [] }"},
		{[]string{`XBearer scope="a"`}, "{false  [] }"},
	} {
		got := fmt.Sprint(bearerChallenge(http.Header{"Www-Authenticate": c.fields}))
		if got != c.want {
			t.Errorf("bearerChallenge(%q): got %s, want %s", c.fields, got, c.want)
		}
	}
}

// FuzzBearerChallenge finds no value that makes the scanner hang or panic, and
// none that makes more out of it than there is.
func FuzzBearerChallenge(f *testing.F) {
	f.Add(`Basic realm="x", Bearer scope="a b", error=x`)
	f.Add(`Negotiate YWJj==, Bearer`)
	f.Fuzz(func(t *testing.T, value string) {
		c := bearerChallenge(http.Header{"Www-Authenticate": {value}})
		size := len(c.err) + len(c.metadata)
		for _, scope := range c.scopes {
			size += len(scope)
		}
		if size > len(value) {
			t.Errorf("bearerChallenge(%q): got %d bytes out of %d", value, size, len(value))
		}
	})
}
