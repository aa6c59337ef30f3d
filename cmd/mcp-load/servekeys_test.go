package main

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadKeys is the table of files of keys.
func TestReadKeys(t *testing.T) {
	key := bytes.Repeat([]byte{0xfb}, 32) // whose base64 has + and / in it
	standard, url := base64.StdEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key)
	for _, c := range []struct {
		name, text string
		keys       int
		err        string
	}{
		{"one", standard + "\n", 1, ""},
		{"without a line end", standard, 1, ""},
		{"URL alphabet", url, 1, ""},
		{"several", "# rotated in May\n" + standard + "\r\n\n" + url + "\n", 2, ""},
		{"none", "# nothing\n", 0, "there is no key in it"},
		{"short", standard + "\nAAAA\n", 0, "line 2 is not 32 bytes"},
		{"no base64", "hunter2", 0, "line 1 is not 32 bytes"},
		{"too many", strings.Repeat(standard+"\n", 17), 0, "more than 16 keys"},
	} {
		path := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := readKeys("--session-keys", path)
		if len(keys) != c.keys || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %d keys, %v; want %d, %q", c.name, len(keys), err, c.keys, c.err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error repeats the file: %v", c.name, err)
		}
		for _, got := range keys {
			if !bytes.Equal(got, key) {
				t.Errorf("%s: got key %x, want %x", c.name, got, key)
			}
		}
	}
	if _, err := readKeys("--session-keys", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there: got no error")
	}
}
