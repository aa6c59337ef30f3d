package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
)

// pairing is the results of one protocol.
type pairing struct {
	protocol   string
	base, next []*bench.Result
}

// pair sorts results by protocol.
func pair(base, next []*bench.Result) ([]pairing, error) {
	if len(base) == 0 || len(next) == 0 {
		return nil, refuse("give at least one result of the old state and one of the new")
	}
	var out []pairing
	for i, res := range slices.Concat(base, next) {
		at := slices.IndexFunc(out, func(p pairing) bool { return p.protocol == res.Conditions.Protocol })
		if at < 0 {
			out = append(out, pairing{protocol: res.Conditions.Protocol})
			at = len(out) - 1
		}
		if i < len(base) {
			out[at].base = append(out[at].base, res)
		} else {
			out[at].next = append(out[at].next, res)
		}
	}
	for _, p := range out {
		if len(p.base) == 0 || len(p.next) == 0 {
			which := "new"
			if len(p.base) == 0 {
				which = "old"
			}
			return nil, refuse("there is no %s result with protocol %s: measure both states with the same protocol", which, p.protocol)
		}
	}
	return out, nil
}

// key names a row of a result.
type key struct{ method, tool string }

// keys lists the rows that any of the results has, the row of all calls last.
func (p *pairing) keys() ([]key, error) {
	var out []key
	for _, res := range slices.Concat(p.base, p.next) {
		for i := range res.Latency {
			if k := (key{res.Latency[i].Method, res.Latency[i].Tool}); k.method != "*" && !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	return append(out, key{"*", ""}), nil
}

// sideOf collects the blocks of one row.
func sideOf(results []*bench.Result, k key) (side, error) {
	var out side
	for _, res := range results {
		for i := range res.Latency {
			l := &res.Latency[i]
			if l.Method != k.method || l.Tool != k.tool {
				continue
			}
			run, err := blocksOf(l.Blocks)
			if err != nil {
				return nil, refuse("%v", err)
			}
			out = append(out, run)
		}
	}
	return out, nil
}

func blocksOf(in []bench.Block) ([]block, error) {
	out := make([]block, len(in))
	for i := range in {
		times, err := in[i].Buckets()
		if err != nil {
			return nil, err
		}
		counts := map[int64]int64{}
		for _, b := range times {
			counts[b.ValueUS] += b.Count
		}
		out[i] = block{in[i].Seconds(), float64(in[i].OK), float64(in[i].Errors), newCDF(counts)}
	}
	return out, nil
}

// condition is one thing that two runs should have in common.
type condition struct {
	what  string
	value func(*bench.Result) any
	hard  bool // a difference makes the comparison meaningless
}

var conditions = []condition{
	{"transport", func(r *bench.Result) any { return r.Conditions.Transport }, true},
	{"loop", func(r *bench.Result) any { return r.Conditions.Loop }, true},
	{"rate", func(r *bench.Result) any { return r.Conditions.RateRPS }, true},
	{"arrivals", func(r *bench.Result) any { return r.Conditions.Arrivals }, true},
	{"concurrency", func(r *bench.Result) any { return r.Conditions.Concurrency }, true},
	{"sessions", func(r *bench.Result) any { return r.Conditions.Sessions }, true},
	{"tools", func(r *bench.Result) any { return strings.Join(r.Conditions.Tools, ", ") }, true},
	{"cap on calls in flight", func(r *bench.Result) any { return r.Conditions.MaxInFlight }, true},
	{"overflow", func(r *bench.Result) any { return r.Conditions.Overflow }, true},
	{"host", func(r *bench.Result) any {
		return fmt.Sprintf("%d CPUs, %s", r.Conditions.Host.CPUs, r.Conditions.Host.OS)
	}, true},
	{"in process", func(r *bench.Result) any { return r.Conditions.InProcess }, true},
	{"Go version of the generator", func(r *bench.Result) any { return r.Conditions.Host.Go }, false},
	{"version of mcp-load", func(r *bench.Result) any { return r.Version }, false},
	{"warm-up in seconds", func(r *bench.Result) any { return r.Conditions.WarmupS }, false},
	{"timeout in seconds", func(r *bench.Result) any { return r.Conditions.TimeoutS }, false},
}

// check refuses results that cannot be compared, and warns of what differs less.
func (r *Report) check(p pairing, lax bool) error {
	all := slices.Concat(p.base, p.next)
	for i, res := range all {
		name := fmt.Sprintf("result %d of the old state", i+1)
		if i >= len(p.base) {
			name = fmt.Sprintf("result %d of the new state", i-len(p.base)+1)
		}
		switch {
		case !res.Verdict.Valid:
			return &Error{Invalid: true, Text: fmt.Sprintf("%s is INVALID and says nothing about the server: %s", name, strings.Join(res.Verdict.Reasons, "; "))}
		case len(res.Latency) == 0 || len(res.Latency[len(res.Latency)-1].Blocks) == 0:
			return refuse("%s has no blocks of time in its latency section: it is of an older mcp-load, measure it again", name)
		case res.Interrupted:
			r.warn(name + " was interrupted")
		case res.Ended != "":
			r.warn(name + " ended early: " + res.Ended)
		}
	}
	for _, c := range conditions {
		want := c.value(all[0])
		for _, res := range all[1:] {
			got := c.value(res)
			if got == want {
				continue
			}
			if c.hard && !lax {
				return refuse("the conditions differ: %s %v and %v; measure both states alike, or compare all the same with --any-conditions", c.what, want, got)
			}
			r.warn(fmt.Sprintf("the conditions differ: %s %v and %v", c.what, want, got))
			break
		}
	}
	a, b := all[0].Conditions.DurationS, p.next[0].Conditions.DurationS
	if max(a, b) > 1.2*min(a, b) {
		r.warn(fmt.Sprintf("the runs are not equally long: %.3g s and %.3g s", a, b))
	}
	return nil
}

// warn adds a warning once.
func (r *Report) warn(text string) {
	if !slices.Contains(r.Warnings, text) {
		r.Warnings = append(r.Warnings, text)
	}
}
