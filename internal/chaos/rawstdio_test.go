package chaos_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// stdioSettings are those of a server on standard input and output.
func stdioSettings(set settings) string {
	set.Addr, set.Control, set.Store = "", "", ""
	text, _ := json.Marshal(set)
	return string(text)
}

// rawStdio has a server process of its own and writes its lines itself.
type rawStdio struct {
	party
	process *process // nil while there is none
}

// process is a server process as the client sees it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.Closer
	stderr *tail
	ended  chan struct{} // closed at the end of its output

	mu      sync.Mutex // guards what follows
	waiting map[string]*hearing
	told    map[string]chan struct{} // closed when the answer is there
	faults  int                      // error responses without an id
	paused  time.Duration            // how long the reader is to pause
}

// open starts a process.
func (c *rawStdio) open() bool {
	if c.process != nil {
		return true
	}
	p := &process{
		stderr: &tail{}, ended: make(chan struct{}),
		waiting: make(map[string]*hearing), told: make(map[string]chan struct{}),
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), childEnv+"="+stdioSettings(c.world.set))
	p.cmd.Stderr = p.stderr
	in, err := p.cmd.StdinPipe()
	out, err2 := p.cmd.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		c.violate("starting a process: %v", err)
		return false
	}
	p.in, p.out, c.process = in, out, p
	go c.read(p, out)
	hello := c.begin(p, &hearing{party: &c.party, id: "0"}, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{`+
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`)
	if !c.wait(hello, 4*c.world.bound) {
		c.violate("no answer to initialize; stderr: %s", p.stderr)
		c.kill()
		return false
	}
	_, _ = io.WriteString(p.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	c.count("initialized")
	return true
}

// read takes the lines of a process, each a message.
func (c *rawStdio) read(p *process, out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // a line without an end is the end of a process that was killed
		}
		var m wireMessage
		if err := json.Unmarshal(line, &m); err != nil {
			c.violate("no message on a line: %v: %.200q", err, line)
			continue
		}
		p.mu.Lock()
		id := string(m.ID)
		if m.Method == "notifications/progress" {
			id = string(m.Params.ProgressToken)
		}
		h := p.waiting[id]
		switch {
		case h != nil:
			h.message(line)
			if m.Method == "" {
				close(p.told[id])
				delete(p.waiting, id)
				delete(p.told, id)
			}
		case m.Method == "" && m.Error != nil && (id == "null" || id == ""):
			p.faults++
		default:
			c.violate("nobody asked: %.200q", line)
		}
		pause := p.paused
		p.paused = 0
		p.mu.Unlock()
		time.Sleep(pause)
	}
}

// begin sends a request. What it gives is closed when the answer is there.
func (c *rawStdio) begin(p *process, h *hearing, frame string) <-chan struct{} {
	told := make(chan struct{})
	p.mu.Lock()
	p.waiting[h.id], p.told[h.id] = h, told
	p.mu.Unlock()
	_, _ = io.WriteString(p.in, frame+"\n")
	return told
}

// wait waits for an answer.
func (c *rawStdio) wait(told <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-told:
		return true
	case <-c.process.ended:
		select {
		case <-told:
			return true
		default:
			return false
		}
	case <-timer.C:
		return false
	}
}

// kill ends the process without warning.
func (c *rawStdio) kill() {
	_ = c.process.cmd.Process.Kill()
	<-c.process.ended
	_ = c.process.in.Close()
	_ = c.process.cmd.Wait()
	c.process = nil
}

// act sends some requests at once, and sometimes spoils it.
func (c *rawStdio) act() {
	if !c.open() {
		return
	}
	p := c.process
	end := c.rand.IntN(40)
	garbled := c.spoil(p)
	var hearings []*hearing
	var answers []<-chan struct{}
	for range 1 + c.rand.IntN(8) {
		w := c.work()
		h := &hearing{party: &c.party, work: w, id: strconv.Itoa(c.seq)}
		told := c.begin(p, h, frameOf(w, h.id))
		hearings, answers = append(hearings, h), append(answers, told)
		if w.cancel > 0 {
			time.Sleep(w.cancel / 4)
			_, _ = fmt.Fprintf(p.in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", h.id)
		}
	}
	switch end {
	case 0:
		time.Sleep(time.Duration(c.rand.IntN(60)) * time.Millisecond)
		c.count("(process killed)")
		_ = p.cmd.Process.Kill()
	case 1:
		c.count("(input cut in a message)")
		_, _ = io.WriteString(p.in, `{"jsonrpc":"2.0","id":"half","method":"tools/ca`)
		_ = p.in.Close()
	}
	for i, h := range hearings {
		c.count(c.outcome(p, h, answers[i], end == 0))
	}
	if end > 1 {
		c.checkGarbled(p, garbled)
		return
	}
	c.buried(end == 1)
}

// spoil makes the connection bad for a while. It tells how many error responses
// without an id are to be expected.
func (c *rawStdio) spoil(p *process) (garbled int) {
	switch c.rand.IntN(12) {
	case 0:
		p.mu.Lock()
		p.paused = time.Duration(c.rand.Int64N(int64(c.world.set.Write)))
		p.mu.Unlock()
		c.count("(reader stalled)")
	case 1:
		_, _ = io.WriteString(p.in, "{\"jsonrpc\":\"2.0\",\"id\":7,\x00 this is no message\n")
		c.count("(garbage sent)")
		return 1
	case 2:
		_, _ = io.WriteString(p.in, `{"jsonrpc":"2.0","method":`)
		time.Sleep(time.Duration(c.rand.IntN(50)) * time.Millisecond)
		_, _ = io.WriteString(p.in, `"notifications/made-up"}`+"\n")
		c.count("(writer stalled in a message)")
	}
	return 0
}

// frameOf makes the frame of a call.
func frameOf(w work, id string) string {
	meta := ""
	if w.tool == "progress" {
		meta = `"progressToken":` + id
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`,
		id, w.tool, w.args(), meta)
}

// outcome waits for an answer and names what has come of the request.
func (c *rawStdio) outcome(p *process, h *hearing, told <-chan struct{}, killed bool) string {
	begun, limit := time.Now(), c.world.bound
	if h.work.cancel > 0 {
		limit = c.world.set.Handler * 2 // there may be none
	}
	if c.wait(told, limit) {
		return h.verdict(false)
	}
	p.mu.Lock()
	delete(p.waiting, h.id)
	delete(p.told, h.id)
	p.mu.Unlock()
	switch {
	case h.work.cancel > 0:
		return "cancelled"
	case killed:
		return "cut off"
	}
	over := false
	select {
	case <-p.ended:
		over = true
	default:
	}
	c.violate("%s: no answer to %s in %v of %v, output ended: %t; stderr: %s",
		h.work.payload, h.work.tool, time.Since(begun).Round(time.Millisecond), limit, over, p.stderr)
	return "lost"
}

// checkGarbled waits for the error responses that garbage has to get.
func (c *rawStdio) checkGarbled(p *process, want int) {
	for deadline := time.Now().Add(c.world.bound); want > 0; time.Sleep(5 * time.Millisecond) {
		p.mu.Lock()
		got := p.faults
		p.mu.Unlock()
		if got >= want {
			break
		}
		if time.Now().After(deadline) {
			c.violate("garbage got %d error responses, want %d", got, want)
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults > want {
		c.violate("garbage got %d error responses, want %d", p.faults, want)
	}
	p.faults = 0
}

// buried waits for the end of a process whose input has ended, or that was
// killed. In the first case it ends well.
func (c *rawStdio) buried(well bool) {
	p := c.process
	c.process = nil
	timer := time.NewTimer(2*c.world.bound + 4*c.world.set.Handler)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		c.violate("the process goes on after the end of its input; stderr: %s", p.stderr)
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	_ = p.in.Close()
	if err := p.cmd.Wait(); well && err != nil {
		c.violate("the process ended with %v; stderr: %s", err, p.stderr)
	}
}

func (c *rawStdio) clean() error {
	if !c.open() {
		return errors.New("no process")
	}
	w := work{tool: "echo", payload: c.next()}
	h := &hearing{party: &c.party, work: w, id: strconv.Itoa(c.seq)}
	if got := c.outcome(c.process, h, c.begin(c.process, h, frameOf(w, h.id)), false); got != "ok" {
		return errors.New(got)
	}
	return nil
}

func (c *rawStdio) leave() {
	if c.process != nil {
		_ = c.process.in.Close()
		c.buried(true)
	}
}
