package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// TestHiddenIsUnknown asks for what is hidden, for what does not exist and for
// what is open. The first two answers must not differ but in the name.
func TestHiddenIsUnknown(t *testing.T) {
	for _, rev := range append([]engine.Revision{engine.Rev20260728}, legacy...) {
		e := guarded(t, engine.Options{})
		boss, guest := callerAs(t, e, rev, "boss"), callerAs(t, e, rev, "guest")
		for _, c := range []struct {
			since, until   engine.Revision
			method, params string // with NAME
		}{
			{engine.Rev20241105, 0, codec.MethodToolsCall, `{"name":"NAME","arguments":{"a":1}}`},
			{engine.Rev20241105, 0, codec.MethodToolsCall, `{"name":"NAME"}`},
			{engine.Rev20241105, 0, codec.MethodPromptsGet, `{"name":"NAME"}`},
			{engine.Rev20241105, 0, codec.MethodResourcesRead, `{"uri":"r:NAME"}`},
			{engine.Rev20241105, 0, codec.MethodResourcesRead, `{"uri":"t-NAME:1"}`},
			{engine.Rev20241105, engine.Rev20251125, codec.MethodResourcesSubscribe, `{"uri":"r:NAME"}`},
			{engine.Rev20241105, engine.Rev20251125, codec.MethodResourcesSubscribe, `{"uri":"t-NAME:1"}`},
			{engine.Rev20241105, 0, codec.MethodComplete, `{"ref":{"type":"ref/prompt","name":"NAME"},"argument":{"name":"a","value":""}}`},
			{engine.Rev20241105, 0, codec.MethodComplete, `{"ref":{"type":"ref/prompt","name":"NAME"},"argument":{"name":"z","value":""}}`},
			{engine.Rev20241105, 0, codec.MethodComplete, `{"ref":{"type":"ref/resource","uri":"t-NAME:{x}"},"argument":{"name":"x","value":""}}`},
			{engine.Rev20241105, 0, codec.MethodComplete, `{"ref":{"type":"ref/resource","uri":"r:NAME"},"argument":{"name":"x","value":""}}`},
		} {
			if rev < c.since || c.until != 0 && rev > c.until {
				continue
			}
			ask := func(who caller, name string) string {
				return strings.ReplaceAll(who.result(c.method, strings.ReplaceAll(c.params, "NAME", name)), name, "NAME")
			}
			what := fmt.Sprint(rev, " ", c.method, " ", c.params)
			check(t, what+" of something hidden, and of nothing", ask(guest, "secret"), ask(guest, "missing"))
			check(t, what+" of something hidden, to who may see it", ask(boss, "secret"), ask(boss, "open"))
			check(t, what+" of something open", ask(guest, "open"), ask(boss, "open"))
			if ask(guest, "open") == ask(guest, "secret") {
				t.Errorf("%s: open and secret give the same: %s", what, ask(guest, "open"))
			}
		}
	}
}

// TestVisibleLists looks at each list as two principals see it.
func TestVisibleLists(t *testing.T) {
	for _, rev := range bothEras {
		e := guarded(t, engine.Options{ListCache: engine.Cache{TTL: time.Minute, Public: true}})
		for _, c := range []struct{ who, want string }{{"boss", "open secret"}, {"guest", "open"}, {"", "open"}} {
			caller := callerAs(t, e, rev, c.who)
			for _, l := range lists {
				result := caller.result(l.method, "{}")
				names, next := page(t, result, l.member, l.name)
				names = strings.NewReplacer("r:", "", "t-", "", ":{x}", "").Replace(names)
				if names != c.want || next != "" {
					t.Errorf("%v %s as %q: got %q and cursor %q, want %q", rev, l.method, c.who, names, next, c.want)
				}
				if rev.IsModern() {
					check(t, l.method+" cacheScope", codec.Text([]byte(result), "cacheScope"), "private")
				}
			}
		}
		if rev.IsModern() {
			caller := callerAs(t, e, rev, "guest")
			for _, uri := range []string{"r:open", "t-open:1"} {
				result := caller.result(codec.MethodResourcesRead, `{"uri":"`+uri+`"}`)
				check(t, "cacheScope of "+uri, codec.Text([]byte(result), "cacheScope"), "private")
			}
		}
	}
}

// TestVisiblePages walks the pages of six tools, of which each subset is seen.
func TestVisiblePages(t *testing.T) {
	const tools = 6
	seen := 0 // a bit for each tool
	e, _ := newEngine(t, &engine.Options{PageSize: 2, Visible: func(_ string, _ engine.Kind, name string) bool {
		return seen&(1<<(name[0]-'0')) != 0
	}})
	for i := range tools {
		echo(t, e, fmt.Sprint(i))
	}
	for _, rev := range bothEras {
		caller := callerAs(t, e, rev, "")
		for seen = range 1 << tools {
			var want []string
			for i := range tools {
				if seen&(1<<i) != 0 {
					want = append(want, fmt.Sprint(i))
				}
			}
			params := "{}"
			for n := 0; params != ""; n += 2 {
				var names string
				names, params = page(t, caller.result(codec.MethodToolsList, params), "tools", "name")
				check(t, fmt.Sprintf("page of %06b from %d", seen, n), names, strings.Join(want[min(n, len(want)):min(n+2, len(want))], " "))
				if more := n+2 < len(want); more != (params != "") {
					t.Errorf("page of %06b from %d: got cursor %q, want one: %v", seen, n, params, more)
				}
			}
		}
		seen = 0b111111
		_, next := page(t, caller.result(codec.MethodToolsList, "{}"), "tools", "name")
		seen = 0b101000 // the cursor's own entry is hidden meanwhile
		names, _ := page(t, caller.result(codec.MethodToolsList, next), "tools", "name")
		check(t, "the page after one that is hidden now", names, "3 5")
	}
}

// TestHiddenFromTemplates checks that a URI which is hidden is served by nobody
// else.
func TestHiddenFromTemplates(t *testing.T) {
	for _, rev := range bothEras {
		e := guarded(t, engine.Options{})
		must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "{+any}", Name: "n"},
			func(context.Context, *engine.Call, string, map[string]string) ([]engine.ResourceContents, error) {
				return []engine.ResourceContents{{Text: "from any"}}, nil
			}))
		guest := callerAs(t, e, rev, "guest")
		for uri, want := range map[string]bool{"r:secret": false, "t-secret:1": false, "r:open": true, "else:": true} {
			got := guest.result(codec.MethodResourcesRead, `{"uri":"`+uri+`"}`)
			if served := strings.HasPrefix(got, "{"); served != want {
				t.Errorf("%v resources/read %s: got %s, want it served: %v", rev, uri, got, want)
			}
		}
	}
}

// TestVisibleListChanged checks who is told of which change, by a session and by
// a subscription of the stateless era.
func TestVisibleListChanged(t *testing.T) {
	for _, l := range lists {
		t.Run(l.member, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := guarded(t, engine.Options{ListChangedInterval: 100 * ms})
				time.Sleep(time.Minute)
				watchers := map[string]*watcher{}
				for _, who := range []string{"boss", "guest"} {
					watchers[who] = watchAs(t, e, who)
				}
				list := strings.Replace(l.member, "resourceTemplates", "resources", 1)
				told := func(what string, boss, guest int) {
					t.Helper()
					time.Sleep(time.Second)
					watchers["boss"].check(what, list, boss)
					watchers["guest"].check(what, list, guest)
				}
				told("at the beginning", 0, 0)
				must(t, l.add(e, "secret-2"))
				told("something hidden comes", 1, 0)
				must(t, l.add(e, "secret-2"))
				told("something hidden changes", 1, 0)
				must(t, l.add(e, "open-2"))
				told("something open comes", 1, 1)
				must(t, l.add(e, "secret-3"))
				synctest.Wait() // until the first notification is out: what comes later has one of its own
				must(t, l.add(e, "secret-4"))
				must(t, l.add(e, "open-3"))
				must(t, l.add(e, "secret-5"))
				told("a burst, with something open in it", 2, 1)
				must(t, l.add(e, "open-4"))
				synctest.Wait()
				must(t, l.add(e, "secret-6"))
				told("something open, then something hidden", 2, 1)
				late := watchAs(t, e, "guest")
				if l.remove != nil {
					l.remove(e, "secret-2")
					told("something hidden goes", 1, 0)
					l.remove(e, "open-2")
					told("something open goes", 1, 1)
					late.check("one that came later", list, 1)
				}
				e.NotifyListChanged(list)
				told("NotifyListChanged", 1, 1)
				must(t, l.add(e, "secret-7"))
				synctest.Wait()
				for i := range 1024 {
					must(t, l.add(e, fmt.Sprint("secret-", i%8)))
				}
				told("as many hidden changes as are remembered", 2, 0)
				must(t, l.add(e, "secret-7"))
				synctest.Wait()
				for i := range 1025 {
					must(t, l.add(e, fmt.Sprint("secret-", i%8)))
				}
				told("one more than are remembered", 2, 1)
				for _, w := range watchers {
					w.end()
				}
				late.end()
				_ = e.Shutdown(t.Context())
				time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
			})
		})
	}
}

// watcher hears of changes in both eras.
type watcher struct {
	t       *testing.T
	who     string
	session *peer
	listen  *reply
	end     func()
}

func watchAs(t *testing.T, e *engine.Engine, who string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(as(who))
	c := modernAs(t, e, who)
	r, done := c.start(ctx, c.frame("7", codec.MethodListen,
		`{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,`+
			`"resourceSubscriptions":["r:open","r:secret","t-secret:1","r:missing"]}}`))
	synctest.Wait()
	if acks := r.take(); len(acks) != 1 {
		t.Fatalf("subscriptions/listen as %s: got %v, want an acknowledgement", who, acks)
	}
	return &watcher{t, who, connectAs(t, e, engine.Rev20251125, who), r, func() { cancel(); <-done }}
}

// check counts the notifications of a list since the last time; there must be
// no others.
func (w *watcher) check(what, list string, want int) {
	w.t.Helper()
	for era, frames := range map[string][]string{"session": w.session.notes.take(), "listen": w.listen.take()} {
		n := 0
		for _, frame := range frames {
			if strings.Contains(frame, "notifications/"+list+"/list_changed") {
				n++
			}
		}
		if n != want || len(frames) != n {
			w.t.Errorf("%s: the %s of %s was told %q, want %d times", what, era, w.who, frames, want)
		}
	}
}

// TestVisibleUpdates checks that updates of a resource go to those who see it,
// also where that has changed since they subscribed.
func TestVisibleUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hidden := "nothing"
		e := guarded(t, engine.Options{Visible: func(who string, _ engine.Kind, name string) bool {
			return who == "boss" || !strings.Contains(name, hidden)
		}})
		time.Sleep(time.Minute)
		boss, guest := watchAs(t, e, "boss"), watchAs(t, e, "guest")
		for _, p := range []*peer{boss.session, guest.session} {
			for _, uri := range []string{"r:open", "r:secret", "t-secret:1"} {
				check(t, "subscribe "+uri, p.result(codec.MethodResourcesSubscribe, `{"uri":"`+uri+`"}`), "{}")
			}
		}
		hidden = "secret"
		for _, uri := range []string{"r:open", "r:secret", "t-secret:1", "r:missing"} {
			e.ResourceUpdated(uri)
		}
		time.Sleep(time.Second)
		told := func(frames []string) (uris string) {
			for _, frame := range frames {
				uris += " " + codec.Text(codec.Member([]byte(frame), "params"), "uri")
			}
			return uris
		}
		check(t, "the session of the boss", told(boss.session.notes.take()), " r:open r:secret t-secret:1")
		check(t, "the subscription of the boss", told(boss.listen.take()), " r:open r:secret t-secret:1 r:missing")
		check(t, "the session of the guest", told(guest.session.notes.take()), " r:open")
		check(t, "the subscription of the guest", told(guest.listen.take()), " r:open r:missing")
		boss.end()
		guest.end()
		_ = e.Shutdown(t.Context())
		time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
	})
}

// TestVisibleFailsClosed has the hooks panic: nothing is shown, nothing ends.
func TestVisibleFailsClosed(t *testing.T) {
	for _, rev := range bothEras {
		e, l := newEngine(t, &engine.Options{Visible: func(string, engine.Kind, string) bool { panic("filter in trouble") }})
		echo(t, e, "echo")
		c := callerAs(t, e, rev, "")
		check(t, "tools/call", c.result(codec.MethodToolsCall, `{"name":"echo"}`), "-32602 Unknown tool: echo")
		names, _ := page(t, c.result(codec.MethodToolsList, "{}"), "tools", "name")
		check(t, "tools/list", names, "")
		if !strings.Contains(l.String(), "filter in trouble") {
			t.Errorf("log: got %q, want the panic", l)
		}
	}
	e, l := newEngine(t, &engine.Options{
		Visible:   func(string, engine.Kind, string) bool { return true },
		Principal: func(context.Context) string { panic("nobody knows") },
	})
	echo(t, e, "echo")
	p := open(t, e)
	check(t, "initialize", p.result(codec.MethodInitialize, `{"protocolVersion":"2025-11-25"}`), "-32603 Internal error")
	check(t, "tools/list of the stateless era", newModern(t, e).result(codec.MethodToolsList, "{}"), "-32603 Internal error")
	if !strings.Contains(l.String(), "nobody knows") {
		t.Errorf("log: got %q, want the panic", l)
	}
}

// TestLongPrincipal checks that no principal can pass for another by its
// length.
func TestLongPrincipal(t *testing.T) {
	var asked []string
	e, _ := newEngine(t, &engine.Options{Principal: principal, Visible: func(who string, _ engine.Kind, _ string) bool {
		asked = append(asked, who)
		return true
	}})
	echo(t, e, "echo")
	for _, rev := range bothEras {
		for _, who := range []string{strings.Repeat("a", 512), strings.Repeat("a", 513), strings.Repeat("a", 514)} {
			asked = nil
			callerAs(t, e, rev, who).result(codec.MethodToolsCall, `{"name":"echo"}`)
			if len(asked) != 1 || (asked[0] == who) != (len(who) == 512) || len(asked[0]) > 512 {
				t.Errorf("%v principal of %d bytes: the filter was asked about %q", rev, len(who), asked)
			}
			if len(who) > 512 && !strings.HasPrefix(asked[0], "sha256:") {
				t.Errorf("%v principal of %d bytes: got %q, want its digest", rev, len(who), asked)
			}
		}
	}
}
