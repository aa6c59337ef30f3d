package mock

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// startProxy starts a proxy on a free port of loopback and gives the URL of its endpoint.
func startProxy(t *testing.T, c ProxyConfig) (*Proxy, string) {
	t.Helper()
	p, err := NewProxy(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(p.Handler())
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		p.Close()
	})
	return p, web.URL + Path
}

// summary is the counts that amplification shows in.
func summary(s Stats) string {
	return fmt.Sprintf("initialize %d initialized %d list %d call %d discover %d DELETE %d open %d", s.Requests["initialize"],
		s.Requests["notifications/initialized"], s.Requests["tools/list"], s.Requests["tools/call"], s.Requests["server/discover"],
		s.HTTP["DELETE"], s.Sessions.Open)
}

// TestAmplification: 2 sessions with 3 calls each, 1 stateless client with 2 calls, and what comes of them upstream.
func TestAmplification(t *testing.T) {
	const sent = "initialize 2 initialized 2 list 2 call 8 discover 1 DELETE 2 open 0"
	for _, c := range []struct {
		name   string
		config ProxyConfig
		want   string
	}{
		{"plain", ProxyConfig{}, sent},
		{"one copy", ProxyConfig{FanOut: 1}, sent},
		{"fan-out", ProxyConfig{FanOut: 5}, "initialize 2 initialized 2 list 2 call 40 discover 1 DELETE 2 open 0"},
		{"reinit", ProxyConfig{Reinit: true}, "initialize 8 initialized 8 list 2 call 8 discover 1 DELETE 8 open 0"},
		{"both", ProxyConfig{Reinit: true, FanOut: 2}, "initialize 8 initialized 8 list 2 call 16 discover 1 DELETE 8 open 0"},
	} {
		s, upstream := startServer(t, Config{})
		c.config.Upstream = upstream
		p, url := startProxy(t, c.config)
		for range 2 {
			id := openSession(t, url)
			session := []string{headerSession, id, headerVersion, "2025-11-25"}
			ask(t, "POST", url, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session...)
			ask(t, "POST", url, listTools, session...)
			for range 3 {
				if status, body, _ := ask(t, "POST", url, callEcho, session...); status != 200 || !strings.Contains(body, `"id":2,`) || !strings.Contains(body, `"text":"hi"`) {
					t.Errorf("%s: call: got %d %s, want the answer to id 2", c.name, status, body)
				}
			}
			if status, _, _ := ask(t, "DELETE", url, "", session...); status != 204 {
				t.Errorf("%s: DELETE: got %d, want 204", c.name, status)
			}
		}
		ask(t, "POST", url, modernRequest("server/discover", ""))
		for range 2 {
			status, body, _ := ask(t, "POST", url, modernRequest("tools/call", `"name":"echo","arguments":{"message":"x"}`))
			if status != 200 || !strings.Contains(body, `"id":"a",`) {
				t.Errorf("%s: stateless call: got %d %s, want the answer to id a", c.name, status, body)
			}
		}
		if got := summary(s.Stats()); got != c.want {
			t.Errorf("%s: upstream: got %s, want %s", c.name, got, c.want)
		}
		if got := summary(p.Stats()); got != sent {
			t.Errorf("%s: from the clients: got %s, want %s", c.name, got, sent)
		}
	}
}

// TestProxyDelay: every request takes its time once, and none is sent on earlier.
func TestProxyDelay(t *testing.T) {
	_, upstream := startServer(t, Config{})
	_, url := startProxy(t, ProxyConfig{Upstream: upstream, Delay: 30 * time.Millisecond})
	start := time.Now()
	id := openSession(t, url)
	for range 4 {
		ask(t, "POST", url, callEcho, headerSession, id)
	}
	if took := time.Since(start); took < 150*time.Millisecond || took > 600*time.Millisecond {
		t.Errorf("5 requests with a delay of 30 ms: took %v, want little more than 150 ms", took)
	}
}

// TestProxyStream: the events of a stream pass one by one, while it is open.
func TestProxyStream(t *testing.T) {
	s, upstream := startServer(t, Config{Stream: Stream{Events: 5, Gap: time.Millisecond, Drop: []int{2}}})
	p, url := startProxy(t, ProxyConfig{Upstream: upstream, Reinit: true, FanOut: 3})
	id := openSession(t, url)
	resp, err := http.DefaultClient.Do(newRequest("GET", url, "", headerSession, id))
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type: got %q, want text/event-stream", got)
	}
	var seen []string
	lines := bufio.NewScanner(resp.Body)
	for len(seen) < 4 && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			seen = append(seen, id)
		}
	}
	if got, want := fmt.Sprint(seen), "[1 3 4 5]"; got != want {
		t.Errorf("events: got %s, want %s", got, want)
	}
	if got := p.Stats().Streams; got != (Level{1, 1}) {
		t.Errorf("Stats().Streams: got %+v, want 1 open", got)
	}
	resp.Body.Close()
	for deadline := time.Now().Add(5 * time.Second); s.Stats().Streams.Open != 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if got := s.Stats().Streams.Open; got != 0 {
		t.Errorf("streams upstream after the client has left: got %d, want 0", got)
	}
}

// TestProxyErrors: what the upstream refuses passes, and an upstream that is not there is an answer.
func TestProxyErrors(t *testing.T) {
	_, upstream := startServer(t, Config{Sessions: Sessions{Max: 1}})
	_, url := startProxy(t, ProxyConfig{Upstream: upstream, Reinit: true})
	id := openSession(t, url)
	if status, body, _ := ask(t, "POST", url, initialize); status != 503 || !strings.Contains(body, "-32000") {
		t.Errorf("initialize beyond the limit: got %d %s, want 503", status, body)
	}
	if status, body, _ := ask(t, "POST", url, callEcho, headerSession, id); status != 502 || !strings.Contains(body, "initialize got status 503") {
		t.Errorf("a call that gets no session: got %d %s, want 502", status, body)
	}
	_, dead := startProxy(t, ProxyConfig{Upstream: "http://127.0.0.1:1/mcp"})
	if status, body, _ := ask(t, "POST", dead, callEcho); status != 502 || !strings.Contains(body, "could not be reached") {
		t.Errorf("no upstream: got %d %s, want 502", status, body)
	}
}

// TestProxyPassesHeaders: headers go both ways, those of the connection do not, and the body is the same.
func TestProxyPassesHeaders(t *testing.T) {
	var got http.Header
	var gotBody []byte
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		gotBody, _ = io.ReadAll(r.Body)
		w.Header().Set("Mcp-Thing", "back")
		w.WriteHeader(418)
	}))
	defer upstream.Close()
	_, url := startProxy(t, ProxyConfig{Upstream: upstream.URL})
	status, _, h := ask(t, "POST", url, modernRequest("tools/list", ""), "Mcp-Method", "tools/list", "Authorization", "Bearer x",
		"Connection", "X-Hop", "X-Hop", "1", "Keep-Alive", "5")
	if status != 418 || h.Get("Mcp-Thing") != "back" {
		t.Errorf("answer: got %d %v, want 418 and Mcp-Thing", status, h)
	}
	if got.Get("Mcp-Method") != "tools/list" || got.Get("Authorization") != "Bearer x" || got.Get("X-Hop") != "" || got.Get("Keep-Alive") != "" {
		t.Errorf("headers upstream: got %v", got)
	}
	if string(gotBody) != modernRequest("tools/list", "") {
		t.Errorf("body upstream: got %s", gotBody)
	}
}

// TestRoutes: of many requests in sessions that were opened through a router over k replicas, 1/k find their session
// under random routing and all under sticky routing, and stateless calls do not care.
func TestRoutes(t *testing.T) {
	const k, sessions, calls = 4, 40, 10
	for _, route := range []Route{Random, Sticky} {
		c := ProxyConfig{Route: route, Seed: 7}
		var servers []*Server
		for range k {
			s, url := startServer(t, Config{})
			servers = append(servers, s)
			c.Replicas = append(c.Replicas, url)
		}
		p, url := startProxy(t, c)
		found, stateless := 0, 0
		var ids []string
		for range sessions {
			ids = append(ids, openSession(t, url))
		}
		for range calls {
			for _, id := range ids {
				if status, _, _ := ask(t, "POST", url, callEcho, headerSession, id); status == 200 {
					found++
				}
				if status, _, _ := ask(t, "POST", url, modernRequest("tools/call", `"name":"echo"`)); status == 200 {
					stateless++
				}
			}
		}
		switch {
		case stateless != sessions*calls:
			t.Errorf("%s: stateless calls that were answered: got %d, want all %d", route, stateless, sessions*calls)
		case route == Sticky && found != sessions*calls:
			t.Errorf("sticky: calls that found their session: got %d, want all %d", found, sessions*calls)
		case route == Random: // 400 draws with p = 1/4: a standard deviation of 8.7
			near(t, "random: calls that found their session", float64(found), sessions*calls/k, 0.3)
		}
		for i, s := range servers {
			if got := s.Stats().Sessions.Open; route == Sticky && got != sessions/k {
				t.Errorf("sticky: sessions on replica %d: got %d, want %d", i, got, sessions/k)
			}
		}
		if route == Sticky {
			for _, id := range ids {
				ask(t, "DELETE", url, "", headerSession, id)
			}
			if got := len(p.sticky.replica); got != 0 {
				t.Errorf("sticky: sessions remembered after DELETE: got %d, want 0", got)
			}
		}
	}
}
