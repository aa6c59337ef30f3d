package bench

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcpengine/mcpengine/bench/plan"
)

// measuredFile is a result file as a plan reads it.
type measuredFile struct {
	Result
	Runs []json.RawMessage `json:"runs"`
}

// ReadMeasured takes from result files what a plan needs to know of one replica. Files are those of capacity, of sessions,
// or of a plain run, whose rate is then taken for a lower bound. Where several files say the same, the last one counts. It
// gives the first result as well, whose conditions a plan is quoted with.
func ReadMeasured(files ...[]byte) (plan.Measured, *Result, error) {
	var m plan.Measured
	results := make([]measuredFile, len(files))
	for i, data := range files {
		f := &results[i]
		if err := json.Unmarshal(data, f); err != nil {
			return m, nil, fmt.Errorf("file %d is no result of mcp-load: %w", i+1, err)
		}
		switch {
		case len(f.Runs) > 0:
			return m, nil, fmt.Errorf("file %d holds %d runs with different protocols: plan with the result of one", i+1, len(f.Runs))
		case f.Schema != Schema:
			return m, nil, fmt.Errorf("file %d is no result of mcp-load: its schema is %q, and %q is wanted", i+1, f.Schema, Schema)
		}
		if s := f.SessionCapacity; s != nil { // of all files first: what memory is beside the sessions depends on it
			setIf(&m.BytesPerSession, s.BytesPerSession)
			setIf(&m.Sessions, s.MaxSessions)
		}
	}
	for i := range results {
		f := &results[i]
		if f.Capacity != nil {
			takeCapacity(&m, f.Capacity)
		} else if f.SessionCapacity == nil {
			takeRun(&m, &f.Result)
		}
		takeServer(&m, &f.Result)
	}
	if len(results) == 0 {
		return m, nil, nil
	}
	return m, &results[0].Result, nil
}

// setIf keeps what is known.
func setIf[T float64 | int](field *T, value T) {
	if value > 0 {
		*field = value
	}
}

// takeCapacity takes what a search has found.
func takeCapacity(m *plan.Measured, c *Capacity) {
	switch c.Find {
	case FindSessions:
		setIf(&m.Sessions, c.Sessions)
		return
	case FindUsers:
		setIf(&m.Users, c.Users)
		m.ThinkS = c.ThinkS
	}
	setIf(&m.RateRPS, c.RateRPS)
	m.Objectives = c.Objectives
	m.LowerBounds = m.LowerBounds || c.LimitedBy == limitedSelf || c.FailedAt == 0 && c.RateRPS > 0
}

// takeRun takes the load of a run that was valid and crossed no threshold: the server holds at least that.
func takeRun(m *plan.Measured, r *Result) {
	bad := func(t Threshold) bool { return !t.OK }
	if m.RateRPS > 0 || !r.Verdict.Valid || slices.ContainsFunc(r.Thresholds, bad) {
		return
	}
	m.RateRPS, m.LowerBounds = r.Verdict.CompletedRPS, true
	for _, t := range r.Thresholds {
		m.Objectives = append(m.Objectives, t.Expr)
	}
}

// takeServer takes what the process of the server used, and how long it took to answer.
func takeServer(m *plan.Measured, r *Result) {
	if n := len(r.Latency); n > 0 && r.Latency[n-1].Response != nil {
		setIf(&m.ResponseS, r.Latency[n-1].Response.MeanUS/1e6)
	}
	s := r.Server
	if s == nil {
		return
	}
	if calls := r.Verdict.CompletedRPS * r.Conditions.DurationS; calls > 0 {
		setIf(&m.CPUPerCall, s.CPUSeconds/calls)
	}
	setIf(&m.BaseBytes, max(float64(s.RSSPeakBytes)-m.BytesPerSession*float64(r.Conditions.Sessions), 0))
}
