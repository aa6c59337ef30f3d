package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// selfEnv turns the test binary into a server, or into one that fails.
const selfEnv = "MCP_REPLICA_TEST_SELF"

func TestMain(m *testing.M) {
	switch os.Getenv(selfEnv) {
	case "serve":
		_ = http.ListenAndServe(strings.TrimPrefix(os.Args[1], "--http="), http.NotFoundHandler())
	case "fail":
		fmt.Fprintln(os.Stderr, "no licence")
		os.Exit(3)
	default:
		os.Exit(m.Run())
	}
}

func TestStart(t *testing.T) {
	t.Setenv(selfEnv, "serve")
	ps, err := Start(t.Context(), []string{os.Args[0], "--http={addr}"}, 3)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range ps {
		if seen[p.Address] || p.PID() == 0 {
			t.Errorf("replica %+v: want an address and a process of its own", p)
		}
		seen[p.Address] = true
		res, err := http.Get("http://" + p.Address)
		if err != nil || res.StatusCode != http.StatusNotFound {
			t.Errorf("GET = %v, %v; want 404", res, err)
		}
	}
	begin := time.Now()
	Stop(ps)
	for _, p := range ps {
		select {
		case <-p.done:
		default:
			t.Errorf("%s runs after Stop", p.Address)
		}
		if conn, err := net.Dial("tcp", p.Address); err == nil {
			_ = conn.Close()
			t.Errorf("%s is open after Stop", p.Address)
		}
	}
	if took := time.Since(begin); took > stopTime {
		t.Errorf("Stop took %s, want less than %s", took, stopTime)
	}
}

func TestStartFails(t *testing.T) {
	t.Setenv(selfEnv, "fail")
	for _, tt := range []struct {
		command []string
		want    string
	}{
		{[]string{os.Args[0], "{addr}"}, "replica 1 of 2: the command ended before it listened"},
		{[]string{os.Args[0], "{addr}"}, "it wrote: no licence"},
		{[]string{"no-such-command-here", "{addr}"}, "cannot start no-such-command-here"},
		{[]string{os.Args[0]}, "must hold {addr}"},
	} {
		if ps, err := Start(t.Context(), tt.command, 2); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Start(%v) = %v, %v; want an error with %q", tt.command, ps, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	t.Setenv(selfEnv, "serve")
	if _, err := Start(ctx, []string{os.Args[0], "127.0.0.1:1", "{addr}"}, 1); err == nil || errors.Is(err, ErrNoPlaceholder) {
		t.Errorf("Start after the end of the context = %v, want an error", err)
	}
}

// TestRouter: sessions stay with the replica that opened them, everything else takes turns.
func TestRouter(t *testing.T) {
	const k = 3
	var addresses []string
	for i := range k {
		opened := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch id := r.Header.Get(sessionHeader); {
			case r.Header.Get("X-Open") != "":
				opened++
				w.Header().Set(sessionHeader, fmt.Sprintf("%d-%d", i, opened))
			case id != "" && !strings.HasPrefix(id, fmt.Sprint(i, "-")):
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, i)
		}))
		t.Cleanup(s.Close)
		addresses = append(addresses, strings.TrimPrefix(s.URL, "http://"))
	}
	router := NewRouter(addresses)
	front := httptest.NewServer(router)
	t.Cleanup(front.Close)
	ask := func(method, session, open string) *http.Response {
		t.Helper()
		req, _ := http.NewRequestWithContext(t.Context(), method, front.URL+"/mcp", nil)
		if session != "" {
			req.Header.Set(sessionHeader, session)
		}
		if open != "" {
			req.Header.Set("X-Open", open)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	var ids []string
	for range 2 * k {
		ids = append(ids, ask("POST", "", "1").Header.Get(sessionHeader))
	}
	for range 3 {
		for _, id := range ids {
			if res := ask("POST", id, ""); res.StatusCode != http.StatusOK {
				t.Errorf("session %s: status %d, want 200 from its own replica", id, res.StatusCode)
			}
		}
	}
	if got, want := router.Served(), int64(2+6); got[0] != want || got[1] != want || got[2] != want {
		t.Errorf("served %v, want %d each", got, want)
	}
	for range k {
		ask("POST", "", "")
	}
	if got := router.Served(); got[0] != 9 || got[1] != 9 || got[2] != 9 {
		t.Errorf("after three stateless requests served %v, want 9 each", got)
	}
	ask("DELETE", ids[0], "")
	if n := len(router.routes); n != len(ids)-1 {
		t.Errorf("%d routes after a DELETE, want %d", n, len(ids)-1)
	}
	broken := httptest.NewServer(NewRouter([]string{"127.0.0.1:1"}))
	t.Cleanup(broken.Close)
	res, err := http.Get(broken.URL)
	if err != nil || res.StatusCode != http.StatusBadGateway {
		t.Errorf("GET through a router to nothing = %v, %v; want 502", res, err)
	}
}
