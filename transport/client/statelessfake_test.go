package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

const discoverResult = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},` +
	`"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"instructions":"be kind","ttlMs":0,"cacheScope":"private",` +
	`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","title":"Fake","version":"1"}}}`

// modernServer is a fake server of the stateless revision on HTTP: what it does not answer by itself, it answers with
// what the function gives, a status before a blank where it is not 200.
type modernServer struct {
	t        *testing.T
	discover string // replaces discoverResult
	answer   func(f frame, header http.Header) string

	mu   sync.Mutex // guards seen
	seen []string   // requests by verb and method
}

func (s *modernServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	line, f := r.Method, frame{}
	if len(body) > 0 {
		f = parse(s.t, body)
		line += " " + f.Method
	}
	s.mu.Lock()
	s.seen = append(s.seen, line)
	s.mu.Unlock()
	reply := ""
	if f.Method == "server/discover" && s.answer == nil || f.Method == "server/discover" && s.discover == "" {
		reply = resultOf(f, discoverResult)
	} else if f.Method == "server/discover" {
		reply = s.discover
	} else {
		reply = s.answer(f, r.Header)
	}
	reply = strings.ReplaceAll(reply, "%ID", string(f.ID))
	if !strings.HasPrefix(reply, "{") && !strings.HasPrefix(reply, "<") {
		var status int
		code, rest, _ := strings.Cut(reply, " ")
		if _, err := fmt.Sscan(code, &status); err == nil {
			if strings.HasPrefix(rest, "{") {
				w.Header().Set("Content-Type", "application/json")
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, rest) // the client may have gone
			return
		}
	}
	if strings.HasPrefix(reply, "data:") {
		writeSSE(w, reply)
		return
	}
	writeJSON(w, reply)
}

func (s *modernServer) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Clone(s.seen), ", ")
}

func errorOf(code int, data string) string {
	if data != "" {
		data = `,"data":` + data
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%%ID,"error":{"code":%d,"message":"m"%s}}`, code, data)
}

// connectModern connects a client to a fake server over a socket.
func connectModern(t *testing.T, s *modernServer, o client.Options) (*client.Client, error) {
	t.Helper()
	noLeaks(t)
	s.t = t
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	if o.Protocol == "" {
		o.Protocol = client.ProtocolStateless
	}
	c, err := client.ConnectHTTP(context.Background(), server.URL+"/mcp", &o)
	if err == nil {
		t.Cleanup(func() { closeClient(t, c) })
	}
	return c, err
}

func mustConnectModern(t *testing.T, s *modernServer, o client.Options) *client.Client {
	t.Helper()
	c, err := connectModern(t, s, o)
	if err != nil {
		t.Fatalf("ConnectHTTP: %v", err)
	}
	return c
}

// connectModernPipe connects a client to a peer that serves the stateless revision.
func connectModernPipe(t *testing.T, o client.Options) (*client.Client, *peer) {
	t.Helper()
	ours, theirs := net.Pipe()
	p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		p.write(resultOf(p.expect("server/discover"), discoverResult))
	}()
	o.Protocol = client.ProtocolStateless
	c, err := client.ConnectPipe(context.Background(), ours, &o)
	if err != nil {
		t.Fatalf("ConnectPipe: %v", err)
	}
	<-ready
	t.Cleanup(func() { closeClient(t, c) })
	return c, p
}
