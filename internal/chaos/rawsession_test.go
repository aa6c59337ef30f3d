package chaos_test

import (
	"net/http"
	"time"
)

// open makes a session. It reports whether there is one.
func (c *rawHTTP) open() bool {
	if c.modern || c.session != "" {
		return true
	}
	since, birth := c.world.now(), c.world.birth()
	c.touched, c.barred = nil, false
	r := c.exchange(http.MethodPost, "", "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
		`"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, nil, nil)
	id := r.header.Get("Mcp-Session-Id")
	switch {
	case r.status == http.StatusOK && r.err == nil && id != "":
	case c.refused(r):
		c.count("initialize refused")
		return false
	default:
		c.lost("initialize", r, since)
		return false
	}
	r = c.exchange(http.MethodPost, id, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil, nil)
	if r.err != nil || r.status != http.StatusAccepted {
		if r.status == http.StatusNotFound && r.err == nil && c.world.mayBeGone(birth) {
			c.count("session ended")
		} else if !c.refused(r) {
			c.lost("initialized", r, since)
		}
		return false
	}
	c.session, c.birth = id, birth
	c.world.share(id)
	c.count("initialized")
	return true
}

// lost counts what did not come through, which must be some fault's doing.
func (c *rawHTTP) lost(what string, r response, since moment) {
	if c.excused(since) {
		c.count("cut off")
		return
	}
	c.count("lost")
	c.violate("%s: status %d, %v, in %v on a sound connection", what, r.status, r.err, time.Since(since.at).Round(time.Millisecond))
}

// gone takes note that the server does not know the session, which must have a
// reason.
func (c *rawHTTP) gone(what string) {
	c.count("session ended")
	if !c.world.mayBeGone(c.birth) {
		c.violate("%s: 404 for a session that nobody has ended", what)
	}
	c.session = ""
}

// act does what clients do.
func (c *rawHTTP) act() {
	if !c.open() {
		return
	}
	c.touched, c.barred = nil, false
	r := c.rand.IntN(100)
	switch {
	case c.modern || r < 86:
		c.count(c.call(c.work()))
	case r < 90:
		c.end()
	case r < 92:
		c.session = "" // abandoned
		c.count("abandoned")
	case r < 95:
		c.trespass(&c.world.deleted, "", "deleted session refused")
	case r < 97:
		c.trespass(&c.world.others, "thief", "theft refused")
	default:
		c.stare()
	}
}

// end deletes the session.
func (c *rawHTTP) end() {
	since := c.world.now()
	id := c.session
	r := c.exchange(http.MethodDelete, id, "", "", nil, nil)
	switch {
	case r.err == nil && r.status == http.StatusNoContent:
		c.count("deleted")
		c.world.bury(id)
	case r.err == nil && r.status == http.StatusNotFound:
		c.gone("DELETE")
	case c.refused(r):
		c.count("refused")
	default:
		c.lost("DELETE", r, since)
	}
	c.session = ""
}

// trespass uses a session that it has no right to.
func (c *rawHTTP) trespass(ids *[]string, principal, want string) {
	id := c.world.pick(ids, c.rand)
	if id == "" {
		return
	}
	since := c.world.now()
	r := c.exchange(http.MethodPost, id, principalHeader+": "+principal+"\r\n", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil, nil)
	switch {
	case r.err == nil && r.status == http.StatusNotFound:
		c.count(want)
	case r.err == nil && r.status == http.StatusOK:
		c.violate("not %s: status 200", want)
	case c.refused(r):
		c.count("refused")
	default:
		c.lost("ping", r, since)
	}
}

// stare opens the session's stream and does not read it.
func (c *rawHTTP) stare() {
	s, err := c.connect()
	if err != nil {
		return
	}
	defer func() { _ = s.Close() }()
	if c.send(s, c.head(http.MethodGet, c.session, "", 0)) == nil {
		select {
		case <-time.After(c.world.set.Write):
		case <-c.world.stop:
		}
	}
	c.count("stared")
}
