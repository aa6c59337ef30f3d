package main

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestEndpoint holds the short cut to the mux that it goes around.
func TestEndpoint(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for _, path := range []string{"/mcp", "/a/b/", "/"} {
		mux := http.NewServeMux()
		mux.Handle(path, handler)
		short := endpoint(path, handler)
		for _, line := range []string{
			"POST /mcp", "GET /mcp", "DELETE /mcp?x=1", "POST //mcp", "POST /mcp/", "POST /m%63p", "POST /x/../mcp", "POST /MCP",
			"POST /", "GET /a/b/", "GET /a/b", "GET /a/b/c", "GET /a%2fb/", "GET http://localhost/mcp", "OPTIONS *", "CONNECT /mcp",
			"CONNECT localhost:80",
		} {
			read := func() *http.Request {
				r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(line + " HTTP/1.1\r\nHost: localhost\r\n\r\n")))
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			got, want := httptest.NewRecorder(), httptest.NewRecorder()
			short.ServeHTTP(got, read())
			mux.ServeHTTP(want, read())
			if got.Code != want.Code || got.Header().Get("Location") != want.Header().Get("Location") {
				t.Errorf("%s at %s: got %d %q, want %d %q", line, path, got.Code, got.Header().Get("Location"),
					want.Code, want.Header().Get("Location"))
			}
		}
	}
}
