package chaos

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// link is one connection through a proxy.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	fault  Fault
	lossy  atomic.Bool // it has lost something

	gone     chan struct{} // closed when both connections are
	goneOnce sync.Once
	mu       sync.Mutex   // guards server, which reset may want before it is there
	server   *net.TCPConn // nil until the server has taken the connection
}

// run passes on what comes from both sides until both have ended.
func (l *link) run() {
	defer l.close()
	if l.fault.Kind == Refuse {
		l.proxy.note(l)
		l.reset()
		return
	}
	conn, err := net.DialTimeout("tcp", l.proxy.target, 5*time.Second)
	if err != nil {
		l.proxy.upstream.Add(1)
		l.reset()
		return
	}
	server := conn.(*net.TCPConn)
	l.mu.Lock()
	l.server = server
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(server, l.client, true) })
	both.Go(func() { l.pump(l.client, server, false) })
	both.Wait()
}

// close closes both connections.
func (l *link) close() {
	l.goneOnce.Do(func() { close(l.gone) })
	_ = l.client.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// reset closes both connections with a reset.
func (l *link) reset() {
	_ = l.client.SetLinger(0)
	l.mu.Lock()
	if l.server != nil {
		_ = l.server.SetLinger(0)
	}
	l.mu.Unlock()
	l.close()
}

// pumpBuffer is how much is passed on at once.
const pumpBuffer = 8 << 10

// pump passes on one direction.
func (l *link) pump(to, from *net.TCPConn, toServer bool) {
	d := &direction{link: l, to: to, suffers: l.fault.Kind != None && l.fault.ToServer == toServer}
	buf := make([]byte, pumpBuffer)
	for {
		n, err := from.Read(buf)
		if n > 0 && !d.pass(buf[:n]) {
			return
		}
		if err == nil {
			continue
		}
		if netError, ok := err.(*net.OpError); ok && netError.Op == "read" {
			l.reset() // what one side did, the other gets to feel
		} else {
			_ = to.CloseWrite()
		}
		return
	}
}

// direction is one direction of a link. Only its pump uses it.
type direction struct {
	link    *link
	to      *net.TCPConn
	suffers bool // from the link's fault
	passed  int
	struck  bool // the fault has happened, or has begun
	mute    bool // nothing gets through any more
	slow    int  // how many more portions are slow
}

// slowPortions is how many portions trickle or are late, before all is well.
const slowPortions = 60

// pass passes on some bytes, or does not, as the fault has it. It reports false
// when there is nothing more to do.
func (d *direction) pass(b []byte) bool {
	if d.suffers && !d.struck && d.passed+len(b) > d.link.fault.After && !d.link.proxy.isCalm() {
		before := d.link.fault.After - d.passed
		if !d.write(b[:before]) || !d.strike() {
			return false
		}
		b = b[before:]
	}
	for len(b) > 0 && d.slow > 0 && !d.link.proxy.isCalm() {
		d.slow--
		n := len(b)
		if d.link.fault.Kind == Trickle {
			n = min(n, d.link.fault.Portion)
		}
		d.link.wait(d.link.fault.For)
		if !d.write(b[:n]) {
			return false
		}
		b = b[n:]
	}
	return d.write(b)
}

// write passes bytes on.
func (d *direction) write(b []byte) bool {
	d.passed += len(b)
	if d.mute || len(b) == 0 {
		return true
	}
	if _, err := d.to.Write(b); err != nil {
		d.link.reset()
		return false
	}
	return true
}

// strike has the fault happen. It reports false when the connections are closed.
func (d *direction) strike() bool {
	d.struck = true
	l := d.link
	l.proxy.note(l)
	switch l.fault.Kind {
	case Reset:
		l.reset()
		return false
	case Cut:
		l.close()
		return false
	case HalfClose:
		l.lossy.Store(true)
		d.mute = true
		_ = d.to.CloseWrite()
		if l.proxy.isCalm() { // and Calm may have looked before lossy was set
			l.reset()
			return false
		}
	case Stall:
		l.wait(l.fault.For)
	case Trickle, Delay:
		d.slow = slowPortions
	}
	return true
}

// wait waits, unless there is calm or the link has gone.
func (l *link) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.proxy.peaceful:
	case <-l.gone:
	}
}
