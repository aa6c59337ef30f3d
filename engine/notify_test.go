package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

const ms = time.Millisecond

// bubble runs a test in virtual time with an engine of its own, which has
// something in each list.
func bubble(t *testing.T, o engine.Options, f func(t *testing.T, e *engine.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, &o)
		for _, l := range lists {
			must(t, l.add(e, "first"))
		}
		time.Sleep(time.Minute) // past the interval that the registrations began
		f(t, e)
		_ = e.Shutdown(t.Context())
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}

func changed(list string) string {
	return `{"jsonrpc":"2.0","method":"notifications/` + list + `/list_changed"}`
}

func TestListChanged(t *testing.T) {
	bubble(t, engine.Options{ListChangedInterval: 100 * ms}, func(t *testing.T, e *engine.Engine) {
		p := connect(t, e, engine.Rev20251125)
		checkNotes := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			checkFrames(t, what, p.notes.take(), want...)
		}
		checkNotes("after the handshake")
		echo(t, e, "a")
		checkNotes("the first change, at once", changed("tools"))
		for i := range 15 { // at 0, 10, ... 140 ms
			echo(t, e, fmt.Sprint("b", i))
			time.Sleep(10 * ms)
		}
		checkNotes("at 150 ms of a burst", changed("tools"))
		time.Sleep(49 * ms)
		checkNotes("just before the second interval is over")
		time.Sleep(2 * ms)
		checkNotes("the trailing edge", changed("tools"))
		time.Sleep(time.Second)
		checkNotes("a second later")

		for _, l := range lists {
			must(t, l.add(e, "second"))
		}
		checkNotes("a change in each list; resources and templates are one", changed("tools"), changed("resources"), changed("prompts"))
		time.Sleep(time.Second)
		checkNotes("the template, which came within the interval", changed("resources"))
		e.RemovePrompt("second")
		checkNotes("a removal", changed("prompts"))
		time.Sleep(time.Second)
		if e.RemovePrompt("second") || e.RemoveTool("no such") || e.RemoveResource("no such") {
			t.Error("Remove of what is not there: got true")
		}
		checkNotes("removals of nothing")
		for _, list := range []string{"tools", "resources", "prompts", "no such"} {
			e.NotifyListChanged(list)
		}
		checkNotes("NotifyListChanged", changed("tools"), changed("resources"), changed("prompts"))
	})
}

// TestListChangedAudience checks who is told: sessions that began before the
// change and were told to expect it.
func TestListChangedAudience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := newEngine(t, &engine.Options{ListChangedInterval: 100 * ms})
		noTools := connect(t, e, engine.Rev20251125)
		echo(t, e, "a")
		time.Sleep(time.Second)
		waits := open(t, e) // without a handshake
		before := connect(t, e, engine.Rev20241105)
		closed := connect(t, e, engine.Rev20251125)
		closed.session.Close()
		echo(t, e, "b")
		echo(t, e, "c") // at the end of the interval
		after := connect(t, e, engine.Rev20251125)
		time.Sleep(50 * ms)
		echo(t, e, "d") // at the end of the interval too
		later := connect(t, e, engine.Rev20251125)
		time.Sleep(time.Second)
		for _, c := range []struct {
			what string
			p    *peer
			want []string
		}{
			{"a session of before the first tool", noTools, nil},
			{"a session without a handshake", waits, nil},
			{"a session of before the changes", before, []string{changed("tools"), changed("tools")}},
			{"a session that is closed", closed, nil},
			{"a session of before the last change", after, []string{changed("tools")}},
			{"a session of after the changes", later, nil},
		} {
			checkFrames(t, c.what, c.p.notes.take(), c.want...)
		}
		_ = e.Shutdown(t.Context())
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}

func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

func TestSubscriptions(t *testing.T) {
	o := engine.Options{Limits: actors.Limits{SubscriptionMinInterval: 50 * ms, MaxSubscriptions: 2}}
	bubble(t, o, func(t *testing.T, e *engine.Engine) {
		for _, uri := range []string{"a:1", "a:2", "a:3"} {
			must(t, e.AddResource(engine.Resource{URI: uri, Name: "n"}, nil))
		}
		must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "t:{x}", Name: "n"}, nil))
		time.Sleep(time.Minute)
		p, other := connect(t, e, engine.Rev20251125), connect(t, e, engine.Rev20241105)
		subscribe := func(p *peer, method, params, want string) {
			t.Helper()
			check(t, method+" "+params, p.result(method, params), want)
		}
		const sub, unsub = codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe
		subscribe(p, sub, `{"uri":"a:1"}`, `{}`)
		subscribe(p, sub, `{"uri":"a:1"}`, `{}`)
		subscribe(p, sub, `{"uri":"t:\u0079"}`, `{}`)
		subscribe(p, sub, `{"uri":"a:3"}`, `-31900 Server is overloaded, try again later`)
		subscribe(p, sub, `{"uri":"b:"}`, `-32002 Resource not found {"uri":"b:"}`)
		subscribe(p, sub, `{}`, `-32602 Invalid params: "uri" must be a string`)
		subscribe(p, unsub, `{}`, `-32602 Invalid params: "uri" must be a string`)
		subscribe(p, unsub, `{"uri":"b:"}`, `{}`)
		subscribe(other, sub, `{"uri":"a:1"}`, `{}`)
		if got := e.Stats().Subscriptions; got != 3 {
			t.Errorf("Stats().Subscriptions: got %d, want 3", got)
		}
		for range 7 { // at 0, 10, ... 60 ms
			e.ResourceUpdated("a:1")
			e.ResourceUpdated("a:2")
			time.Sleep(10 * ms)
		}
		e.ResourceUpdated("t:y")
		synctest.Wait()
		one := updated("a:1")
		checkFrames(t, "at 70 ms", p.notes.take(), one, one, updated("t:y"))
		time.Sleep(time.Second)
		checkFrames(t, "after the burst", p.notes.take(), one)
		checkFrames(t, "another session", other.notes.take(), one, one, one)

		subscribe(p, unsub, `{"uri":"a:1"}`, `{}`)
		subscribe(p, sub, `{"uri":"a:3"}`, `{}`)
		for _, uri := range []string{"a:1", "a:3"} {
			e.ResourceUpdated(uri)
		}
		time.Sleep(time.Second)
		checkFrames(t, "after unsubscribe", p.notes.take(), updated("a:3"))
		checkFrames(t, "another session", other.notes.take(), one)
		other.session.Close()
		e.ResourceUpdated("a:1")
		time.Sleep(time.Second)
		checkFrames(t, "a closed session", other.notes.take())
		if got := e.Stats().Subscriptions; got != 2 {
			t.Errorf("Stats().Subscriptions: got %d, want 2", got)
		}
	})
}

// TestAttach checks where frames go that belong to no request: to the newest
// stream, and while there is none they wait, up to a limit.
func TestAttach(t *testing.T) {
	bubble(t, engine.Options{ListChangedInterval: ms, MaxPending: 3 * len(changed("tools"))}, func(t *testing.T, e *engine.Engine) {
		p := connect(t, e, engine.Rev20251125)
		change := func(kind int) {
			t.Helper()
			must(t, lists[kind].add(e, fmt.Sprint("x", time.Now().UnixNano())))
			time.Sleep(10 * ms)
		}
		second := new(reply)
		p.session.Attach(second)
		if p.notes.finished() != 1 {
			t.Errorf("the stream that was taken over: finished %d times, want once", p.notes.finished())
		}
		p.session.Detach(p.notes) // it is no longer the one
		change(0)
		checkFrames(t, "the first stream", p.notes.take())
		checkFrames(t, "the second stream", second.take(), changed("tools"))
		p.session.Detach(second)
		change(3)
		for range 2 {
			change(0)
		}
		change(3)
		checkFrames(t, "a stream that has gone", second.take())
		third := new(reply)
		p.session.Attach(third)
		got := third.take()
		if len(got) > 3 || len(got) < 2 || got[len(got)-1] != changed("prompts") || slices.Index(got, changed("prompts")) == 0 {
			t.Errorf("frames that waited: got %s, want the newest that fit", strings.Join(got, "\n"))
		}
		if dropped := e.Stats().Refusals.Dropped; dropped != int64(4-len(got)) {
			t.Errorf("Refusals.Dropped: got %d, want those of the four that did not wait: %d", dropped, 4-len(got))
		}
		p.session.Close()
		<-p.session.Done()
		if third.finished() != 1 || second.finished() != 0 {
			t.Errorf("streams at the end: finished %d and %d times, want the attached one, once", third.finished(), second.finished())
		}
	})
}

// TestSlowToolHoldsUpNothing checks that nothing slow holds up a session.
func TestSlowToolHoldsUpNothing(t *testing.T) {
	e, _ := newEngine(t, nil)
	b := addBlocker(t, e)
	echo(t, e, "echo")
	p := connect(t, e, engine.Rev20251125)
	var done []<-chan struct{}
	for i := range 20 {
		_, ended := p.start(block(fmt.Sprint(i + 100)))
		<-b.started
		done = append(done, ended)
	}
	check(t, "ping", p.result(codec.MethodPing, ""), "{}")
	check(t, "tools/call", p.call("echo", "{}"), text("{}"))
	p.notify(codec.NotifyCancelled, `{"requestId":105}`)
	<-done[5]
	close(b.release)
	for _, ended := range done {
		<-ended
	}
}
