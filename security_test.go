package mcpengine_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// TestSecurityNamesTests checks that every test which SECURITY.md names is there.
func TestSecurityNamesTests(t *testing.T) {
	page, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	var sources bytes.Buffer
	for _, file := range goFiles(t) {
		text, err := os.ReadFile(file.name)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`").FindAllSubmatch(page, -1)
	for _, name := range named {
		if !bytes.Contains(sources.Bytes(), []byte("func "+string(name[1])+"(")) {
			t.Errorf("SECURITY.md names %s, which is nowhere", name[1])
		}
	}
	if len(named) < 50 {
		t.Errorf("tests named in SECURITY.md: got %d, want all that hold a promise", len(named))
	}
}
