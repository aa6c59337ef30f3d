package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// listenFrame asks for a subscription.
func listenFrame(c *modern, id, filter string) string {
	return c.frame(id, codec.MethodListen, `{"notifications":`+filter+`}`)
}

// about is a notification of the subscription with an id.
func about(id, method, further string) string {
	if further != "" {
		further = "," + further
	}
	return `{"jsonrpc":"2.0","method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}` + further + `}}`
}

func acknowledged(id, filter string) string {
	return about(id, "notifications/subscriptions/acknowledged", `"notifications":`+filter)
}

// ended are the last frames of a subscription that the server ends.
func ended(id string) []string {
	return []string{
		about(id, "notifications/cancelled", `"requestId":`+id+`,"reason":"the server ends the subscription"`),
		`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","_meta":{` + serverInfo +
			`,"io.modelcontextprotocol/subscriptionId":` + id + `}}}`,
	}
}

// TestListenFilter checks which part of a filter is honoured, first in an empty
// server.
func TestListenFilter(t *testing.T) {
	bubble(t, engine.Options{}, func(t *testing.T, full *engine.Engine) {
		empty, _ := newEngine(t, nil)
		const all = `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:","b:"]}`
		for _, c := range []struct {
			e            *engine.Engine
			id, filter   string
			acknowledges string
		}{
			{full, `1`, all, `{"toolsListChanged":true,"resourcesListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:","b:"]}`},
			{empty, `1`, all, `{}`},
			{full, `"1"`, `{"toolsListChanged":true}`, `{"toolsListChanged":true}`},
			{full, `"\u0061"`, `{"toolsListChanged":false,"promptsListChanged":true}`, `{"promptsListChanged":true}`},
			{full, `-0`, `{}`, `{}`},
			{full, `1`, `{"toolsListChanged":1,"promptsListChanged":"true","resourcesListChanged":null}`, `{}`},
			{full, `1`, `{"unknown":true,"ToolsListChanged":true}`, `{}`},
			{full, `1`, `{"resourceSubscriptions":[]}`, `{"resourceSubscriptions":[]}`},
			{full, `1`, `{"resourceSubscriptions":["a\u0062:","\""]}`, `{"resourceSubscriptions":["ab:","\""]}`},
			{full, `1`, "{\"resourceSubscriptions\":[\n\"a:\" ,\r\n\"b:\"]}", `{"resourceSubscriptions":["a:","b:"]}`},
		} {
			client := newModern(t, c.e)
			ctx, cancel := context.WithCancel(t.Context())
			r, done := client.start(ctx, listenFrame(client, c.id, c.filter))
			synctest.Wait()
			checkFrames(t, "listen to "+c.filter, r.take(), acknowledged(c.id, c.acknowledges))
			cancel()
			<-done
		}
		for _, filter := range []string{`null`, `[]`, `true`, `{"resourceSubscriptions":"a:"}`, `{"resourceSubscriptions":{"a":1}}`,
			`{"resourceSubscriptions":["a:",7]}`, `{"resourceSubscriptions":["` + strings.Repeat(`a:","`, 1000) + `"]}`} {
			got := newModern(t, full).result(codec.MethodListen, `{"notifications":`+filter+`}`)
			if !strings.HasPrefix(got, "-32602 ") {
				t.Errorf("listen to %.40s: got %s, want -32602", filter, got)
			}
		}
		check(t, "listen to nothing", newModern(t, full).result(codec.MethodListen, ""), `-32602 Invalid params: "notifications" must be an object`)
		if got := full.Stats(); got.Subscriptions != 0 || got.ActiveRequests != 0 {
			t.Errorf("Stats: got %+v, want nothing left", got)
		}
		_ = empty.Shutdown(t.Context())
	})
}

// TestListen has two clients listen to different things.
func TestListen(t *testing.T) {
	bubble(t, engine.Options{ListChangedInterval: 100 * ms}, func(t *testing.T, e *engine.Engine) {
		must(t, addTool(e, engine.Tool{Name: "talk"}, func(ctx context.Context, c *engine.Call) (string, error) {
			c.Progress(ctx, 1, 2)
			return "", c.Log(ctx, engine.LevelError, "", "l")
		}))
		time.Sleep(time.Minute)
		client := newModern(t, e).asking(`"progressToken":1,"io.modelcontextprotocol/logLevel":"debug"`)
		ctx, cancel := context.WithCancel(t.Context())
		tools, toolsDone := client.start(ctx, listenFrame(client, `7`, `{"toolsListChanged":true,"resourceSubscriptions":["a:","sub:1"]}`))
		rest, restDone := client.start(t.Context(), listenFrame(client, `"7"`, `{"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a:"]}`))
		synctest.Wait()
		tools.take()
		rest.take()
		checkBoth := func(what string, wantTools, wantRest []string) {
			t.Helper()
			synctest.Wait()
			checkFrames(t, what+", 7", tools.take(), wantTools...)
			checkFrames(t, what+`, "7"`, rest.take(), wantRest...)
		}
		const toolsChanged, promptsChanged = "notifications/tools/list_changed", "notifications/prompts/list_changed"
		const resourcesChanged, updated = "notifications/resources/list_changed", "notifications/resources/updated"
		echo(t, e, "new")
		checkBoth("a new tool", []string{about(`7`, toolsChanged, "")}, nil)
		must(t, e.AddPrompt(engine.Prompt{Name: "new"}, nil))
		checkBoth("a new prompt", nil, []string{about(`"7"`, promptsChanged, "")})
		must(t, e.AddResource(engine.Resource{URI: "new:", Name: "n"}, nil))
		checkBoth("a new resource", nil, []string{about(`"7"`, resourcesChanged, "")})
		e.ResourceUpdated("a:")
		checkBoth("an update", []string{about(`7`, updated, `"uri":"a:"`)}, []string{about(`"7"`, updated, `"uri":"a:"`)})
		e.ResourceUpdated("sub:1")
		e.ResourceUpdated("sub:2")
		e.ResourceUpdated("list:tools")
		checkBoth("another update", []string{about(`7`, updated, `"uri":"sub:1"`)}, nil)
		client.frames(codec.MethodToolsCall, `{"name":"talk"}`)
		e.Log(engine.LevelError, "", "to all")
		checkBoth("progress and messages of others", nil, nil)
		time.Sleep(time.Minute)
		for range 10 {
			echo(t, e, "new")
		}
		time.Sleep(time.Second)
		checkBoth("a burst", []string{about(`7`, toolsChanged, ""), about(`7`, toolsChanged, "")}, nil)
		if got := e.Stats().Subscriptions; got != 2 {
			t.Errorf("Subscriptions: got %d, want 2", got)
		}
		cancel()
		<-toolsDone
		echo(t, e, "new")
		e.ResourceUpdated("a:")
		checkBoth("after the end of the first", nil, []string{about(`"7"`, updated, `"uri":"a:"`)})
		if got := e.Stats().Subscriptions; got != 1 {
			t.Errorf("Subscriptions: got %d, want 1", got)
		}
		must(t, e.Shutdown(t.Context()))
		<-restDone
		checkBoth("at the shutdown", nil, ended(`"7"`))
		check(t, "listen after it", client.result(codec.MethodListen, `{"notifications":{}}`), overloaded)
	})
}

// slowReader is a stream whose Flush waits while somebody else holds the token.
type slowReader struct {
	*reply
	token chan struct{} // capacity 1
}

func (s *slowReader) Flush() {
	<-s.token
	s.token <- struct{}{}
}

// TestListenCoalesces makes 1,000 changes while a client does not read. It gets
// each topic once.
func TestListenCoalesces(t *testing.T) {
	bubble(t, engine.Options{}, func(t *testing.T, e *engine.Engine) {
		client := newModern(t, e)
		slow, quick := &slowReader{new(reply), make(chan struct{}, 1)}, new(reply)
		slow.token <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		var listening sync.WaitGroup
		for stream, id := range map[engine.Stream]string{slow: `1`, quick: `2`} {
			frame := listenFrame(client, id, `{"toolsListChanged":true,"resourceSubscriptions":["a:","b:"]}`)
			listening.Go(func() { client.receive(ctx, frame, headersFor(frame), stream) })
		}
		time.Sleep(time.Second)
		slow.take()
		quick.take()
		<-slow.token
		e.ResourceUpdated("a:") // is queued, and waits to be written
		time.Sleep(time.Second)
		for range 1000 {
			e.ResourceUpdated("a:")
			e.ResourceUpdated("b:")
			time.Sleep(ms)
		}
		e.NotifyListChanged("tools")
		time.Sleep(time.Second)
		if got := len(slow.take()); got != 1 {
			t.Errorf("the slow client, while it does not read: got %d frames, want 1", got)
		}
		slow.token <- struct{}{}
		time.Sleep(time.Second)
		const updated = "notifications/resources/updated"
		checkFrames(t, "the slow client, when it reads", slow.take(),
			about(`1`, updated, `"uri":"a:"`), about(`1`, updated, `"uri":"b:"`), about(`1`, "notifications/tools/list_changed", ""))
		if got := len(quick.take()); got != 2002 {
			t.Errorf("the quick client: got %d frames, want 2,002", got)
		}
		cancel()
		listening.Wait()
	})
}

// TestManyListens opens 1,000 subscriptions that end by a disconnect, and 100 for
// each other way to end. Nothing of them is left.
func TestManyListens(t *testing.T) {
	for name, end := range map[string]func(e *engine.Engine, p *engine.Peer, cancel func()){
		"disconnect":     func(_ *engine.Engine, _ *engine.Peer, cancel func()) { cancel() },
		"end of input":   func(_ *engine.Engine, p *engine.Peer, _ func()) { p.Close(true) },
		"shutdown":       func(e *engine.Engine, _ *engine.Peer, _ func()) { _ = e.Shutdown(context.Background()) },
		"notification":   nil,
		"disconnect too": func(_ *engine.Engine, p *engine.Peer, cancel func()) { p.Close(false); cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := newEngine(t, nil)
			must(t, e.AddResource(engine.Resource{URI: "a:", Name: "n"}, nil))
			client := newModern(t, e)
			client.pipe = engine.NewPeer()
			before := runtime.NumGoroutine()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			n := 100
			if name == "disconnect" {
				n = 1000
			}
			replies, dones := make([]*reply, n), make([]<-chan struct{}, n)
			for i := range n {
				replies[i], dones[i] = client.start(ctx, listenFrame(client, fmt.Sprint(i), `{"resourceSubscriptions":["a:","`+fmt.Sprint(i)+`:"]}`))
			}
			waitFor(t, "the acknowledgements", func() bool { return e.Stats().Subscriptions == n && total(replies) == n })
			e.ResourceUpdated("a:")
			e.ResourceUpdated("7:")
			waitFor(t, "the notifications", func() bool { return total(replies) == 2*n+1 })
			if end != nil {
				end(e, client.pipe, cancel)
			} else {
				for i := range n {
					if !client.pipe.Cancel([]byte(fmt.Sprint(i))) {
						t.Errorf("Cancel(%d): got false", i)
					}
				}
			}
			for _, done := range dones {
				<-done
			}
			want := 2*n + 1
			if name == "shutdown" {
				want += 2 * n
			}
			if got := total(replies); got != want {
				t.Errorf("frames in all: got %d, want %d", got, want)
			}
			if got := e.Stats(); got.Subscriptions != 0 || got.ActiveRequests != 0 || got.Sessions != 0 {
				t.Errorf("Stats: got %+v, want nothing left", got)
			}
			waitFor(t, "goroutines", func() bool { return runtime.NumGoroutine() <= before+2 })
			if got := registeredNames(e, "listener/"); len(got) != 0 {
				t.Errorf("registered listeners: got %d, want 0", len(got))
			}
		})
	}
}

// total counts the frames of replies.
func total(replies []*reply) (n int) {
	for _, r := range replies {
		r.mu.Lock()
		n += len(r.frames)
		r.mu.Unlock()
	}
	return n
}

// waitFor waits until something holds that other goroutines bring about.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(ms)
	}
}

// registeredNames gives the names in the registry of actors that begin with a
// prefix.
func registeredNames(e *engine.Engine, prefix string) (names []string) {
	for _, bucket := range e.System().ActorSystem().ProcessRegistry.LocalPIDs.LocalPIDs {
		for _, name := range bucket.Keys() {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestListenLimits holds subscriptions to the limit on requests.
func TestListenLimits(t *testing.T) {
	bubble(t, engine.Options{Limits: actors.Limits{MaxRequests: 2}}, func(t *testing.T, e *engine.Engine) {
		client := newModern(t, e)
		client.pipe = engine.NewPeer()
		for i := range 2 {
			client.start(t.Context(), listenFrame(client, fmt.Sprint(i), `{}`))
		}
		synctest.Wait()
		check(t, "a third", client.result(codec.MethodListen, `{"notifications":{}}`), overloaded)
		r, done := client.start(t.Context(), listenFrame(client, `0`, `{}`))
		<-done
		checkFrames(t, "an id that is in flight", r.take(),
			`{"jsonrpc":"2.0","id":0,"error":{"code":-32600,"message":"Invalid Request: a request with this id is in flight"}}`)
		client.pipe.Cancel([]byte(`0`))
		synctest.Wait()
		r, _ = client.start(t.Context(), listenFrame(client, `0`, `{}`))
		synctest.Wait()
		checkFrames(t, "when there is room", r.take(), acknowledged(`0`, `{}`))
		client.pipe.Close(true)
		synctest.Wait()
	})
}
