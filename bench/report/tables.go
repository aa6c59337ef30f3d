package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcpengine/mcpengine/bench"
)

// tables holds every number of the result that a chart or a figure only hints at.
func tables(r *bench.Result) []table {
	out := []table{
		latencyTable(r, "Response time, from the intended start", func(l *bench.Latency) *bench.Dist { return l.Response }),
		latencyTable(r, "Service time, from the sending", func(l *bench.Latency) *bench.Dist { return l.Service }),
		latencyTable(r, "Time to the first byte, from the sending", func(l *bench.Latency) *bench.Dist { return l.TTFB }),
		outcomes(r), loadTable(r),
	}
	for _, t := range []table{serverTable(r), streamTable(r), thresholdTable(r)} {
		if len(t.Rows) > 0 {
			out = append(out, t)
		}
	}
	return out
}

func latencyTable(r *bench.Result, title string, of func(*bench.Latency) *bench.Dist) table {
	t := table{Title: title, Head: []string{"", "count", "mean", "p50", "p90", "p95", "p99", "95 % interval of p99", "p99.9", "max"}}
	for i := range r.Latency {
		l := &r.Latency[i]
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
	t := table{Title: "Calls by outcome", Head: []string{"outcome", "calls", "share", "p50", "p99", "first example"}, Bad: map[int]bool{}}
	add := func(key, name string, n int64) {
		row := []string{name, count(float64(n)), share(n, q.Total), "", "", q.Examples[key]}
		if d := q.Outcomes[key]; d != nil {
			row[3], row[4] = micros(float64(d.P50US)), micros(float64(d.P99US))
		}
		t.Bad[len(t.Rows)] = key != "ok" && n > 0
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
	t := table{Title: "The generator, and the set-up", Head: []string{"", ""}}
	if v.AskedRPS > 0 {
		t.Rows = append(t.Rows, []string{"asked", perSecond(v.AskedRPS)}, []string{"schedule lag p99", micros(float64(v.LagP99US))})
	}
	t.Rows = append(t.Rows, []string{"delivered (calls begun)", perSecond(v.DeliveredRPS)}, []string{"completed (calls answered)", perSecond(v.CompletedRPS)},
		[]string{"CPU of the generator", digits(100*v.GeneratorCPU) + " %"})
	s := &r.Sessions
	t.Rows = append(t.Rows, []string{"sessions opened, failed, lost, closed", fmt.Sprintf("%d, %d, %d, %d", s.Opened, s.Failed, s.Lost, s.Closed)})
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
	t := table{Title: "The server's processes", Head: []string{"", ""}}
	s := r.Server
	if s == nil {
		return t
	}
	t.Rows = [][]string{
		{"processes", count(float64(s.Processes))}, {"CPU time", digits(s.CPUSeconds) + " s"},
		{"resident at the begin", bytesText(float64(s.RSSStartBytes))}, {"resident at the end", bytesText(float64(s.RSSEndBytes))},
		{"highest", bytesText(float64(s.RSSPeakBytes))},
	}
	if q := &r.Requests; q.Total > 0 {
		t.Rows = append(t.Rows, []string{"CPU time for each call", micros(s.CPUSeconds / float64(q.Total) * 1e6)})
	}
	return t
}

func streamTable(r *bench.Result) table {
	t := table{Title: "Event streams", Head: []string{"", ""}}
	s := &r.Streams
	if s.OpenPeak == 0 && s.Events == 0 {
		return t
	}
	t.Rows = [][]string{
		{"open at once", count(float64(s.OpenPeak))}, {"events", count(float64(s.Events))},
		{"lost", count(float64(s.Lost))}, {"duplicated", count(float64(s.Duplicated))},
	}
	if d := s.Gap; d != nil && d.Count > 0 {
		t.Rows = append(t.Rows, []string{"gap between events, p50 and p99", micros(float64(d.P50US)) + ", " + micros(float64(d.P99US))})
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
