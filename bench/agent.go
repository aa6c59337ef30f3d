package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// agent is what a worker needs to run flows.
type agent struct {
	rng    *rand.Rand
	values []json.RawMessage // by slot
	buf    []byte
	idle   time.Duration // that it has thought, on average, and waited since its last call
}

func newAgent(r *run, n int) *agent {
	return &agent{rng: rand.New(rand.NewPCG(r.cfg.Seed, flowStream+uint64(n)<<8))}
}

// flight is one instance of a flow under way.
type flight struct {
	job      job
	flow     *scriptFlow
	at       *place
	sess     session
	ears     *listener // nil where the flow waits for nothing
	measured bool      // it was due in the measured window

	due, ready time.Time // of the step under way, as in a job
	reached    bool      // the target has been reached
	why        string    // why it ended before its last step; empty where the run has ended it
}

// perform runs an instance of a flow. It reports whether the target could be reached.
func (w *worker) perform(j job) bool {
	r := w.run
	f := &flight{job: j, flow: &r.script.flows[j.what], due: j.due, ready: j.ready}
	f.measured = r.begin(j.due)
	if f.measured {
		f.flow.begun.Add(1)
	}
	w.agent.idle += j.think
	f.at, f.sess = r.set.pick(j.index, j.own)
	w.agent.begin(r.script, f.flow, j.index)
	if ears := f.listen(); ears != nil {
		defer ears.detach(f.ears)
	}
	done := true
	for i := 0; i < len(f.flow.steps) && done; i++ {
		done = w.step(f, &f.flow.steps[i])
	}
	if f.measured {
		f.flow.ended(done, f.why)
		if done {
			w.shard.add(&sample{series: f.flow.series, aside: true, response: f.due.Sub(j.due)})
		}
	}
	return f.reached
}

// begin sets the variables that an instance starts with.
func (a *agent) begin(s *script, f *scriptFlow, instance int) {
	if cap(a.values) < len(f.slots) {
		a.values = make([]json.RawMessage, len(f.slots))
	}
	a.values = a.values[:len(f.slots)]
	clear(a.values)
	a.values[0] = fmt.Appendf(nil, "%d", instance)
	for _, use := range f.uses {
		for c, v := range s.data[use.set].row(a.rng) {
			if v == nil {
				v = json.RawMessage("null")
			}
			a.values[use.first+c] = v
		}
	}
}

// listen begins to gather the notifications that the flow will wait for.
func (f *flight) listen() *notices {
	if len(f.flow.wants) == 0 || f.sess == nil || f.sess.notices() == nil {
		return nil
	}
	f.ears = &listener{methods: f.flow.wants, wake: make(chan struct{}, 1)}
	f.sess.notices().attach(f.ears)
	return f.sess.notices()
}

// ended counts how an instance has ended.
func (f *scriptFlow) ended(done bool, why string) {
	switch {
	case done:
		f.completed.Add(1)
	case why != "":
		f.failed.Add(1)
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.firstWhy == "" {
			f.firstWhy = why
		}
	}
}

// step takes one step, and reports whether there may be another.
func (w *worker) step(f *flight, s *scriptStep) bool {
	r := w.run
	if think := s.Think.draw(w.agent.rng); think > 0 {
		w.agent.idle += s.Think.Mean
		f.due = f.due.Add(think)
		f.ready = f.due
		if r.overAt(f.due) || !r.wakeAt(f.due, nil) {
			return false
		}
	}
	switch {
	case !s.talks():
		return true
	case r.overAt(f.due):
		return false // only what is in flight is seen out
	case s.Await != nil:
		return w.wait(f, s)
	}
	return w.send(f, s)
}

// overAt reports whether the run will be over at due, so that a step need not be begun. Flows that are counted are seen
// out.
func (r *run) overAt(due time.Time) bool {
	return r.stop.Err() != nil || r.cfg.Duration > 0 && !due.Before(r.windowEnd())
}

// wait waits for the notification of a step.
func (w *worker) wait(f *flight, s *scriptStep) bool {
	r := w.run
	if f.ears == nil {
		f.why = s.where + ": " + errNoSession.Error()
		return false
	}
	timeout := s.Await.Timeout
	if timeout == 0 {
		timeout = r.cfg.Timeout
	}
	f.reached = true
	uri := string(s.uri.render(nil, w.agent.values))
	got, ok := f.ears.await(r, s.Await.Method, uri, f.due.Add(timeout))
	if !ok {
		if r.stop.Err() == nil {
			f.why = fmt.Sprintf("%s: no %s came within %s", s.where, s.Await.Method, timeout)
		}
		return false
	}
	took := max(got.at.Sub(f.due), 0)
	if !f.due.Before(r.from) {
		w.shard.add(&sample{series: s.series, aside: true, response: took})
	}
	w.agent.idle += took
	f.due = f.due.Add(took)
	f.ready = time.Now()
	return true
}

// send makes the call of a step, and takes out of the answer what the step wants.
func (w *worker) send(f *flight, s *scriptStep) bool {
	q, err := s.request(f.sess, w.agent)
	if err != nil {
		f.why = s.where + ": " + err.Error()
		return false
	}
	j := f.job
	j.due, j.ready, j.think = f.due, f.ready, w.agent.idle
	w.agent.idle = 0
	v := verdictOfStep{step: s, agent: w.agent}
	o, sent := w.call(&j, f.at, f.sess, q, s.series, &v)
	f.reached = f.reached || sent
	f.due = w.ended
	f.ready = time.Now()
	switch {
	case v.meant:
		return true
	case o == outcomeCancelled: // by the end of the run
		return false
	case o != outcomeOK:
		f.why = s.where + ": " + v.why
		return false
	}
	for _, e := range s.extract {
		v := at(w.c.reply.Message.Result, e.path)
		if v == nil {
			f.why = fmt.Sprintf("%s: the result has no %q to take %q from: %s",
				s.where, "/"+strings.Join(e.path, "/"), e.name, clip(w.c.reply.Message.Result))
			return false
		}
		w.agent.values[e.slot] = append(json.RawMessage(nil), v...) // the reply's buffer is used again
	}
	return true
}

// request gives the request of a step.
func (s *scriptStep) request(sess session, a *agent) (*query, error) {
	if s.query != nil || sess == nil {
		return s.query, nil
	}
	mirrors := wire.Header{}
	if len(s.mirrors) > 0 {
		mirrors = mirrorHeaders(s.mirrors, s.args.render(nil, a.values))
	}
	a.buf = s.params.render(a.buf[:0], a.values)
	if !codec.Valid(a.buf) {
		return nil, fmt.Errorf("with its variables the request is no JSON: %s", clip(a.buf))
	}
	return sess.query(s.Method, string(s.named.render(nil, a.values)), a.buf, mirrors)
}

// verdictOfStep judges the answer to a step's request.
type verdictOfStep struct {
	step  *scriptStep
	agent *agent
	why   string // set where the outcome is no success
	meant bool   // the call was cancelled as its step says
}

// judge gives the outcome that a call has in the eyes of its step.
func (v *verdictOfStep) judge(o outcome, err error, rep *wire.Reply) (judged outcome, meant bool) {
	s := v.step
	wanted := s.Expect.IsError != nil && *s.Expect.IsError
	switch {
	case o == outcomeTimeout && s.CancelAfter > 0:
		v.meant = true
		return outcomeCancelled, true
	case o == outcomeOK && wanted:
		v.why = "expected isError, but the call succeeded: " + clip(toolText(rep.Message.Result))
		return outcomeToolError, false
	case o == outcomeToolError && wanted && codec.Bool(rep.Message.Result, "isError"):
		o = outcomeOK
	case o != outcomeOK:
		v.why = describe(err, rep)
		return o, false
	}
	for i := range s.contains {
		want := string(s.contains[i].render(nil, v.agent.values))
		if !anyString(rep.Message.Result, func(s string) bool { return strings.Contains(s, want) }) {
			v.why = fmt.Sprintf("expected %q in the result, which is %s", clip([]byte(want)), clip(rep.Message.Result))
			return outcomeToolError, false
		}
	}
	return o, false
}
