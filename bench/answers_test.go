package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"
)

// askingServer asks its client for each of kinds during every call, and once on every GET stream, and answers the call
// when it has been answered. It is written with net/http and encoding/json only.
type askingServer struct {
	kinds []string // methods

	mu       sync.Mutex
	declared string // capabilities of the last initialize
	waiting  map[string]chan json.RawMessage
	asked    int
	answers  map[string][]string // result or error, by method
	times    map[string][]time.Duration
}

func (s *askingServer) ask(w io.Writer, method string) chan json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	id := fmt.Sprint("ask-", s.asked)
	s.waiting[id] = make(chan json.RawMessage, 1)
	params := `{}`
	if method == "elicitation/create" {
		params = `{"message":"sure?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}`
	}
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%q,\"method\":%q,\"params\":%s}\n\n", id, method, params)
	w.(http.Flusher).Flush()
	return s.waiting[id]
}

func (s *askingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "text/event-stream")
		s.ask(w, "ping")
		<-r.Context().Done()
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Capabilities json.RawMessage }
		Result json.RawMessage
		Error  json.RawMessage
	}
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	switch m.Method {
	case "initialize":
		s.mu.Lock()
		s.declared = string(m.Params.Capabilities)
		s.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", "s")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"asking"}}}`, m.ID)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}`, m.ID, echoTool)
	case "tools/call":
		s.call(w, m.ID)
	case "":
		var id string
		_ = json.Unmarshal(m.ID, &id)
		s.mu.Lock()
		ch := s.waiting[id]
		delete(s.waiting, id)
		s.mu.Unlock()
		if ch == nil {
			http.Error(w, "nobody has asked", http.StatusBadRequest)
			return
		}
		ch <- append(m.Result, m.Error...)
		w.WriteHeader(http.StatusAccepted)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func (s *askingServer) call(w http.ResponseWriter, id json.RawMessage) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, method := range s.kinds {
		begin := time.Now()
		answer := string(<-s.ask(w, method))
		s.mu.Lock()
		s.answers[method] = append(s.answers[method], answer)
		s.times[method] = append(s.times[method], time.Since(begin))
		s.mu.Unlock()
	}
	fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
}

// TestAnswers lets a server ask during calls and on GET streams.
func TestAnswers(t *testing.T) {
	const sampleAnswer = `{"role":"assistant","content":{"type":"text","text":"a canned answer of mcp-load"},"model":"mcp-load","stopReason":"endTurn"}`
	const noMethod = `{"code":-32601,"message":"Method not found"}`
	for _, tt := range []struct {
		name       string
		answers    []Answer
		declared   string
		want       [3]string
		refused, n int64 // of one call
	}{
		{"nothing declared", nil, `{}`, [3]string{noMethod, noMethod, noMethod}, 3, 0},
		{"all", Answers, `{"sampling":{},"elicitation":{},"roots":{}}`,
			[3]string{sampleAnswer, `{"action":"accept","content":{"ok":false}}`, `{"roots":[{"uri":"file:///mcp-load","name":"mcp-load"}]}`}, 0, 1},
	} {
		s := &askingServer{
			kinds:   []string{"sampling/createMessage", "elicitation/create", "roots/list"},
			waiting: map[string]chan json.RawMessage{}, answers: map[string][]string{}, times: map[string][]time.Duration{},
		}
		srv := httptest.NewServer(s)
		res, err := Run(context.Background(), Config{
			URL: srv.URL, Concurrency: 3, Requests: 12, Streams: true, Answers: tt.answers, AnswerDelay: 5 * time.Millisecond,
		})
		srv.Close()
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if s.declared != tt.declared {
			t.Errorf("%s: declared %s, want %s", tt.name, s.declared, tt.declared)
		}
		for i, method := range s.kinds {
			for k, got := range s.answers[method] {
				if got != tt.want[i] {
					t.Errorf("%s: %s was answered %s, want %s", tt.name, method, got, tt.want[i])
				}
				if took := s.times[method][k]; tt.n > 0 && took < 5*time.Millisecond {
					t.Errorf("%s: %s was answered within %s, want a delay of 5 ms", tt.name, method, took)
				}
			}
		}
		q, n := res.ServerRequests, 12*tt.n
		if q == nil || *q != (ServerRequests{Sampling: n, Elicitation: n, Roots: n, Ping: 3, Refused: 12 * tt.refused}) {
			t.Errorf("%s: server_requests = %+v, want %d of each, 3 pings, %d refused", tt.name, q, n, 12*tt.refused)
		}
		if res.Requests.OK != 12 || res.Streams.Events != 12*3+3 {
			t.Errorf("%s: %d calls ok and %d events, want 12 and 39", tt.name, res.Requests.OK, res.Streams.Events)
		}
	}
}

// TestAnswersStdio is the same of a process, which asks once before its first answer to a call.
func TestAnswersStdio(t *testing.T) {
	t.Setenv(childEnv, "asking")
	res, err := Run(context.Background(), Config{Command: []string{os.Args[0]}, Requests: 5, Answers: []Answer{AnswerRoots}, AnswerDelay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if q := res.ServerRequests; q == nil || *q != (ServerRequests{Roots: 5}) || res.Requests.OK != 5 {
		t.Errorf("got %d calls ok and server_requests %+v, want 5 and 5 roots", res.Requests.OK, q)
	}
}

// askRoots asks for the roots, and waits for the answer.
func askRoots(in *bufio.Scanner, say func(string, json.RawMessage)) {
	say(`{"jsonrpc":"2.0","id":"r%s","method":"roots/list"}`, nil)
	for in.Scan() {
		var m struct{ Result struct{ Roots []any } }
		if json.Unmarshal(in.Bytes(), &m) == nil && len(m.Result.Roots) == 1 {
			return
		}
	}
}

// TestRounds lets a server of the stateless era ask, once with a state and once without.
func TestRounds(t *testing.T) {
	const meta = `"_meta":{},`
	var asked []string
	answers := []string{
		`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage","params":{}}},"requestState":"s\n1"}`,
		`{"resultType":"input_required","inputRequests":{}}`,
		`{"resultType":"complete"}`,
	}
	c := &caller{}
	once := func(params []byte) error {
		asked = append(asked, string(params))
		c.reply.Sent = time.Unix(int64(len(asked)), 0)
		c.reply.Message.Result = []byte(answers[len(asked)-1])
		return nil
	}
	a := newAnswerer(&Config{Answers: []Answer{AnswerRoots, AnswerSampling}})
	first := `{` + meta + `"name":"echo"}`
	if err := a.rounds(c, []byte(first), once); err != nil {
		t.Fatal(err)
	}
	want := []string{
		first, `{` + meta + `"name":"echo","inputResponses":{"a":` + rooted + `,"b":` + sampled + `},"requestState":"s\n1"}`,
		`{` + meta + `"name":"echo","inputResponses":{}}`,
	}
	for i := range want {
		if i >= len(asked) || asked[i] != want[i] {
			t.Errorf("request %d: got %q, want %s", i, asked, want[i])
		}
	}
	if a.roots.Load() != 1 || a.sampling.Load() != 1 || a.refused.Load() != 0 || !c.reply.Sent.Equal(time.Unix(1, 0)) {
		t.Errorf("got %d roots, %d sampling, %d refused, sent %v; want 1, 1, 0, the time of the first request",
			a.roots.Load(), a.sampling.Load(), a.refused.Load(), c.reply.Sent)
	}
	asked = nil
	a = newAnswerer(&Config{Answers: []Answer{AnswerRoots}})
	if err := a.rounds(c, []byte(first), once); err != nil || len(asked) != 1 || a.refused.Load() != 1 {
		t.Errorf("asked for what is not to be answered: %d requests, %d refused, %v; want 1, 1, nil", len(asked), a.refused.Load(), err)
	}
}
