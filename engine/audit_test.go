package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// TestAuditOutcomes checks the record of each request that ends by itself.
func TestAuditOutcomes(t *testing.T) {
	for _, rev := range bothEras {
		var audit records
		var refusal error
		e := guarded(t, engine.Options{
			Audit:  audit.add,
			Before: []before{func(context.Context, *engine.Call) error { return refusal }},
		})
		for name, f := range map[string]func() error{
			"fails":   func() error { return errors.New("oh") },
			"errs":    func() error { return codec.NewError(-7, "no") },
			"panics":  func() error { panic("oh") },
			"late":    func() error { return fmt.Errorf("%w", codec.ErrTimeout) },
			"stopped": func() error { return codec.ErrCancelled },
		} {
			must(t, e.AddRawTool(engine.Tool{Name: name}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
				return out, f()
			}))
		}
		must(t, e.AddRawTool(engine.Tool{Name: "typed", InputSchema: []byte(`{"type":"object","required":["x"]}`)}, nil))
		must(t, e.AddMethod("own/method", func(_ context.Context, c *engine.Call) error { c.SetResult([]byte("{}")); return nil }))
		long := strings.Repeat("é", 200)
		c := callerAs(t, e, rev, "guest")
		for _, r := range []struct {
			method, params string
			refusal        error
			want           string
		}{
			{codec.MethodToolsCall, `{"name":"open"}`, nil, "open ok 0"},
			{codec.MethodToolsCall, `{"name":"fails"}`, nil, "fails tool_error 0"},
			{codec.MethodToolsCall, `{"name":"typed","arguments":{}}`, nil, "typed tool_error 0"},
			{codec.MethodToolsCall, `{"name":"errs"}`, nil, "errs error -7"},
			{codec.MethodToolsCall, `{"name":"panics"}`, nil, "panics panic -32603"},
			{codec.MethodToolsCall, `{"name":"late"}`, nil, "late timeout -31901"},
			{codec.MethodToolsCall, `{"name":"stopped"}`, nil, "stopped cancelled -31902"},
			{codec.MethodToolsCall, `{"name":"open"}`, errors.New("no"), "open refused 0"},
			{codec.MethodToolsCall, `{"name":"open"}`, codec.NewError(-8, "no"), "open refused -8"},
			{codec.MethodPromptsGet, `{"name":"open"}`, errors.New("no"), "open refused -32603"},
			{codec.MethodToolsCall, `{"name":"missing"}`, nil, "missing error -32602"},
			{codec.MethodToolsCall, `{"name":"secret"}`, nil, "secret refused -32602"},
			{codec.MethodPromptsGet, `{"name":"secret"}`, nil, "secret refused -32602"},
			{codec.MethodResourcesRead, `{"uri":"t-secret:1"}`, nil, "t-secret:1 refused -32002"},
			{codec.MethodComplete, `{"ref":{"type":"ref/prompt","name":"secret"},"argument":{"name":"a","value":""}}`, nil, " refused -32602"},
			{codec.MethodToolsCall, `{"name":"` + long + `"}`, nil, long[:256] + " error -32602"},
			{codec.MethodToolsCall, `{}`, nil, " error -32602"},
			{codec.MethodToolsCall, `{"name":"open","arguments":7}`, nil, "open error -32602"},
			{codec.MethodResourcesRead, `{"uri":"r:open"}`, nil, "r:open ok 0"},
			{codec.MethodToolsList, `{}`, nil, " ok 0"},
			{codec.MethodToolsList, `{"cursor":"x"}`, nil, " error -32602"},
			{"own/method", `{}`, nil, " ok 0"},
			{"no/method", `{}`, nil, " error -32601"},
		} {
			refusal = r.refusal
			c.result(r.method, r.params)
			want := r.method + " " + r.want
			if rev.IsModern() {
				want = strings.Replace(want, "-32002", "-32602", 1)
			}
			checkList(t, fmt.Sprint(rev, " ", r.method, " ", r.params), audit.outcomes(), want)
		}
	}
}

// TestAuditRecord checks the other fields of a record.
func TestAuditRecord(t *testing.T) {
	for _, with := range []bool{false, true} {
		for _, rev := range bothEras {
			synctest.Test(t, func(t *testing.T) {
				var audit records
				e := guarded(t, engine.Options{
					Audit: audit.add, AuditArguments: with,
					Before: []before{func(_ context.Context, c *engine.Call) error { return c.SetArguments([]byte(`{"set":1}`)) }},
				})
				must(t, e.AddRawTool(engine.Tool{Name: "slow"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
					time.Sleep(3 * time.Second)
					return engine.AppendTextResult(out, "done"), nil
				}))
				begun := time.Now()
				const params = `{"name":"slow","arguments":{"given":1}}`
				var want engine.Record
				if rev.IsModern() {
					c := modernAs(t, e, "guest")
					c.send(c.frame(`"\u0041"`, codec.MethodToolsCall, params))
				} else {
					p := connectAs(t, e, rev, "guest")
					p.receive(as("guest"), request(`"\u0041"`, codec.MethodToolsCall, params), new(reply))
					want.Session = audited(t, p.session.Key())
				}
				list := audit.take()
				if len(list) != 1 {
					t.Fatalf("records: got %v, want one", list)
				}
				got := list[0]
				want = engine.Record{
					Time: begun, Duration: 3 * time.Second, Principal: "guest", Session: want.Session, Revision: rev,
					Method: codec.MethodToolsCall, Name: "slow", RequestID: `"\u0041"`, Outcome: engine.AuditOK,
				}
				if with {
					want.Arguments = []byte(`{"given":1}`)
				}
				check(t, fmt.Sprint(rev, " record"), fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
				_ = e.Shutdown(t.Context())
				time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
			})
		}
	}
}

// audited checks what a session's key looks like in records.
func audited(t *testing.T, key string) string {
	t.Helper()
	name := engine.AuditName(key)
	if len(name) != 32 || strings.Contains(name, key) || name == engine.AuditName(key+"x") {
		t.Errorf("name of session %s: got %s, want 32 digits that are its own", key, name)
	}
	return name
}

// TestAuditEnds checks the records of requests that are ended from outside, of
// which there is one although their handlers return later.
func TestAuditEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var audit records
		e, _ := newEngine(t, &engine.Options{Audit: audit.add, HandlerTimeout: time.Minute})
		release := make(chan struct{})
		must(t, e.AddRawTool(engine.Tool{Name: "deaf"}, func(_ context.Context, _ *engine.Call, _, out []byte) ([]byte, error) {
			<-release
			return engine.AppendTextResult(out, "done"), nil
		}))
		b := addBlocker(t, e)
		deaf := func(id string) string { return request(id, codec.MethodToolsCall, `{"name":"deaf"}`) }
		p, closing := connect(t, e, engine.Rev20251125), connect(t, e, engine.Rev20251125)
		c := newModern(t, e)
		c.pipe = engine.NewPeer()

		p.start(deaf("1"))
		synctest.Wait()
		time.Sleep(time.Second)
		p.notify(codec.NotifyCancelled, `{"requestId":1}`)
		synctest.Wait()
		checkEnd(t, "a cancelled call", &audit, time.Second, "tools/call deaf cancelled 0")

		p.start(deaf("2"))
		time.Sleep(time.Minute)
		synctest.Wait()
		checkEnd(t, "a call whose time is over", &audit, time.Minute, "tools/call deaf timeout -31901")

		closing.start(deaf("3"))
		synctest.Wait()
		closing.session.Close()
		synctest.Wait()
		checkEnd(t, "a call of a session that ends", &audit, 0, "tools/call deaf cancelled 0")

		c.start(context.Background(), c.frame("4", codec.MethodToolsCall, `{"name":"deaf"}`))
		synctest.Wait()
		c.pipe.Cancel([]byte("4"))
		synctest.Wait()
		checkEnd(t, "a cancelled call of the stateless era", &audit, 0, "tools/call deaf cancelled 0")

		ctx, cancel := context.WithCancel(context.Background())
		c.pipe = nil
		c.start(ctx, c.frame("5", codec.MethodToolsCall, `{"name":"block"}`))
		<-b.started
		cancel()
		synctest.Wait()
		checkEnd(t, "a call whose client has gone", &audit, 0, "tools/call block cancelled 0")

		close(release)
		synctest.Wait()
		checkList(t, "when the handlers have returned", audit.outcomes())

		p.start(block("6"))
		<-b.started
		ended, stop := context.WithCancel(t.Context())
		stop()
		_ = e.Shutdown(ended)
		checkEnd(t, "a call that Shutdown cuts off", &audit, 0, "tools/call block cancelled -31902")
		p.send(block("7"))
		c.send(c.frame("8", codec.MethodToolsCall, `{"name":"block"}`))
		checkList(t, "calls after Shutdown", audit.outcomes(),
			"tools/call block refused -31900", "tools/call block refused -31900")
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}

// checkEnd checks the one record of a call and its duration.
func checkEnd(t *testing.T, what string, audit *records, took time.Duration, want string) {
	t.Helper()
	list := audit.take()
	if len(list) != 1 {
		t.Errorf("%s: got records %+v, want one", what, list)
		return
	}
	r := list[0]
	check(t, what, fmt.Sprint(r.Method, " ", r.Name, " ", r.Outcome, " ", r.Code), want)
	if r.Duration != took {
		t.Errorf("%s: got duration %v, want %v", what, r.Duration, took)
	}
}

// TestAuditRefusals checks the records of requests that are not admitted.
func TestAuditRefusals(t *testing.T) {
	var audit records
	e, _ := newEngine(t, &engine.Options{Audit: audit.add, Limits: actors.Limits{MaxRequests: 2, MaxRequestsPerSession: 1}})
	b := addBlocker(t, e)
	p := connect(t, e, engine.Rev20251125)
	_, first := p.start(block("1"))
	<-b.started
	p.send(block("1"))
	p.send(block("2"))
	c := newModern(t, e)
	c.pipe = engine.NewPeer()
	_, second := c.start(context.Background(), c.frame("1", codec.MethodToolsCall, `{"name":"block"}`))
	<-b.started
	c.send(c.frame("1", codec.MethodToolsCall, `{"name":"block"}`))
	c.send(c.frame("2", codec.MethodToolsCall, `{"name":"block"}`))
	c.pipe = nil
	frame := c.frame("3", codec.MethodToolsCall, `{"name":"block"}`)
	headers := headersFor(frame)
	headers.Set("Mcp-Name", "other")
	c.sent(frame, headers)
	c.send(strings.Replace(c.frame("4", codec.MethodToolsCall, `{"name":"block"}`), "2026-07-28", "2027-01-01", 1))
	c.send(c.frame("5", codec.MethodToolsCall, `{"name":"block","requestState":"forged"}`))
	open(t, e).send(block("6"))
	checkList(t, "refusals", audit.outcomes(),
		"tools/call block refused -31900", // MaxRequestsPerSession, before the id is looked at
		"tools/call block refused -31900",
		"tools/call block error -32600", // the id is in flight
		"tools/call block refused -31900",
		"tools/call block error -32020",
		"tools/call block error -32022",
		"tools/call block error -32602",
		"tools/call block error -32600", // before the handshake
	)
	close(b.release)
	<-first
	<-second
	checkList(t, "what was admitted", audit.outcomes(), "tools/call block ok 0", "tools/call block ok 0")
}

// TestAuditRateLimit checks the record of a call that comes too soon.
func TestAuditRateLimit(t *testing.T) {
	for _, rev := range bothEras {
		var audit records
		e := guarded(t, engine.Options{
			Audit:     audit.add,
			RateLimit: func(string, string) engine.Rate { return engine.Rate{PerSecond: 0.001, Burst: 1} },
		})
		c := callerAs(t, e, rev, "guest")
		for range 2 {
			c.result(codec.MethodToolsCall, `{"name":"open"}`)
			c.result(codec.MethodToolsCall, `{"name":"secret"}`)
		}
		checkList(t, fmt.Sprint(rev, " calls"), audit.outcomes(),
			"tools/call open ok 0", "tools/call secret refused -32602", // what is hidden has no rate that would betray it
			"tools/call open refused -31900", "tools/call secret refused -32602")
	}
}

// TestAuditBatch checks that each request of a batch has its record.
func TestAuditBatch(t *testing.T) {
	var audit records
	e, _ := newEngine(t, &engine.Options{Audit: audit.add})
	echo(t, e, "echo")
	p := connect(t, e, engine.Rev20250326)
	p.session.ReceiveBatch(context.Background(), []byte(`[`+request("1", codec.MethodToolsCall, `{"name":"echo"}`)+`,`+
		`{"jsonrpc":"2.0","method":"notifications/x"},`+request("2", codec.MethodToolsCall, `{"name":"echo"}`)+`]`), new(reply))
	checkList(t, "batch", audit.outcomes(), "tools/call echo ok 0", "tools/call echo ok 0")
}

// TestAuditIsTheLast checks that the answer is queued, and no lock held, when
// the record is made, and that a hook which panics does no harm.
func TestAuditIsTheLast(t *testing.T) {
	for _, rev := range bothEras {
		var e *engine.Engine
		r := new(reply)
		calls := 0
		e, l := newEngine(t, &engine.Options{Audit: func(engine.Record) {
			calls++
			if r.finished() != calls {
				t.Errorf("%v: the record came after %d answers, want %d", rev, r.finished(), calls)
			}
			e.RemoveTool("no such")
			e.NotifyListChanged("tools")
			_ = e.Stats()
			e.EachSession(func(s *engine.Session) { s.Touch() })
			panic("disk full")
		}})
		echo(t, e, "echo")
		send := func(id int, name string) {
			params := `{"name":"` + name + `"}`
			if rev.IsModern() {
				c := newModern(t, e)
				frame := c.frame(strconv.Itoa(id), codec.MethodToolsCall, params)
				c.receive(c.ctx, frame, headersFor(frame), r)
				return
			}
			connect(t, e, rev).receive(context.Background(), request(strconv.Itoa(id), codec.MethodToolsCall, params), r)
		}
		for i, name := range []string{"echo", "no such", "echo"} {
			send(i, name)
		}
		if got := r.take(); len(got) != 3 || calls != 3 {
			t.Errorf("%v: got answers %q and %d records, want 3 of each", rev, got, calls)
		}
		if got := strings.Count(l.String(), "disk full"); got != 3 {
			t.Errorf("%v: the panic was logged %d times, want 3: %s", rev, got, l)
		}
	}
}
