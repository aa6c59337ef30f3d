package chaos_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call makes a call and names what has come of it.
func (c *rawHTTP) call(w work) string {
	since := c.world.now()
	id := strconv.Itoa(c.seq)
	if c.seq%2 == 0 {
		id = `"n` + id + `"`
	}
	h := &hearing{party: &c.party, work: w, id: id}
	own := false // the client itself has cut the request off
	reading := func(s *socket) {}
	stop := func() {}
	switch {
	case c.gentle:
	case w.cancel > 0 && c.modern:
		// The end of the connection is the cancellation.
		reading = func(s *socket) { stop = later(w.cancel, func() { _ = s.Close() }) }
		own = true
	case w.cancel > 0:
		stop = later(w.cancel, func() { c.cancel(id) })
	case w.tool == "big" && c.rand.IntN(2) == 0:
		reading = func(*socket) { time.Sleep(c.world.set.Write * 3 / 2) }
		own = true
	case w.tool == "progress" && !c.modern && c.rand.IntN(3) == 0:
		h.leaveAt = 1 + c.rand.IntN(3)
	}
	extra, body := c.request(w, id)
	r := c.exchange(http.MethodPost, c.session, extra, body, h, reading)
	stop()
	if own {
		c.drop() // it may be closed
	}
	if h.answer == nil && !c.modern && h.lastEvent != "" && (r.err != nil || w.cancel == 0) {
		r = c.resume(h, since)
	}
	switch {
	case h.answer != nil:
		return h.verdict(!c.modern && c.world.mayBeGone(c.birth))
	case r.status == http.StatusNotFound && r.err == nil && !c.modern:
		c.gone(w.payload)
		return "lost its session"
	case c.refused(r):
		return "refused"
	case w.cancel > 0 && (own || r.err == nil):
		return "cancelled"
	case own:
		return "given up"
	case c.excused(since):
		return "cut off"
	case r.err == nil && !c.modern && c.world.mayBeGone(c.birth):
		return "session ended"
	}
	c.violate("%s: no answer to %s: status %d, %v, in %v on a sound connection; last event %q",
		w.payload, w.tool, r.status, r.err, time.Since(since.at).Round(time.Millisecond), h.lastEvent)
	return "lost"
}

// request makes the header lines and the body of a call.
func (c *rawHTTP) request(w work, id string) (extra, body string) {
	meta := ""
	if w.tool == "progress" {
		meta = `"progressToken":` + id
	}
	if c.modern {
		extra = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: " + w.tool + "\r\n"
		if meta != "" {
			meta += ","
		}
		meta += `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
			`"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"}`
	}
	return extra, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`,
		id, w.tool, w.args(), meta)
}

// cancel tells the server that nobody waits for a request any more, on a
// connection of its own.
func (c *rawHTTP) cancel(id string) {
	conn, err := net.DialTimeout("tcp", c.world.proxy.Addr(), time.Second)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	body := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	_, _ = conn.Write([]byte(c.head(http.MethodPost, c.session, "Connection: close\r\n", len(body)) + body))
	_, _ = conn.Read(make([]byte, 512))
}

// resume goes on with a stream after the last event that came.
func (c *rawHTTP) resume(h *hearing, since moment) (r response) {
	for range 6 {
		h.leaveAt = 0
		before := h.lastEvent
		r = c.exchange(http.MethodGet, c.session, "Last-Event-ID: "+h.lastEvent+"\r\n", "", h, nil)
		switch {
		case h.answer != nil:
			c.count("(resumed)")
			return r
		case r.status == http.StatusBadRequest && r.err == nil && strings.Contains(r.text, "Last-Event-ID"):
			// A process that was killed, or a session that has ended, has no events.
			if !c.world.disturbed(since) && !c.world.mayBeGone(c.birth) && h.work.tool != "big" {
				c.violate("%s: event %s of %s cannot be resumed from: %s", h.work.payload, before, h.work.tool, r.text)
			}
			return response{err: errors.New("the events are gone")}
		case r.status == http.StatusNotFound && r.err == nil:
			return r
		case r.status == http.StatusOK && r.err == nil && before == h.lastEvent:
			return r // the stream is over, and there was no answer
		}
		time.Sleep(20 * time.Millisecond)
	}
	return r
}
