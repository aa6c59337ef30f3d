package main

import (
	"bufio"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestResumeOverRestart breaks the connection of a call, kills the server when
// the call has ended, and resumes the stream at the next one: with the id of the
// last event that came, the client gets the rest and the answer.
func TestResumeOverRestart(t *testing.T) {
	args := []string{"--http", freeAddress(t), "--session-keys", keyFile(t), "--store", "file:" + filepath.Join(t.TempDir(), "db")}
	first := startServed(t, "", args...)
	c := &legacyClient{http: newHTTPClient(t), url: first.endpoint(t)}
	if err := c.open("2025-11-25"); err != nil {
		t.Fatal(err)
	}
	stream := c.stream(t, http.MethodPost, "", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"progress",`+
		`"arguments":{"steps":3,"delayMs":50},"_meta":{"progressToken":"p"}}}`)
	id := ""
	for lines := bufio.NewScanner(stream); !strings.Contains(id, "-") && lines.Scan(); {
		id, _ = strings.CutPrefix(lines.Text(), "id: ")
	}
	_ = stream.Close()
	for range 2 { // the first follows the call to its end, the second reads the file and so waits for it
		rest, err := io.ReadAll(c.stream(t, http.MethodGet, id, ""))
		if err != nil || !strings.Contains(string(rest), `"text":"done"`) {
			t.Fatalf("resuming at the same server: got %s, %v; want the answer", rest, err)
		}
	}
	_ = first.cmd.Process.Kill()
	_ = first.cmd.Wait()
	second := startServed(t, "", args...)
	second.endpoint(t)
	rest, err := io.ReadAll(c.stream(t, http.MethodGet, id, ""))
	got := string(rest)
	if err != nil || strings.Count(got, `"progressToken":"p"`) != 3 || strings.Count(got, `"id":7,"result"`) != 1 {
		t.Errorf("resuming after %s: got %s, %v; want three notifications and the answer", id, got, err)
	}
}

// stream sends a request and gives the body of the event stream that answers it.
func (c *legacyClient) stream(t *testing.T, method, lastID, body string) io.ReadCloser {
	t.Helper()
	r, err := http.NewRequest(method, c.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", c.session)
	if lastID != "" {
		r.Header.Set("Last-Event-Id", lastID)
	}
	response, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got status %d, want 200", method, response.StatusCode)
	}
	return response.Body
}
