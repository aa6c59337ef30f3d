package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeServer is an MCP server whose behaviour is known exactly and which counts what it sees. It is written with
// net/http and encoding/json only, so that nothing of the product judges itself.
type fakeServer struct {
	delay     time.Duration
	sse       bool                                  // replies are SSE, with a notification and a ping before the response
	chunked   bool                                  // JSON replies are flushed in pieces
	closeIdle bool                                  // every connection is closed after its reply, without saying so
	stateless bool                                  // no session ids
	numbers   []int                                 // GET streams carry these instead of three events without a number
	endStream bool                                  // and end then
	tools     string                                // the list; default: one read-only tool "echo"
	before    func(http.ResponseWriter, int64) bool // called with the number of the call; true when it has answered

	updates chan string // frames for the GET streams, where it is not nil

	initializes, initialized, calls, deletes, pongs, cancels, refused atomic.Int64

	mu       sync.Mutex
	sessions map[string]bool
	ids      map[string]int // how often each id was used
	tokens   map[string]int // calls by arguments
}

const echoTool = `[{"name":"write","inputSchema":{"type":"object"}},{"name":"echo","annotations":{"readOnlyHint":true},` +
	`"inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}}]`

func (f *fakeServer) start(t *testing.T) string {
	t.Helper()
	f.sessions, f.ids, f.tokens = map[string]bool{}, map[string]int{}, map[string]int{}
	if f.tools == "" {
		f.tools = echoTool
	}
	srv := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(srv.Close)
	return srv.URL + "/mcp"
}

func (f *fakeServer) serve(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("Mcp-Session-Id")
	if r.URL.Path != "/mcp" {
		http.NotFound(w, r)
		return
	}
	switch r.Method {
	case http.MethodDelete:
		if !f.end(id) {
			http.NotFound(w, r)
			return
		}
		f.deletes.Add(1)
		w.WriteHeader(http.StatusNoContent)
		return
	case http.MethodGet:
		f.stream(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "bad JSON: "+err.Error(), http.StatusBadRequest)
		return
	}
	if m.ID != nil && m.Method != "" {
		f.mu.Lock()
		f.ids[string(m.ID)]++
		f.mu.Unlock()
	}
	if m.Method != "initialize" && !f.stateless && !f.known(id) {
		f.refused.Add(1)
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	switch m.Method {
	case "initialize":
		f.initialize(w, m.ID)
	case "notifications/initialized":
		f.initialized.Add(1)
		w.WriteHeader(http.StatusAccepted)
	case "notifications/cancelled":
		f.cancels.Add(1)
		w.WriteHeader(http.StatusAccepted)
	case "":
		f.pongs.Add(1)
		w.WriteHeader(http.StatusAccepted)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}`, m.ID, f.tools)
	case "resources/subscribe":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		time.AfterFunc(20*time.Millisecond, func() {
			f.updates <- `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:1"}}`
		})
	case "tools/call":
		if r.Header.Get("MCP-Protocol-Version") == "" {
			http.Error(w, "no MCP-Protocol-Version", http.StatusBadRequest)
			return
		}
		f.call(w, m.ID, m.Params)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
	}
}

func (f *fakeServer) initialize(w http.ResponseWriter, id json.RawMessage) {
	n := f.initializes.Add(1)
	if !f.stateless {
		s := "s" + strconv.FormatInt(n, 10)
		f.mu.Lock()
		f.sessions[s] = true
		f.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", s)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}}`, id)
}

func (f *fakeServer) call(w http.ResponseWriter, id, params json.RawMessage) {
	n := f.calls.Add(1)
	f.mu.Lock()
	f.tokens[string(params)]++
	f.mu.Unlock()
	if f.delay > 0 {
		time.Sleep(f.delay)
	}
	if f.before != nil && f.before(w, n) {
		return
	}
	result := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"x"}]}}`, id)
	switch {
	case f.sse:
		w.Header().Set("Content-Type", "text/event-stream")
		flush := w.(http.Flusher).Flush
		fmt.Fprint(w, "id: 1\ndata: \n\n: comment\n\n")
		flush()
		fmt.Fprint(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n")
		fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n")
		flush()
		fmt.Fprintf(w, "id: 2\r\ndata: %s\r\n\r\n", result)
	case f.chunked:
		w.Header().Set("Content-Type", "application/json")
		for len(result) > 0 {
			k := min(len(result), 17)
			fmt.Fprint(w, result[:k])
			w.(http.Flusher).Flush()
			result = result[k:]
		}
	default:
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(result)))
		fmt.Fprint(w, result)
	}
	if f.closeIdle {
		f.hangUp(w)
	}
}

// hangUp closes the connection after the reply without a Connection header, as a server does that runs out of patience
// with an idle connection.
func (f *fakeServer) hangUp(w http.ResponseWriter) {
	w.(http.Flusher).Flush()
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	go func() {
		time.Sleep(2 * time.Millisecond)
		_ = conn.(*net.TCPConn).Close()
	}()
}

func (f *fakeServer) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, n := range f.numbers {
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":{\"seq\":%d}}}\n\n", n)
		w.(http.Flusher).Flush()
		time.Sleep(2 * time.Millisecond)
	}
	if f.endStream {
		return
	}
	for i := range 3 * (1 - min(len(f.numbers), 1)) {
		fmt.Fprintf(w, "id: %d\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n", i)
		w.(http.Flusher).Flush()
	}
	for {
		select {
		case frame := <-f.updates:
			fmt.Fprintf(w, "data: %s\n\n", frame)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fakeServer) known(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[id]
}

func (f *fakeServer) end(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.sessions[id]
	delete(f.sessions, id)
	return known
}

// forget ends all sessions behind the clients' back.
func (f *fakeServer) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.sessions)
}

// duplicateIDs counts ids that were used more than once.
func (f *fakeServer) duplicateIDs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, count := range f.ids {
		if count > 1 {
			n++
		}
	}
	return n
}

// childEnv turns the test binary into a stdio server.
const childEnv = "BENCH_TEST_STDIO_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		stdioChild(mode)
		return
	}
	os.Exit(m.Run())
}

// stdioChild is a stdio MCP server. Mode "shuffle" answers calls in another order than they came in; "stubborn" ignores
// the end of its input; "modern" is of the stateless era; "fragile" ends at a request before initialize;
// "asking" asks for the client's roots before it answers a call.
func stdioChild(mode string) {
	var mu sync.Mutex
	var under sync.WaitGroup
	say := func(format string, id json.RawMessage) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", id)
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Meta map[string]any `json:"_meta"`
			} `json:"params"`
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		id := bytes.Clone(m.ID)
		switch {
		case mode == "modern" && m.Params.Meta["io.modelcontextprotocol/protocolVersion"] != Stateless:
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no version"}}`, id)
			continue
		case mode == "modern" && m.Method == "server/discover":
			say(`{"jsonrpc":"2.0","id":%s,`+discoverOK, id)
			continue
		case m.Method == "server/discover" && mode == "fragile":
			os.Exit(3)
		case m.Method == "server/discover":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"m"}}`, id)
			continue
		}
		switch m.Method {
		case "initialize":
			say("a line of log\n"+`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"child"}}}`, id)
		case "tools/list":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"tools":`+echoTool+`}}`, id)
		case "resources/subscribe":
			say(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u:1"}}`+"\n"+`{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
		default:
			if mode == "asking" {
				askRoots(in, say)
			}
			under.Go(func() {
				if mode == "shuffle" {
					time.Sleep(rand.N(2 * time.Millisecond))
				}
				say(`{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
			})
		}
	}
	under.Wait()
	if mode == "stubborn" {
		time.Sleep(time.Hour)
	}
}

// connect gives a caller and a session on a handler, without a run.
func connect(t *testing.T, h http.HandlerFunc) (*caller, session) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	p, err := newHTTPPeer(&Config{URL: srv.URL, Protocol: Revisions[0]})
	if err != nil {
		t.Fatal(err)
	}
	return p.caller(&atomic.Uint64{}), &httpSession{peer: p, id: "s", post: p.opening}
}
