package mock

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpengine/mcpengine/codec"
)

// newRequest makes a request with headers given in turn as name and value.
func newRequest(method, url, body string, headers ...string) *http.Request {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// ask sends a request and gives status, body and headers of its answer.
func ask(t *testing.T, method, url, body string, headers ...string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.DefaultClient.Do(newRequest(method, url, body, headers...))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(all), resp.Header
}

// startServer starts a server on a free port of loopback and gives the URL of its endpoint.
func startServer(t *testing.T, c Config) (*Server, string) {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		s.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s, web.URL + Path
}

// openSession opens a session and gives its id.
func openSession(t *testing.T, url string) string {
	t.Helper()
	status, body, h := ask(t, "POST", url, initialize)
	if status != 200 || h.Get(headerSession) == "" {
		t.Fatalf("initialize: got %d %s", status, body)
	}
	return h.Get(headerSession)
}

// modernRequest is a request of the stateless era.
func modernRequest(method, params string) string {
	if params != "" {
		params += ","
	}
	return `{"jsonrpc":"2.0","id":"a","method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// TestAnswers: status and a part of the answer to everything the server knows, and to what it does not.
func TestAnswers(t *testing.T) {
	_, url := startServer(t, Config{Version: "1.2"})
	id := openSession(t, url)
	for _, c := range []struct {
		name, method, body, session string
		status                      int
		want                        string
	}{
		{"newest revision", "POST", initialize, "", 200, `{"protocolVersion":"2025-11-25",` + capabilities + `,"serverInfo":{"name":"mcp-load mock","version":"1.2"}}}`},
		{"oldest revision", "POST", strings.Replace(initialize, "2025-11-25", "2024-11-05", 1), "", 200, `"protocolVersion":"2024-11-05"`},
		{"unknown revision", "POST", strings.Replace(initialize, "2025-11-25", "1999-01-01", 1), "", 200, `"protocolVersion":"2025-11-25"`},
		{"initialized", "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, id, 202, ""},
		{"a response", "POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, id, 202, ""},
		{"ping", "POST", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, id, 200, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"tools", "POST", listTools, id, 200, `{"jsonrpc":"2.0","id":2,"result":{` + toolList + `}}`},
		{"echo", "POST", strings.Replace(callEcho, "hi", `\u0041\n`, 1), id, 200, `"text":"\u0041\n"`},
		{"echo without a message", "POST", strings.Replace(callEcho, "message", "other", 1), id, 200, `"isError":true`},
		{"unknown tool", "POST", strings.Replace(callEcho, "echo", "x", 1), id, 200, "-32602"},
		{"level", "POST", `{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"error"}}`, id, 200, `"result":{}`},
		{"resources", "POST", `{"jsonrpc":"2.0","id":7,"method":"resources/list"}`, id, 200, ResourceURI},
		{"read", "POST", `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"` + ResourceURI + `"}}`, id, 200, `"text":"0"`},
		{"read another", "POST", `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"x:y"}}`, id, 200, "-32602"},
		{"unsubscribe", "POST", strings.Replace(subscribe, "subscribe", "unsubscribe", 1), id, 200, `"result":{}`},
		{"subscribe to another", "POST", strings.Replace(subscribe, "mock:", "x:", 1), id, 200, "-32002"},
		{"unknown method", "POST", `{"jsonrpc":"2.0","id":7,"method":"x"}`, id, 200, "-32601"},
		{"no JSON", "POST", "hello", id, 400, "-32700"},
		{"batch", "POST", "[" + listTools + "]", id, 400, "-32600"},
		{"no session", "POST", listTools, "", 400, "-32600"},
		{"unknown session", "POST", listTools, "x", 404, "-32001"},
		{"stream of no session", "GET", "", "x", 404, "-32001"},
		{"DELETE of no session", "DELETE", "", "x", 404, "-32001"},
		{"PUT", "PUT", "", id, 405, ""},
		{"discover", "POST", modernRequest("server/discover", ""), "", 200, `{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","supportedVersions":` +
			allRevisions + `,` + capabilities + `,"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mcp-load mock","version":"1.2"}}}}`},
		{"stateless tools", "POST", modernRequest("tools/list", ""), "", 200, `{"resultType":"complete",` + toolList + `,"ttlMs":0,"cacheScope":"private"}}`},
		{"stateless echo", "POST", modernRequest("tools/call", `"name":"echo","arguments":{"message":"x"}`), "", 200, `{"resultType":"complete","content":[{"type":"text","text":"x"}]}}`},
		{"stateless ping", "POST", modernRequest("ping", ""), "", 200, "-32601"},
		{"later revision", "POST", strings.Replace(modernRequest("tools/list", ""), "2026-07-28", "2027-01-01", 1), "", 400, `"requested":"2027-01-01"`},
		{"stats by POST", "STATS", "", "", 405, ""},
	} {
		method, at := c.method, url
		if method == "STATS" {
			method, at = "POST", strings.TrimSuffix(url, Path)+StatsPath
		}
		headers := []string{"Content-Type", "application/json"}
		if c.session != "" {
			headers = append(headers, headerSession, c.session)
		}
		status, body, _ := ask(t, method, at, c.body, headers...)
		if status != c.status || !strings.Contains(body, c.want) || c.want != "" && !codec.Valid([]byte(body)) {
			t.Errorf("%s: got %d %s, want %d and %s", c.name, status, body, c.status, c.want)
		}
	}
}

// TestBodyLimit: a body beyond the limit is refused, whether or not its length is announced.
func TestBodyLimit(t *testing.T) {
	_, url := startServer(t, Config{})
	long := strings.Repeat(" ", maxBody) + initialize
	r := newRequest("POST", url, "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(long)), -1
	for name, r := range map[string]*http.Request{"announced": newRequest("POST", url, long), "in chunks": r} {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			continue // refused before all was sent
		}
		if resp.StatusCode != 400 {
			t.Errorf("%s: got status %d, want 400", name, resp.StatusCode)
		}
		resp.Body.Close()
	}
}

// TestMaxSessions: exactly so many, and one more for each that ends.
func TestMaxSessions(t *testing.T) {
	s, url := startServer(t, Config{Sessions: Sessions{Max: 50}})
	var last string
	for range 50 {
		last = openSession(t, url)
	}
	for range 3 {
		if status, body, h := ask(t, "POST", url, initialize); status != 503 || !strings.Contains(body, "-32000") || h.Get(headerSession) != "" {
			t.Errorf("session 51: got %d %s, want 503 and -32000", status, body)
		}
	}
	if status, _, _ := ask(t, "DELETE", url, "", headerSession, last); status != 204 {
		t.Errorf("DELETE: got %d, want 204", status)
	}
	openSession(t, url)
	want := SessionStats{Level: Level{50, 50}, Opened: 51, Deleted: 1, Refused: 3}
	if got := s.Stats().Sessions; got != want {
		t.Errorf("Stats().Sessions: got %+v, want %+v", got, want)
	}
}

// residentBytes reads how much memory of the process is resident.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// TestBytesPerSession: what sessions cost is resident while they live, gone afterwards, and not in the Go heap.
func TestBytesPerSession(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident memory is read from /proc")
	}
	const n, each = 64, 1 << 20
	count := newCounters()
	table := newTable(Sessions{Bytes: each - 100}, count) // rounded up to pages
	debug.FreeOSMemory()                                  // so that none of it is given back meanwhile
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := residentBytes(t)
	for range n {
		s, err := table.open()
		if err != nil {
			t.Fatal(err)
		}
		table.release(s)
	}
	near(t, "bytes of 64 sessions of 1 MiB", float64(residentBytes(t)-start), n*each, 0.05)
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 8<<20 {
		t.Errorf("Go heap: grew by %d bytes, want next to nothing", grown)
	}
	table.closeAll()
	if left := residentBytes(t) - start; left > n*each/10 {
		t.Errorf("bytes left after the sessions: got %d, want next to none", left)
	}
}

// TestServeEndsAtOnce: the end of the context cuts off a call that would take an hour and a stream that never ends, and
// leaves nothing behind.
func TestServeEndsAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := New(Config{Model: Model{Service: Service{Mean: time.Hour}}})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String() + Path
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, listener, s.Handler()) }()
	id := openSession(t, url)
	ended := make(chan struct{}, 2)
	for _, r := range []*http.Request{newRequest("POST", url, callEcho, headerSession, id), newRequest("GET", url, "", headerSession, id)} {
		go func() {
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			ended <- struct{}{}
		}()
	}
	for s.Stats().Calls.Open != 1 || s.Stats().Streams.Open != 1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	<-ended
	<-ended
	s.Close()
	http.DefaultClient.CloseIdleConnections()
}

// TestPreciseAlarm: the alarm of this system never lets go early, also when an earlier instant comes along later.
func TestPreciseAlarm(t *testing.T) {
	c := newClock(newAlarm())
	defer c.close()
	long := c.start(time.Now().Add(time.Hour))
	defer c.drop(long)
	for range 30 {
		at := time.Now().Add(1500 * time.Microsecond)
		if err := c.wait(t.Context(), at); err != nil || time.Now().Before(at) {
			t.Errorf("wait: got %v, %v before the instant", err, time.Until(at))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.wait(ctx, time.Now().Add(time.Hour)); err == nil {
		t.Error("wait with a context that ends: got nil, want its error")
	}
}
