package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

// Live draws a run while it goes on. Begin, Slot and Progress are for the run: they only take down what they are told and
// never wait for the drawing. Gather, Draw and Result are for one other goroutine.
type Live struct {
	mu         sync.Mutex
	conditions *bench.Conditions // guarded by mu: news, or nil
	progress   bench.Progress    // guarded by mu: the latest
	pending    []bench.Slot      // guarded by mu: told since Gather was called

	// Of the goroutine that draws.
	res   bench.Result
	now   bench.Progress
	all   *toolTimes
	tools []*toolTimes
	row   *second
}

// toolTimes are the times of a tool so far.
type toolTimes struct {
	method, tool      string
	response, service *bench.Histogram
}

// second is the row of the second under way.
type second struct {
	at, from, to time.Duration
	ok           *bench.Histogram
	errors       int64
}

// NewLive begins with what is known before the run: its target and its command line. The rest of the conditions comes with
// Begin.
func NewLive(start bench.Result) *Live {
	return &Live{res: start, all: newToolTimes("*", "")}
}

func newToolTimes(method, tool string) *toolTimes {
	return &toolTimes{method, tool, bench.NewHistogram(), bench.NewHistogram()}
}

// Begin is for Config.OnBegin.
func (l *Live) Begin(c bench.Conditions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conditions = &c
}

// Slot is for Config.OnSlot.
func (l *Live) Slot(s bench.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, s)
}

// Progress is for Config.OnProgress.
func (l *Live) Progress(p bench.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress = p
}

// Gather adds up what was told since it was called last. It has to be called about once a second, also where nobody looks
// at the page, so that what waits stays small.
func (l *Live) Gather() {
	l.mu.Lock()
	slots, conditions := l.pending, l.conditions
	l.pending, l.conditions, l.now = nil, nil, l.progress
	l.mu.Unlock()
	if conditions != nil {
		l.res.Conditions = *conditions
	}
	for i := range slots {
		l.add(&slots[i])
	}
}

// add counts a slot.
func (l *Live) add(s *bench.Slot) {
	q := &l.res.Requests
	failed := int64(0)
	for name, n := range s.Outcomes {
		q.Total += n
		switch name {
		case "ok":
			q.OK += n
			continue
		case "tool_error":
			q.ToolError += n
		case "rpc_error":
			q.RPCError += n
		case "http_error":
			q.HTTPError += n
		case "transport_error":
			q.TransportError += n
		case "timeout":
			q.Timeout += n
		case "cancelled":
			q.Cancelled += n
		}
		failed += n
	}
	q.Dropped = s.Dropped
	if l.row == nil || s.From.Truncate(time.Second) != l.row.at {
		l.endRow(s)
	}
	l.row.to, l.row.errors = s.To, l.row.errors+failed
	for i := range s.Latency {
		times := &s.Latency[i]
		for _, h := range []*bench.Histogram{l.row.ok, l.all.response, l.tool(times).response} {
			record(h, times.Response)
		}
		for _, h := range []*bench.Histogram{l.all.service, l.tool(times).service} {
			record(h, times.Service)
		}
	}
}

func record(h *bench.Histogram, times []bench.Bucket) {
	for _, b := range times {
		h.Record(time.Duration(b.ValueUS)*time.Microsecond, b.Count)
	}
}

// tool gives the row of a tool.
func (l *Live) tool(s *bench.SlotLatency) *toolTimes {
	for _, t := range l.tools {
		if t.method == s.Method && t.tool == s.Tool {
			return t
		}
	}
	t := newToolTimes(s.Method, s.Tool)
	l.tools = append(l.tools, t)
	return t
}

// endRow closes the second under way and begins the one of s, at whose begin as many sessions and calls are open as its
// end tells: nearly so.
func (l *Live) endRow(s *bench.Slot) {
	if r := l.row; r != nil {
		l.res.Intervals = append(l.res.Intervals, bench.Interval{
			TS: r.at.Seconds(), RPS: float64(r.ok.Count()) / max((r.to-r.from).Seconds(), 0.01), Errors: r.errors,
			P50US: r.ok.At(50).Microseconds(), P99US: r.ok.At(99).Microseconds(), Sessions: s.Sessions, InFlight: s.InFlight,
		})
	}
	l.row = &second{at: s.From.Truncate(time.Second), from: s.From, ok: bench.NewHistogram()}
}

// Draw gives the inner part of the page as it stands, to take the place of what its main element holds.
func (l *Live) Draw() ([]byte, error) {
	l.Gather()
	res, p := l.res, &l.now
	res.Latency = nil
	for _, t := range slices.Concat(l.tools, []*toolTimes{l.all}) {
		res.Latency = append(res.Latency, bench.Latency{Method: t.method, Tool: t.tool, Response: t.response.Dist(), Service: t.service.Dist()})
	}
	if res.Conditions.DurationS == 0 && l.row != nil {
		res.Conditions.DurationS = l.row.to.Seconds() // a number of calls ends the run
	}
	v := &res.Verdict
	v.LagP99US, v.GeneratorCPU, v.DeliveredRPS = p.LagP99US, p.CPU, p.Delivered
	if len(res.Conditions.Stages) == 0 {
		v.AskedRPS = res.Conditions.RateRPS
	}
	if l.row != nil {
		v.CompletedRPS = float64(res.Requests.Total) / max(l.row.to.Seconds(), 0.01)
	}
	res.Sessions = bench.Sessions{Opened: p.Sessions + p.Lost, Failed: p.Failed, Lost: p.Lost}
	view := viewOf(0, &res)
	view.Verdict = running(p)
	return body(view)
}

// running says how far the run is, and whether its result would be valid.
func running(p *bench.Progress) verdictView {
	v := verdictView{Word: "RUNNING", Class: "running"}
	text := string(p.Phase)
	switch {
	case p.Phase == "":
		text = "connecting"
	case p.Phase == bench.PhaseOpening || p.Phase == bench.PhaseClosing:
		text += fmt.Sprintf(": %s of %s sessions open", count(float64(p.Sessions)), count(float64(p.Wanted)))
	case p.Total > 0:
		text += ", " + seconds(max(p.Total-p.Elapsed, 0).Round(time.Second).Seconds()) + " left"
	case p.Limit > 0:
		text += fmt.Sprintf(", %s of %s calls", count(float64(p.Calls)), count(float64(p.Limit)))
	}
	v.Lines = append(v.Lines, text)
	for _, reason := range p.Reasons {
		v.Lines = append(v.Lines, "Not valid if it ended now: "+reason)
	}
	return v
}

// Body gives the inner part of the page of a result, such as Draw gives while the run goes on.
func Body(r *bench.Result) ([]byte, error) { return body(viewOf(0, r)) }

func body(v runView) ([]byte, error) {
	var b bytes.Buffer
	err := page.ExecuteTemplate(&b, "runs", &pageView{Runs: []runView{v}})
	return b.Bytes(), err
}

// WriteLive writes the page of a run that goes on. Its main element is empty: the page asks for server-sent events at
// "events" beside it, and draws what it is sent. An event "page" holds the inner part as a JSON string, and an event "end"
// the last one, or null where the run has ended without a result.
func WriteLive(w io.Writer, target string) error {
	v, err := newPage("script.js", "live.js")
	if err != nil {
		return err
	}
	v.Title, v.Live = "mcp-load: "+target, true
	return page.Execute(w, v)
}
