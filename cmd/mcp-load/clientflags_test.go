package main

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"strings"
)

// TestClientFlags trusts a server by its certificate's file, and finds fault with flags that do not fit together.
func TestClientFlags(t *testing.T) {
	srv := httptest.NewUnstartedServer(&countingServer{})
	srv.EnableHTTP2 = true
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	srv.StartTLS()
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	ca, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty.pem")
	for name, data := range map[string][]byte{
		ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), empty: []byte("nothing\n"),
	} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url := srv.URL + "/mcp"
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{url, "-n", "5", "--cacert", ca}, 0, "VALID"},
		{[]string{url, "-n", "5", "--cacert", ca, "--http2"}, 0, "HTTP/2"},
		{[]string{url, "-n", "5", "--insecure", "--answer", "sampling,roots", "--answer", "elicitation"}, 0, "VALID"},
		{[]string{url, "-n", "5"}, 1, "--cacert FILE"},
		{[]string{url, "--insecure", "--cacert", ca}, 2, "give one of them"},
		{[]string{url, "--cert", ca}, 2, "--cert and --key go together"},
		{[]string{url, "--cert", ca, "--key", ca}, 2, "--cert " + ca},
		{[]string{url, "--cacert", empty}, 2, "holds no certificate"},
		{[]string{url, "--cacert", filepath.Join(dir, "none")}, 2, "no such file"},
		{[]string{url, "--answer", "sampling,prayers"}, 2, `does not ask for "prayers"`},
		{[]string{url, "--answer-delay", "-1s"}, 2, "cannot be negative"},
		{[]string{"http://127.0.0.1:1/", "--insecure"}, 2, "not an https:// URL"},
		{[]string{"--http2", "--", "true"}, 2, "leave it out for a stdio server"},
		{[]string{"--insecure", "--", "true"}, 2, "leave them out for a stdio server"},
	} {
		code, stdout, stderr := call(append([]string{"run", "--live", "off"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.want) || code != 0 && strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q = %d, stdout %q, stderr %q; want %d with %q", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
}
