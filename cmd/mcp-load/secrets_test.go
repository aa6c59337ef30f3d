package main

import (
	"slices"
	"testing"
)

func TestWithoutSecrets(t *testing.T) {
	for _, c := range []struct{ argv, want []string }{
		{[]string{"mcp-load", "run", "-H", "Authorization: Bearer s3cret", "URL"}, []string{"mcp-load", "run", "-H", "Authorization: ***", "URL"}},
		{[]string{"mcp-load", "run", "--header=X-Api-Key: s3cret"}, []string{"mcp-load", "run", "--header=X-Api-Key: ***"}},
		{[]string{"mcp-load", "run", "-HCookie: s3cret", "-r", "5"}, []string{"mcp-load", "run", "-HCookie: ***", "-r", "5"}},
		{[]string{"mcp-load", "run", "-H"}, []string{"mcp-load", "run", "-H"}},
		{[]string{"mcp-load", "run", "--", "server", "-H", "x: y"}, []string{"mcp-load", "run", "--", "server", "-H", "x: y"}},
	} {
		before := slices.Clone(c.argv)
		if got := withoutSecrets(c.argv); !slices.Equal(got, c.want) {
			t.Errorf("withoutSecrets(%q) = %q, want %q", c.argv, got, c.want)
		}
		if !slices.Equal(before, c.argv) {
			t.Errorf("withoutSecrets changed its argument to %q", c.argv)
		}
	}
}
