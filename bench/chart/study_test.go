package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder writes files, by name without .json, and gives their folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDrawStudy checks that the picture of a study is well-formed, and says of each figure what it is.
func TestDrawStudy(t *testing.T) {
	const conditions = `"started":"2026-11-30T21:00:00Z","conditions":{"sessions":5000,"host":{"go":"go1.26"}}`
	dir := folder(t, map[string]string{
		"mcpengine-direct":  `{` + conditions + `,"capacity":{"rate_rps":8000,"objectives":["p(99)<50ms"],"failed_at":9000,"limited_by":"generator"}}`,
		"mcpengine-gateway": `{` + conditions + `,"capacity":{"rate_rps":1500,"objectives":["p(99)<50ms"],"failed_at":1515,"limited_by":"server","confirmed":true}}`,
		"mcp-go-direct":     `{` + conditions + `,"capacity":{"rate_rps":4000,"objectives":["p(99)<50ms"],"failed_at":5000,"limited_by":"server","timed_out":true}}`,
		"mcp-go-gateway":    `{` + conditions + `,"capacity":{"rate_rps":0,"objectives":["p(99)<50ms"],"limited_by":"generator"}}`,
		"go-sdk-direct":     `{` + conditions + `,"capacity":{"rate_rps":3000,"objectives":["p(99)<50ms"],"failed_at":3030,"limited_by":"server"}}`,
		"mcpengine-direct-plan-10": `{"plan":{"target":{"users":5000},"think_s":10,
			"needs":[{"what":"rate","wanted":499.1},{"what":"sessions","wanted":5000}]}}`,
	})
	var out bytes.Buffer
	if err := drawFiles(&out, []string{dir}); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, out.String())
		}
	}
	for _, want := range []string{
		">at least 8,000/s<", ">1,500/s<", ">at least 4,000/s<", ">3,000/s, not confirmed<", "p(99)&lt;50ms", "5,000 sessions", "go1.26, 2026-11-30",
		"5,000 agents, a call each 10 s: 499/s",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("picture: got no %q in\n%s", want, out.String())
		}
	}
	if got := strings.Count(out.String(), ">no valid result<"); got != 2 {
		t.Errorf("picture: got %d figures without a valid result, want 2 (a search that found nothing, a missing file)", got)
	}
}

func TestDrawStudyRefuses(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"an empty folder":   nil,
		"no capacity":       {"mcp-go-direct": `{"verdict":{"valid":true}}`},
		"a file of no JSON": {"mcp-go-direct": `{`},
	} {
		if err := drawFiles(io.Discard, []string{folder(t, files)}); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
	if err := drawFiles(io.Discard, []string{filepath.Join(t.TempDir(), "missing")}); err == nil {
		t.Error("a missing file: got nil, want an error")
	}
}
