package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestCountsAreTheServers runs against every kind of reply; the result holds exactly what the server has seen.
func TestCountsAreTheServers(t *testing.T) {
	base := Config{Concurrency: 4, Sessions: 12, Requests: 200}
	status := func(code int, body string) func(http.ResponseWriter, int64) bool {
		return func(w http.ResponseWriter, n int64) bool {
			if n%5 != 0 {
				return false
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
			return true
		}
	}
	answer := func(body string) func(http.ResponseWriter, int64) bool { return status(200, body) }
	tests := []struct {
		name  string
		f     *fakeServer
		c     func(*Config)
		check func(*Requests) bool
	}{
		{"plain", &fakeServer{}, nil, func(q *Requests) bool { return q.OK == 200 }},
		{"more workers than sessions", &fakeServer{delay: time.Millisecond}, func(c *Config) { c.Sessions, c.Concurrency = 3, 8 }, func(q *Requests) bool { return q.OK == 200 }},
		{"open loop", &fakeServer{}, func(c *Config) { c.Concurrency, c.Rate = 0, 1000 }, func(q *Requests) bool { return q.OK == 200 }},
		{"warm-up", &fakeServer{}, func(c *Config) { c.Concurrency, c.Rate, c.Warmup = 0, 500, 100*time.Millisecond }, func(q *Requests) bool { return q.OK == 200 && q.Warmup == 50 }},
		{"sse", &fakeServer{sse: true}, nil, func(q *Requests) bool { return q.OK == 200 }},
		{"chunked", &fakeServer{chunked: true}, nil, func(q *Requests) bool { return q.OK == 200 }},
		{"closing idle connections", &fakeServer{closeIdle: true, delay: time.Millisecond}, func(c *Config) { c.Concurrency, c.Rate, c.Requests = 0, 100, 50 }, func(q *Requests) bool { return q.OK == 50 }},
		{"no session ids", &fakeServer{stateless: true}, nil, func(q *Requests) bool { return q.OK == 200 }},
		{"503", &fakeServer{before: status(503, "busy")}, nil, func(q *Requests) bool {
			return q.OK == 160 && q.HTTPError == 40 && q.HTTPCodes["503"] == 40 && strings.Contains(q.Examples["http_error"], "busy")
		}},
		{"RPC errors", &fakeServer{before: answer(`{"jsonrpc":"2.0","error":{"code":-32602,"message":"no such thing"}}`)}, nil, func(q *Requests) bool {
			return q.RPCError == 40 && q.RPCCodes["-32602"] == 40 && strings.Contains(q.Examples["rpc_error"], "no such thing")
		}},
		{"no JSON-RPC", &fakeServer{before: answer(`hello`)}, nil, func(q *Requests) bool { return q.TransportError == 40 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := base
			c.URL = tt.f.start(t)
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			if tt.c != nil {
				tt.c(&c)
			}
			res, err := Run(context.Background(), c)
			if err != nil {
				t.Fatal(err)
			}
			q, n := &res.Requests, int64(c.Sessions)
			if q.Total+q.Warmup != tt.f.calls.Load() || q.Total != c.Requests || !tt.check(q) || q.OK != all(res).Response.Count {
				t.Errorf("requests = %+v, server saw %d", *q, tt.f.calls.Load())
			}
			s, deletes := res.Sessions, tt.f.deletes.Load()
			if s.Opened != n || s.Opened != tt.f.initializes.Load() || s.Opened != tt.f.initialized.Load() || s.Failed+s.Lost != 0 || s.Setup.Count != n {
				t.Errorf("sessions = %+v, server saw %d initialize and %d initialized", s, tt.f.initializes.Load(), tt.f.initialized.Load())
			}
			if s.Closed != n || deletes != n && !tt.f.stateless {
				t.Errorf("closed = %d, server saw %d DELETE, want %d", s.Closed, deletes, n)
			}
			if d := tt.f.duplicateIDs(); d != 0 {
				t.Errorf("%d ids were used more than once", d)
			}
			if tt.f.sse && tt.f.pongs.Load() != q.Total {
				t.Errorf("%d of %d pings were answered", tt.f.pongs.Load(), q.Total)
			}
		})
	}
}

// TestOutcomesByReply sorts replies into outcomes.
func TestOutcomesByReply(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		status     int
		want       outcome
		code       int
	}{
		{"isError", `{"jsonrpc":"2.0","id":9,"result":{"content":[],"isError":true}}`, 200, outcomeToolError, 0},
		{"isError false", `{"jsonrpc":"2.0","id":9,"result":{"isError":false}}`, 200, outcomeOK, 0},
		{"400 with the error of this call", `{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"x"}}`, 400, outcomeRPCError, -32602},
		{"400 with another id", `{"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"x"}}`, 400, outcomeHTTPError, 400},
		{"404 for the method", `{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"x"}}`, 404, outcomeRPCError, -32601},
		{"404 for the session", `{"jsonrpc":"2.0","id":9,"error":{"code":-32001,"message":"x"}}`, 404, outcomeHTTPError, 404},
		{"503 with an error", `{"jsonrpc":"2.0","id":9,"error":{"code":-31900,"message":"x"}}`, 503, outcomeHTTPError, 503},
		{"redirect", ``, 302, outcomeHTTPError, 302},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, s := connect(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			defer c.close()
			c.ids.Store(8)
			err := s.request(c, &query{method: "tools/call", params: []byte("{}")}, time.Now().Add(5*time.Second))
			if o, code := verdictOf(err, &c.reply, c.id); o != tt.want || code != tt.code {
				t.Errorf("%d %s = %v, %d (%v); want %v, %d", tt.status, tt.body, o, code, err, tt.want, tt.code)
			}
		})
	}
}

// TestTimeoutIsTold counts a call that is not answered as a timeout, and tells the server so.
func TestTimeoutIsTold(t *testing.T) {
	f := &fakeServer{before: func(w http.ResponseWriter, n int64) bool {
		if n == 3 {
			time.Sleep(400 * time.Millisecond)
		}
		return false
	}}
	res, err := Run(context.Background(), Config{URL: f.start(t), Concurrency: 1, Requests: 10, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if q := &res.Requests; q.Timeout < 1 || q.OK+q.Timeout != 10 || f.cancels.Load() != q.Timeout {
		t.Errorf("requests = %+v, cancellations %d; want the third call to time out", *q, f.cancels.Load())
	}
}

// TestLostSessions opens a new session where the server has forgotten one.
func TestLostSessions(t *testing.T) {
	f := &fakeServer{}
	f.before = func(_ http.ResponseWriter, n int64) bool {
		if n == 100 {
			f.forget()
		}
		return false
	}
	res, err := Run(context.Background(), Config{URL: f.start(t), Rate: 200, Sessions: 5, Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, q := &res.Sessions, &res.Requests
	if s.Lost != 5 || s.Opened != 10 || s.Closed != 5 || f.initializes.Load() != 10 || f.deletes.Load() != 5 {
		t.Errorf("sessions = %+v, server saw %d initialize and %d DELETE; want 5 lost and opened again", *s, f.initializes.Load(), f.deletes.Load())
	}
	if q.HTTPError != f.refused.Load() || q.HTTPCodes["404"] < 5 || q.OK+q.HTTPError+q.TransportError != 400 || q.OK < 200 {
		t.Errorf("requests = %+v, server refused %d", *q, f.refused.Load())
	}
}

// TestInterrupt ends a run early with everything in order.
func TestInterrupt(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"open":   func(c *Config) { c.Rate, c.Concurrency = 200, 0 },
		"closed": func(*Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeServer{delay: 20 * time.Millisecond}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := Config{URL: f.start(t), Concurrency: 4, Duration: time.Minute}
			change(&c)
			time.AfterFunc(1200*time.Millisecond, cancel)
			begin := time.Now()
			res, err := Run(ctx, c)
			if err != nil {
				t.Fatal(err)
			}
			q := &res.Requests
			if took := time.Since(begin); took > 10*time.Second || !res.Interrupted {
				t.Errorf("the run took %v, interrupted %v", took, res.Interrupted)
			}
			if q.Total != f.calls.Load() || q.OK != q.Total || q.Dropped > 5 || res.Sessions.Closed != f.deletes.Load() || res.Sessions.Closed != 10 && name == "open" {
				t.Errorf("requests = %+v, sessions = %+v; server saw %d calls and %d DELETE", *q, res.Sessions, f.calls.Load(), f.deletes.Load())
			}
			if res.Conditions.DurationS > 5 || res.Conditions.DurationS < 0.5 {
				t.Errorf("duration = %v s, want what was measured", res.Conditions.DurationS)
			}
		})
	}
}

// TestInterruptGivesUpStuckCalls ends calls that are not answered, as cancelled and not as timeouts.
func TestInterruptGivesUpStuckCalls(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	f := &fakeServer{before: func(http.ResponseWriter, int64) bool {
		<-release
		return false
	}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(300*time.Millisecond, cancel)
	begin := time.Now()
	res, err := Run(ctx, Config{URL: f.start(t), Concurrency: 3, Duration: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); res.Requests.Cancelled != 3 || res.Requests.Total != 3 || res.Sessions.Closed != 3 || took > 12*time.Second {
		t.Errorf("requests = %+v, sessions = %+v after %v; want 3 cancelled, 3 closed", res.Requests, res.Sessions, took)
	}
}

// TestStreams opens the GET stream of every session and counts its events.
func TestStreams(t *testing.T) {
	f := &fakeServer{}
	res, err := Run(context.Background(), Config{URL: f.start(t), Rate: 50, Sessions: 20, Duration: time.Second, Streams: true})
	if err != nil {
		t.Fatal(err)
	}
	if s := res.Streams; s.OpenPeak != 20 || s.Events != 60 {
		t.Errorf("streams = %+v, want 20 open and 60 events", s)
	}
}

// TestChoosingTools never calls a tool that may change data unless told to.
func TestChoosingTools(t *testing.T) {
	const unsafe = `[{"name":"drop_table","inputSchema":{"type":"object"}}]`
	for _, tt := range []struct {
		name, tools string
		change      func(*Config)
		want        string // params that were sent, or part of the error
	}{
		{"first read-only", "", nil, `{"name":"echo","arguments":{"message":"x"}}`},
		{"named", "", func(c *Config) { c.Tools = []ToolChoice{{"write", 1}} }, `{"name":"write","arguments":{}}`},
		{"arguments", "", func(c *Config) { c.Args = json.RawMessage("{\n \"message\": 1e400 }") }, `{"name":"echo","arguments":{"message":1e400}}`},
		{"none", unsafe, nil, "no tool declares readOnlyHint, and calling others can change data: name one with --tool, or give --any-tool to call the first (the server lists: drop_table)"},
		{"any", unsafe, func(c *Config) { c.AnyTool = true }, `{"name":"drop_table","arguments":{}}`},
		{"empty", "[]", nil, "the server lists no tools"},
		{"unknown", "", func(c *Config) { c.Tools = []ToolChoice{{"ehco", 1}} }, `the server does not list a tool "ehco": choose one of write, echo`},
		{"unknown with arguments", "", func(c *Config) { c.Tools, c.Args = []ToolChoice{{"x", 1}}, json.RawMessage(`{}`) }, `{"name":"x","arguments":{}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fakeServer{tools: tt.tools}
			c := Config{URL: f.start(t), Requests: 4, Concurrency: 2}
			if tt.change != nil {
				tt.change(&c)
			}
			_, err := Run(context.Background(), c)
			var u *UsageError
			switch {
			case strings.HasPrefix(tt.want, "{"):
				if err != nil || f.tokens[tt.want] != 4 {
					t.Errorf("calls = %v, %v; want 4 of %s", f.tokens, err, tt.want)
				}
			case !errors.As(err, &u) || !strings.Contains(err.Error(), tt.want):
				t.Errorf("error = %v, want %q", err, tt.want)
			case f.calls.Load() != 0 || f.deletes.Load() != 1:
				t.Errorf("%d calls and %d DELETE were sent, want 0 and 1", f.calls.Load(), f.deletes.Load())
			}
		})
	}
}

// TestWeights shares the calls among the tools.
func TestWeights(t *testing.T) {
	f := &fakeServer{}
	res, err := Run(context.Background(), Config{URL: f.start(t), Concurrency: 2, Requests: 2000, Tools: []ToolChoice{{"echo", 3}, {"write", 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Latency) != 3 || res.Latency[0].Tool != "echo" || res.Latency[1].Tool != "write" || res.Latency[2].Method != "*" {
		t.Fatalf("latency rows = %+v, want echo, write and all", res.Latency)
	}
	echo, write, sum := res.Latency[0].Response.Count, res.Latency[1].Response.Count, res.Latency[2].Response.Count
	if echo < 1400 || echo > 1600 || echo+write != sum || sum != 2000 {
		t.Errorf("%d echo and %d write of %d, want 3 to 1 of 2000", echo, write, sum)
	}
}

// TestStdio drives spawned processes, with several calls in flight on each.
func TestStdio(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, tt := range []struct {
		mode               string
		sessions, inFlight int
	}{{"plain", 1, 1}, {"shuffle", 2, 8}, {"stubborn", 1, 1}} {
		t.Setenv(childEnv, tt.mode)
		res, err := Run(context.Background(), Config{
			Command: []string{os.Args[0]}, Sessions: tt.sessions, Concurrency: tt.inFlight, Requests: 400,
		})
		if err != nil {
			t.Fatalf("%s: %v", tt.mode, err)
		}
		s := res.Sessions
		if res.Requests.OK != 400 || s.Opened != int64(tt.sessions) || s.Closed != s.Opened || s.Lost != 0 {
			t.Errorf("%s: requests = %+v, sessions = %+v; want 400 ok and %d closed", tt.mode, res.Requests, s, tt.sessions)
		}
		if v := res.Server; v == nil || v.PID == 0 || v.Processes != tt.sessions || v.RSSPeakBytes == 0 {
			t.Errorf("%s: server = %+v, want its processes", tt.mode, v)
		}
		if c := res.Conditions; c.Transport != "stdio" || c.Protocol != "2025-06-18" {
			t.Errorf("%s: conditions = %+v", tt.mode, c)
		}
	}
}
