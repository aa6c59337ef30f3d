package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcpengine/mcpengine/bench"
)

// tables holds every number of the result that a chart or a figure only hints at.
func tables(r *bench.Result) []table {
	var out []table
	for _, t := range []table{
		latencyTable(r, "Response time, from the intended start", func(l *bench.Latency) *bench.Dist { return l.Response }),
		latencyTable(r, "Service time, from the sending", func(l *bench.Latency) *bench.Dist { return l.Service }),
		latencyTable(r, "Time to the first byte, from the sending", func(l *bench.Latency) *bench.Dist { return l.TTFB }),
		flowTable(r), outcomes(r), thresholdTable(r), loadTable(r), serverTable(r), streamTable(r), askedTable(r),
	} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func latencyTable(r *bench.Result, title string, of func(*bench.Latency) *bench.Dist) table {
	t := table{Title: title, Head: []string{"", "count", "mean", "p50", "p90", "p95", "p99", "95 % interval of p99", "p99.9", "max"}}
	rows := r.Latency
	if len(rows) == 2 {
		rows = rows[:1] // the row of all says the same
	}
	for i := range rows {
		l := &rows[i]
		d := of(l)
		if d == nil || d.Count == 0 {
			continue
		}
		interval, tail := "not known, run longer", "too few samples"
		if ci := d.P99CI95US; ci != nil {
			interval = micros(float64(ci[0])) + " to " + micros(float64(ci[1]))
		}
		if d.P999US != nil {
			tail = micros(float64(*d.P999US))
		}
		t.Rows = append(t.Rows, []string{
			rowName(l), count(float64(d.Count)), micros(d.MeanUS), micros(float64(d.P50US)), micros(float64(d.P90US)),
			micros(float64(d.P95US)), micros(float64(d.P99US)), interval, tail, micros(float64(d.MaxUS)),
		})
	}
	return t
}

// outcomes counts the calls by what came of them.
func outcomes(r *bench.Result) table {
	q := &r.Requests
	t := table{Title: "Calls by outcome", Head: []string{"outcome", "calls", "share", "p50", "p99", "first example"}, Words: []int{5}, Bad: map[int]bool{}}
	if q.Total+q.Dropped == 0 {
		return t
	}
	add := func(key, name string, n int64) {
		row := []string{name, count(float64(n)), share(n, q.Total), "", "", q.Examples[key]}
		if d := q.Outcomes[key]; d != nil {
			row[3], row[4] = micros(float64(d.P50US)), micros(float64(d.P99US))
		}
		t.Bad[len(t.Rows)] = key != "ok" && n > 0 && (key != "cancelled" || n > q.CancelledMeant)
		t.Rows = append(t.Rows, row)
	}
	add("ok", "success", q.OK)
	for _, o := range []struct {
		key, name string
		n         int64
	}{
		{"tool_error", "tool error (isError)", q.ToolError}, {"rpc_error", "JSON-RPC error", q.RPCError}, {"http_error", "HTTP error", q.HTTPError},
		{"transport_error", "transport error", q.TransportError}, {"timeout", "timeout", q.Timeout}, {"cancelled", "cancelled", q.Cancelled},
	} {
		add(o.key, o.name, o.n)
	}
	t.Bad[len(t.Rows)] = q.Dropped > 0
	t.Rows = append(t.Rows, []string{"dropped, never begun", count(float64(q.Dropped)), "", "", "", ""})
	t.Rows = append(t.Rows, codes("JSON-RPC code ", q.RPCCodes)...)
	t.Rows = append(t.Rows, codes("HTTP status ", q.HTTPCodes)...)
	return t
}

func codes(prefix string, counts map[string]int64) [][]string {
	var rows [][]string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		rows = append(rows, []string{"· " + prefix + code, count(float64(counts[code])), "", "", "", ""})
	}
	return rows
}

func share(n, total int64) string {
	if total == 0 {
		return ""
	}
	return digits(100*float64(n)/float64(total)) + " %"
}

// loadTable says how well the generator did its own work.
func loadTable(r *bench.Result) table {
	v := &r.Verdict
	t := table{Title: "The generator, and the set-up"}
	begun := "delivered (calls begun)"
	if len(r.Flows) > 0 {
		begun = "delivered (flows begun)"
	}
	if v.AskedRPS > 0 {
		t.Rows = append(t.Rows, []string{"asked", perSecond(v.AskedRPS)}, []string{"schedule lag p99", micros(float64(v.LagP99US))})
	}
	if r.Requests.Total > 0 {
		t.Rows = append(t.Rows, []string{begun, perSecond(v.DeliveredRPS)}, []string{"completed (calls answered)", perSecond(v.CompletedRPS)})
	}
	if v.GeneratorCPU > 0 {
		t.Rows = append(t.Rows, []string{"CPU of the generator", digits(100*v.GeneratorCPU) + " %"})
	}
	if v.GCPauseMaxUS > 0 {
		t.Rows = append(t.Rows, []string{"longest stop by its memory management", micros(float64(v.GCPauseMaxUS))})
	}
	s := &r.Sessions
	if s.Opened+s.Failed > 0 {
		t.Rows = append(t.Rows, []string{"sessions opened, failed, lost, closed", fmt.Sprintf("%d, %d, %d, %d", s.Opened, s.Failed, s.Lost, s.Closed)})
	}
	if d := s.Setup; d != nil && d.Count > 0 {
		t.Rows = append(t.Rows, []string{"set-up of a session, p50 and p99", micros(float64(d.P50US)) + ", " + micros(float64(d.P99US))})
	}
	if l := r.LittlesLaw; l != nil {
		text := fmt.Sprintf("%s predicted, %s observed", digits(l.Predicted), digits(l.Observed))
		if !l.OK {
			text += ": they do not agree, so the run was not in a steady state"
		}
		t.Rows = append(t.Rows, []string{"Little's law", text})
	}
	return t
}

func serverTable(r *bench.Result) table {
	t := table{Title: "The server's processes"}
	s := r.Server
	if s == nil {
		return t
	}
	t.Rows = [][]string{
		{"processes", count(float64(s.Processes))}, {"CPU time", digits(s.CPUSeconds) + " s"},
		{"resident at the begin", bytesText(float64(s.RSSStartBytes))}, {"resident at the end", bytesText(float64(s.RSSEndBytes))},
		{"highest", bytesText(float64(s.RSSPeakBytes))},
	}
	if p := s.RSSProcess; s.Processes > 1 && p.MaxBytes > 0 {
		t.Rows = append(t.Rows, []string{"of a single process: least, median, most",
			bytesText(float64(p.MinBytes)) + ", " + bytesText(float64(p.MedianBytes)) + ", " + bytesText(float64(p.MaxBytes))})
	}
	if q := &r.Requests; q.Total > 0 {
		t.Rows = append(t.Rows, []string{"CPU time for each call", micros(s.CPUSeconds / float64(q.Total) * 1e6)})
	}
	return t
}

func streamTable(r *bench.Result) table {
	t := table{Title: "Event streams", Bad: map[int]bool{}}
	s := &r.Streams
	if s.OpenPeak+s.Events+s.Failed == 0 {
		return t
	}
	add := func(name string, n int64, bad bool) {
		t.Bad[len(t.Rows)] = bad && n > 0
		t.Rows = append(t.Rows, []string{name, count(float64(n))})
	}
	add("GET streams open at once", s.OpenPeak, false)
	add("GET streams that could not be opened", s.Failed, true)
	add("GET streams that broke", s.Broken, true)
	add("events", s.Events, false)
	add("events lost", s.Lost, true)
	add("events duplicated", s.Duplicated, true)
	spread := func(name string, d *bench.Dist) {
		if d != nil && d.Count > 0 {
			t.Rows = append(t.Rows, []string{name + ": p50, p99, max",
				micros(float64(d.P50US)) + ", " + micros(float64(d.P99US)) + ", " + micros(float64(d.MaxUS))})
		}
	}
	spread("gap between two events of a stream", s.Gap)
	if s.Changes > 0 {
		add("changes that subscribers heard of", s.Changes, false)
	}
	spread("from the first to the last subscriber of a change", s.Spread)
	return t
}

// askedTable counts what the server has asked of its clients.
func askedTable(r *bench.Result) table {
	t := table{Title: "What the server asked for", Head: []string{"request", "times"}, Bad: map[int]bool{}}
	q := r.ServerRequests
	if q == nil {
		return t
	}
	for _, row := range []struct {
		name string
		n    int64
	}{
		{"sampling", q.Sampling}, {"elicitation", q.Elicitation}, {"roots", q.Roots}, {"ping", q.Ping}, {"refused", q.Refused},
		{"answers that did not get through", q.Failed},
	} {
		t.Rows = append(t.Rows, []string{row.name, count(float64(row.n))})
	}
	t.Bad[len(t.Rows)-1] = q.Failed > 0
	return t
}

// flowTable says what became of the flows of a scenario.
func flowTable(r *bench.Result) table {
	t := table{Title: "Flows", Note: "Times are those of completed flows, from the intended start, think times included.", Bad: map[int]bool{},
		Head: []string{"flow", "begun", "completed", "failed", "unfinished", "p50", "p99", "first failure"}, Words: []int{7}}
	for i, f := range r.Flows {
		row := []string{f.Flow, count(float64(f.Begun)), count(float64(f.Completed)), count(float64(f.Failed)), count(float64(f.Unfinished)), "", "", f.FirstWhy}
		if d := f.Duration; d != nil && d.Count > 0 {
			row[5], row[6] = micros(float64(d.P50US)), micros(float64(d.P99US))
		}
		t.Bad[i] = f.Failed > 0
		t.Rows = append(t.Rows, row)
	}
	return t
}

func thresholdTable(r *bench.Result) table {
	t := table{Title: "Thresholds", Head: []string{"condition", "value", ""}, Bad: map[int]bool{}}
	for i, c := range r.Thresholds {
		word := "met"
		if !c.OK {
			word = "crossed"
		}
		value := micros(c.Value)
		if bench.IsShare(c.Expr) {
			value = digits(100*c.Value) + " %"
		}
		t.Rows = append(t.Rows, []string{c.Expr, value, word})
		t.Bad[i] = !c.OK
	}
	return t
}
