package transport_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/transport"
)

// withEvents are options with a store and a short time to come back.
func withEvents() *transport.HTTPOptions {
	return &transport.HTTPOptions{
		Events: transport.NewMemoryEvents(0, 0), Retry: 40 * time.Millisecond, CommitDelay: 50 * time.Millisecond,
	}
}

// primed gives what events a stream of a revision begins with.
func primed(revision string) []string {
	if revision == "2025-11-25" {
		return []string{"*-0 retry=40 empty"}
	}
	return nil
}

// TestResumeBrokenPost breaks the connection of a call; the call goes on, and a
// GET replays what followed, and nothing of another stream.
func TestResumeBrokenPost(t *testing.T) {
	for _, revision := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			s := newResumeServer(t, withEvents())
			session := s.open(revision)
			post := s.post(session, callSteps)
			s.step(1)
			post.want("POST", append(primed(revision), "*-1 progress 7 1")...)
			post.reset()
			s.noStreams()
			s.post(session, callWithToken("2", "progress", `"n":2,`+text("other"), "8")).
				want("the other call", append(primed(revision), "*-1 progress 8 1", "*-2 progress 8 2", "*-3 2 other")...)
			s.step(2, 3)
			s.finish()
			eventually(t, "the call has ended", func() bool { return s.Engine.Stats().ActiveRequests == 0 })
			for range 2 { // what is kept may be asked for again
				get := s.get(session, post.last)
				get.want("GET", "*-2 progress 7 2", "*-3 progress 7 3", "*-4 1 done")
				get.wantEnd("GET")
			}
		})
	}
}

// TestResumeGoesOnLive resumes a call that is running: further frames and the
// answer come on the GET.
func TestResumeGoesOnLive(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	post := s.post(session, callSteps)
	s.step(1)
	post.want("POST", "*-0 retry=40 empty", "*-1 progress 7 1")
	post.reset()
	s.noStreams()
	s.step(2)
	get := s.get(session, post.last)
	get.want("GET", "*-2 progress 7 2")
	s.step(3)
	get.want("GET", "*-3 progress 7 3")
	get.reset()
	s.noStreams()
	s.step(4)
	again := s.get(session, get.last)
	s.step(5)
	s.finish()
	again.want("second GET", "*-4 progress 7 4", "*-5 progress 7 5", "*-6 1 done")
	again.wantEnd("second GET")
	again = s.get(session, again.last)
	again.wantEnd("GET after the answer")
}

// TestResumeTakesOver resumes a stream whose connection is alive, as far as the
// server knows: the new one takes over, and each message comes once.
func TestResumeTakesOver(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-06-18")
	post := s.post(session, callSteps)
	s.step(1, 2)
	post.want("POST", "*-1 progress 7 1")
	first := post.last
	get := s.get(session, first)
	get.want("GET", "*-2 progress 7 2")
	post.want("POST", "*-2 progress 7 2")
	post.wantEnd("POST")
	s.step(3)
	s.finish()
	get.want("GET", "*-3 progress 7 3", "*-4 1 done")
	get.wantEnd("GET")
}

// TestPriming has the first event of each kind of stream in each revision.
func TestPriming(t *testing.T) {
	for _, c := range []struct {
		revision string
		options  *transport.HTTPOptions
		post     []string
		get      []string
	}{
		{"2024-11-05", withEvents(), []string{"progress 7 1"}, []string{"notifications/tools/list_changed"}},
		{"2025-03-26", withEvents(), []string{"*-1 progress 7 1"}, []string{"*-1 notifications/tools/list_changed"}},
		{"2025-06-18", withEvents(), []string{"*-1 progress 7 1"}, []string{"*-1 notifications/tools/list_changed"}},
		{
			"2025-11-25", withEvents(), []string{"*-0 retry=40 empty", "*-1 progress 7 1"},
			[]string{"*-0 retry=40 empty", "*-1 notifications/tools/list_changed"},
		},
		{"2025-11-25", nil, []string{"progress 7 1"}, []string{"notifications/tools/list_changed"}},
	} {
		s := newResumeServer(t, c.options)
		session := s.open(c.revision)
		post := s.post(session, callSteps)
		s.step(1)
		post.want(c.revision+" POST", c.post...)
		get := s.get(session, "")
		if c.options != nil && c.revision == "2025-11-25" {
			get.want(c.revision+" GET", c.get[0])
			c.get = c.get[1:]
		}
		eventually(t, "both streams are open", func() bool { return s.handler.Stats().Streams == 2 })
		s.NotifyListChanged("tools")
		get.want(c.revision+" GET", c.get...)
		s.finish()
	}
}

// TestPrimingAtOnce commits a call that says nothing: the client of 2025-11-25
// gets an id to come back with before anything else.
func TestPrimingAtOnce(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	post := s.post(session, callSteps)
	post.want("POST", "*-0 retry=40 empty")
	post.reset()
	s.noStreams()
	get := s.get(session, post.last)
	s.step(1)
	s.finish()
	get.want("GET", "*-1 progress 7 1", "*-2 1 done")
	get.wantEnd("GET")
}

// TestQuickReplies are those that stay plain with a store.
func TestQuickReplies(t *testing.T) {
	o := withEvents()
	o.CommitDelay = 5 * time.Second
	s := newResumeServer(t, o)
	session := s.open("2025-11-25")
	batching := s.open("2025-03-26")
	for _, c := range []struct {
		name, session, body, want string
		contentType               string
	}{
		{"call", session, call("1", "echo", text("x")), "1 x", "application/json"},
		{"unknown tool", session, call("2", "none", ""), "2 -32602", "application/json"},
		{"notification", session, initialized, "202", ""},
		{"batch of notifications", batching, "[" + initialized + "]", "202", ""},
	} {
		got := s.post(c.session, c.body)
		if contentType := got.resp.Header.Get("Content-Type"); contentType != c.contentType {
			t.Errorf("%s: got Content-Type %q, want %q", c.name, contentType, c.contentType)
		}
		if got := got.rest(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	body, err := io.ReadAll(s.post(batching, "["+ping("3")+"]").lines)
	if want := `[{"jsonrpc":"2.0","id":3,"result":{}}]`; err != nil || string(body) != want {
		t.Errorf("batch: got %q, %v, want %q", body, err, want)
	}
	if got := s.handler.Stats().ReplayBytes; got != 0 {
		t.Errorf("ReplayBytes after plain replies: got %d, want 0", got)
	}
}

// TestResumeBatch breaks the connection of a batch.
func TestResumeBatch(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-03-26")
	post := s.post(session, "["+callSteps+","+ping("2")+"]")
	s.step(1)
	post.want("POST", "*-1 progress 7 1")
	post.reset()
	s.noStreams()
	s.step(2)
	s.finish()
	get := s.get(session, post.last)
	get.want("GET", "*-2 progress 7 2")
	e, _ := get.next()
	if !strings.HasPrefix(e.data, "[") || strings.Count(e.data, `"id":`) != 2 {
		t.Errorf("GET: got %q, want an array of two responses", e.data)
	}
	get.wantEnd("GET")
}

// TestResumeRefusals are the ids that lead to nothing.
func TestResumeRefusals(t *testing.T) {
	o := withEvents()
	o.Events = transport.NewMemoryEvents(600, 0)
	s := newResumeServer(t, o)
	session, other := s.open("2025-11-25"), s.open("2025-11-25")
	post := s.post(session, callSteps)
	s.step(1, 2, 3)
	post.want("POST", "*-0 retry=40 empty", "*-1 progress 7 1", "*-2 progress 7 2", "*-3 progress 7 3")
	stream, _, _ := strings.Cut(post.last, "-")
	for i := range 10 {
		s.step(4 + i)
	}
	for _, c := range []struct{ name, session, id string }{
		{"no id of ours", session, "abc"},
		{"a stream that never was", session, "99-1"},
		{"an event that is not yet", session, stream + "-99"},
		{"an event that is dropped", session, stream + "-1"},
		{"the beginning, which is dropped", session, stream + "-0"},
		{"an event of another session", other, post.last},
		{"the newest of another session", other, stream + "-13"},
	} {
		got := s.get(c.session, c.id)
		if got.resp.StatusCode != http.StatusBadRequest {
			t.Errorf("GET with %s: got status %d, want 400", c.name, got.resp.StatusCode)
		}
		if got := got.rest(); got != "- -32600" {
			t.Errorf("GET with %s: got %q, want an error without id", c.name, got)
		}
	}
	get := s.get(session, stream+"-12")
	get.want("GET with an id that is kept", "*-13 progress 7 13")
	s.finish()
	get.want("GET with an id that is kept", "*-14 1 done")
}

// TestNotResumable asks to resume where nothing is kept: a new stream is opened.
func TestNotResumable(t *testing.T) {
	for _, c := range []struct {
		revision string
		options  *transport.HTTPOptions
	}{{"2024-11-05", withEvents()}, {"2025-11-25", nil}} {
		s := newResumeServer(t, c.options)
		session := s.open(c.revision)
		get := s.get(session, "1-1")
		eventually(t, "the stream is open", func() bool { return s.handler.Stats().Streams == 1 })
		s.NotifyListChanged("tools")
		get.want(c.revision, "notifications/tools/list_changed")
	}
}

// TestResumeNotices resumes the stream of a GET: what came meanwhile follows.
func TestResumeNotices(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	first := s.get(session, "")
	first.want("GET", "*-0 retry=40 empty")
	s.NotifyListChanged("tools")
	first.want("GET", "*-1 notifications/tools/list_changed")
	first.reset()
	s.noStreams()
	s.NotifyListChanged("prompts")
	s.NotifyListChanged("resources")
	s.add(t, "added", echo)
	second := s.get(session, first.last)
	second.want("second GET", "*-2 notifications/tools/list_changed")
	third := s.get(session, first.last) // as if the second one were lost on the way
	third.want("third GET", "*-2 notifications/tools/list_changed")
	second.wantEnd("second GET")
	time.Sleep(5 * time.Millisecond)
	s.NotifyListChanged("tools")
	third.want("third GET", "*-3 notifications/tools/list_changed")
}

// TestNewGetTakesOver opens a stream beside one that is open: the old one ends
// and is told when to come back, and each message comes on one stream.
func TestNewGetTakesOver(t *testing.T) {
	s := newResumeServer(t, withEvents())
	session := s.open("2025-11-25")
	first := s.get(session, "")
	first.want("first GET", "*-0 retry=40 empty")
	s.NotifyListChanged("tools")
	first.want("first GET", "*-1 notifications/tools/list_changed")
	second := s.get(session, "")
	second.want("second GET", "*-0 retry=40 empty")
	first.want("first GET", "*-1 retry=40 empty")
	first.wantEnd("first GET")
	time.Sleep(5 * time.Millisecond)
	s.NotifyListChanged("tools")
	second.want("second GET", "*-1 notifications/tools/list_changed")
	again := s.get(session, first.last)
	again.wantEnd("GET of the stream that was taken over from")
}

// TestShutdownHint ends a stream at shutdown: clients of 2025-11-25 are told
// when to come back, others just see the end.
func TestShutdownHint(t *testing.T) {
	for _, c := range []struct {
		revision string
		options  *transport.HTTPOptions
		want     []string
	}{
		{"2025-11-25", withEvents(), []string{"*-0 retry=40 empty", "*-0 retry=40 empty"}},
		{"2025-11-25", &transport.HTTPOptions{Retry: 30 * time.Millisecond}, []string{"retry=30"}},
		{"2025-06-18", withEvents(), nil},
	} {
		s := newResumeServer(t, c.options)
		get := s.get(s.open(c.revision), "")
		eventually(t, "the stream is open", func() bool { return s.handler.Stats().Streams == 1 })
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown: got %v, want nil", err)
		}
		get.want(c.revision, c.want...)
		get.wantEnd(c.revision)
	}
}
