package bench

import "time"

// way is one of the two ways to the server.
type way struct {
	cfg   Config
	set   *sessionSet
	tool  string
	query *query // of the era's session form; the same on all sessions
}

func newWay(c Config, url string, p peer) (*way, error) {
	c.URL, c.peer = url, p
	if p == nil {
		if err := c.check(); err != nil {
			return nil, err
		}
		var err error
		if c.peer, err = newHTTPPeer(&c); err != nil {
			return nil, err
		}
	}
	c.Sessions = 0 // places are added as they are needed
	return &way{cfg: c, set: newSessionSet(&c)}, nil
}

// choose opens a session, lists the tools, and prepares the call. On the way through a gateway the tool may have a
// prefix; among replicas the list may take several attempts.
func (w *way) choose(c *Config, prefixed, lossy bool) error {
	caller := w.set.newCaller()
	defer w.set.release(caller)
	attempts := 1
	if lossy {
		attempts = lossyAttempts
	}
	var listed []listedTool
	var sess session
	var err error
	for range attempts {
		if sess, err = w.openLossy(caller, lossy); err != nil {
			continue
		}
		if listed, err = listTools(sess, caller, c.Timeout); err == nil {
			break
		}
	}
	if err != nil {
		r := run{cfg: w.cfg}
		return r.connectError(err)
	}
	w.noteFirst(sess)
	defer func() { _ = sess.close(caller, time.Now().Add(closeTimeout)) }() // the measurement has its own
	if prefixed && len(c.Tools) == 1 {
		c.Tools[0].Name = nameBehind(listed, c.Tools[0].Name)
	}
	tools, err := chooseTools(c, listed)
	if err != nil {
		return err
	}
	if len(tools) != 1 {
		return usage("an overhead is measured with one tool: give --tool once")
	}
	if err := tools[0].prepare(sess); err != nil {
		return err
	}
	w.tool, w.query = tools[0].name, tools[0].queries[0]
	return nil
}

// nameBehind finds the name that a gateway has given to a tool: the same, or the only one that ends with it.
func nameBehind(listed []listedTool, name string) string {
	found := name
	n := 0
	for _, t := range listed {
		if t.name == name {
			return name
		}
		if len(t.name) > len(name)+1 && t.name[len(t.name)-len(name):] == name {
			found = t.name
			n++
		}
	}
	if n == 1 {
		return found
	}
	return name
}

// openOn opens a session and keeps it among those that close ends.
func (w *way) openOn(c *caller) (session, time.Duration, error) {
	at := &place{}
	start := time.Now()
	if err := w.set.openOne(at, c); err != nil {
		return nil, 0, err
	}
	took := time.Since(start)
	w.set.mu.Lock()
	w.set.places = append(w.set.places, at)
	w.set.mu.Unlock()
	return *at.sess.Load(), took, nil
}
