package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

// product is a client of this module's own make, over HTTP.
type product struct {
	party
	protocol string
	client   *client.Client // nil while there is none
	birth    birth          // of the session
	pool     *http.Transport
	gentle   bool // the faults are over

	mu     sync.Mutex // guards what follows
	addrs  []string   // of the connections that were made of late
	barred time.Time  // when the proxy last did not let it in
}

// dial makes a connection and takes note of it.
func (c *product) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.barred = time.Now()
		return nil, err
	}
	if c.addrs = append(c.addrs, conn.LocalAddr().String()); len(c.addrs) > 32 {
		c.addrs = c.addrs[16:]
	}
	return conn, nil
}

// excused reports whether what went wrong since may be put down to the faults.
func (c *product) excused(since moment) bool {
	if c.world.disturbed(since) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.barred.After(since.at) {
		return true
	}
	for _, addr := range c.addrs {
		if c.world.hit(addr, since) {
			return true
		}
	}
	return false
}

// open connects. It reports whether it could.
func (c *product) open() bool {
	if c.client != nil {
		return true
	}
	since, birth := c.world.now(), c.world.birth()
	if c.pool == nil {
		c.pool = &http.Transport{DialContext: c.dial, MaxIdleConnsPerHost: 4}
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.world.bound)
	defer cancel()
	connected, err := client.ConnectHTTP(ctx, "http://"+c.world.proxy.Addr()+"/mcp", &client.Options{
		Protocol: c.protocol, CallTimeout: c.world.bound, HTTPClient: &http.Client{Transport: c.pool},
		NoFallback: true, StreamWait: c.world.bound / 8, CloseGrace: c.world.bound / 4,
	})
	switch {
	case err == nil:
		c.client, c.birth = connected, birth
		if id := connected.SessionID(); id != "" {
			c.world.share(id)
		}
		c.count("initialized")
		return true
	case isRefusal(err):
		c.count("initialize refused")
	case c.excused(since):
		c.count("cut off")
	case errors.Is(err, client.ErrSessionLost) && c.world.mayBeGone(birth):
		c.count("session ended")
	default:
		c.count("lost")
		c.violate("connecting: %v, in %v on sound connections", err, time.Since(since.at).Round(time.Millisecond))
	}
	return false
}

// isRefusal reports whether a server has politely declined.
func isRefusal(err error) bool {
	var rpc *codec.Error
	var status *client.HTTPError
	return errors.As(err, &rpc) && rpc.Code == codeOverloaded ||
		errors.As(err, &status) && (status.Status == http.StatusServiceUnavailable || status.Status == http.StatusTooManyRequests)
}

// act makes some calls at once.
func (c *product) act() {
	if !c.open() {
		return
	}
	var calls sync.WaitGroup
	for range 1 + c.rand.IntN(3) {
		w := c.work()
		calls.Go(func() { c.count(c.call(w)) })
	}
	calls.Wait()
	if c.client.Err() != nil || c.rand.IntN(40) == 0 {
		c.close()
	}
}

// call makes a call and names what has come of it.
func (c *product) call(w work) string {
	since := c.world.now()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.cancel > 0 {
		defer later(w.cancel, cancel)()
	}
	outcome, err := callTool(ctx, c.client, &c.party, w)
	var rpc *codec.Error
	switch {
	case outcome != "":
		return outcome
	case c.excused(since):
		return "cut off"
	case errors.Is(err, client.ErrSessionLost), errors.Is(err, client.ErrNoResponse), errors.As(err, &rpc) && rpc.Code == codeStopped:
		if c.protocol != client.ProtocolStateless && c.world.mayBeGone(c.birth) {
			return "session ended"
		}
	}
	c.violate("%s: %s: %v, in %v on sound connections", w.payload, w.tool, err, time.Since(since.at).Round(time.Millisecond))
	return "lost"
}

// callTool calls a tool. Where it cannot tell by itself what the outcome is, it
// gives the error.
func callTool(ctx context.Context, connected *client.Client, p *party, w work) (string, error) {
	var o client.CallOptions
	if w.tool == "progress" {
		o.OnProgress = func(progress client.Progress) {
			if progress.Message != w.payload {
				p.violate("%s: another's progress: %q", w.payload, progress.Message)
			}
		}
	}
	result, err := connected.CallTool(ctx, w.tool, []byte(w.args()), &o)
	var rpc *codec.Error
	switch {
	case err == nil && !result.IsError && w.isAnswer(result.Text()):
		return "ok", nil
	case err == nil:
		p.violate("%s: %s was answered wrongly: %.300q", w.payload, w.tool, result.Raw)
		return "wrong", nil
	case w.cancel > 0 && ctx.Err() != nil:
		return "cancelled", nil
	case isRefusal(err):
		return "refused", nil
	case errors.Is(err, client.ErrSessionLost): // holds an error response, too
	case errors.As(err, &rpc):
		if outcome := w.judgeError(rpc.Code, false); outcome != "" {
			return outcome, nil
		}
	}
	return "", err
}

// clean makes a call on connections of its own.
func (c *product) clean() error {
	if !c.gentle {
		c.gentle = true
		c.close()
	}
	last := "not connected"
	for range 5 {
		if !c.open() {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if last = c.call(work{tool: "echo", payload: c.next()}); last == "ok" {
			return nil
		}
		c.close()
	}
	return errors.New(last)
}

// close ends the connection, in bounded time.
func (c *product) close() {
	if c.client == nil {
		return
	}
	closeClient(c.client, &c.party)
	c.client = nil
	c.pool.CloseIdleConnections()
}

// closeClient ends a connection, which has to take bounded time.
func closeClient(connected *client.Client, p *party) {
	ctx, cancel := context.WithTimeout(context.Background(), p.world.bound)
	defer cancel()
	begun := time.Now()
	if err := connected.Close(ctx); errors.Is(err, context.DeadlineExceeded) && time.Since(begun) > p.world.bound+2*time.Second {
		p.violate("Close took %v: %v", time.Since(begun), err)
	}
}

func (c *product) leave() { c.close() }

// spawned is a client of this module's own make that has a server process of its
// own.
type spawned struct {
	party
	client *client.Client // nil while there is none
}

// open starts a process.
func (c *spawned) open() bool {
	if c.client != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*c.world.bound)
	defer cancel()
	connected, err := client.Spawn(ctx, []string{os.Args[0]}, &client.Options{
		Env: append(os.Environ(), childEnv+"="+stdioSettings(c.world.set)), CallTimeout: c.world.bound,
		CloseGrace: c.world.bound,
	})
	if err != nil {
		c.violate("starting a process: %v", err)
		time.Sleep(100 * time.Millisecond)
		return false
	}
	c.client = connected
	c.count("initialized")
	return true
}

// act makes calls at once, and sometimes kills the process meanwhile.
func (c *spawned) act() {
	if !c.open() {
		return
	}
	var calls sync.WaitGroup
	kill := c.rand.IntN(25) == 0
	for range 1 + c.rand.IntN(6) {
		w := c.work()
		calls.Go(func() { c.count(c.call(w, kill)) })
	}
	if kill {
		time.Sleep(time.Duration(c.rand.IntN(60)) * time.Millisecond)
		if process, err := os.FindProcess(c.client.PID()); err == nil {
			_ = process.Kill()
			c.count("(process killed)")
		}
	}
	calls.Wait()
	if kill {
		closeClient(c.client, &c.party)
		c.client = nil
	}
}

// call makes a call and names what has come of it.
func (c *spawned) call(w work, kill bool) string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.cancel > 0 {
		defer later(w.cancel, cancel)()
	}
	outcome, err := callTool(ctx, c.client, &c.party, w)
	switch {
	case outcome != "":
		return outcome
	case kill && errors.Is(err, client.ErrDisconnected):
		return "cut off"
	}
	c.violate("%s: %s: %v from a process that lives", w.payload, w.tool, err)
	return "lost"
}

func (c *spawned) clean() error {
	if !c.open() {
		return errors.New("no process")
	}
	if got := c.call(work{tool: "echo", payload: c.next()}, false); got != "ok" {
		return fmt.Errorf("a call: %s", got)
	}
	return nil
}

func (c *spawned) leave() {
	if c.client != nil {
		closeClient(c.client, &c.party)
		c.client = nil
	}
}
