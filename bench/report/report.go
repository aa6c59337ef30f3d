// Package report draws results of package bench as one HTML file that needs no network: conditions and verdict first,
// then what was measured over time, the percentile spectra, and every number in tables. It looks right in light and dark
// and on paper, and works without its script, which only shows values under the pointer.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
)

//go:embed page.html style.css script.js
var parts embed.FS

var page = template.Must(template.New("page.html").ParseFS(parts, "page.html"))

// pageView is all that the page shows.
type pageView struct {
	Title   string
	Style   template.CSS
	Script  template.JS
	Live    bool // reloads while the run goes on
	Runs    []runView
	Several bool
}

// Write draws one or several results, such as those of a matrix of protocols, as an HTML page.
func Write(w io.Writer, results ...*bench.Result) error {
	return write(w, false, results)
}

// WriteLive draws a result that is not finished, as a page that loads itself anew every two seconds.
func WriteLive(w io.Writer, result *bench.Result) error {
	return write(w, true, []*bench.Result{result})
}

func write(w io.Writer, live bool, results []*bench.Result) error {
	if len(results) == 0 {
		return fmt.Errorf("report: no result to draw")
	}
	v := pageView{Title: "mcp-load: " + results[0].Conditions.Target, Live: live, Several: len(results) > 1}
	style, err := parts.ReadFile("style.css")
	if err != nil {
		return err
	}
	script, err := parts.ReadFile("script.js")
	if err != nil {
		return err
	}
	v.Style, v.Script = template.CSS(style), template.JS(script)
	for i, r := range results {
		v.Runs = append(v.Runs, viewOf(i, r))
	}
	return page.Execute(w, &v)
}

// runView is one result as the page shows it.
type runView struct {
	ID         string
	Name       string // in a matrix
	Started    string
	Version    string
	Command    string
	Valid      bool
	Ended      string
	Reasons    []string
	Conditions []pair
	Figures    []figure
	Charts     []chartView
	Tables     []table
	Sections   []section
}

// pair is a line of the conditions.
type pair struct{ Name, Value string }

// figure is a number in large type.
type figure struct {
	Value, Name, Note string
	Bad               bool
}

// table is a table with a heading. The first column is text, the others are numbers.
type table struct {
	Title, Note string
	Head        []string
	Rows        [][]string
	Bad         map[int]bool // rows that tell of a failure
}

// section is what a command other than run has found.
type section struct {
	Title, Text string
	Charts      []chartView
	Tables      []table
}

func viewOf(i int, r *bench.Result) runView {
	v := runView{
		ID: fmt.Sprintf("run%d", i+1), Name: "protocol " + r.Conditions.Protocol, Version: r.Version,
		Started: r.Started.Format("2006-01-02 15:04:05 MST"), Command: strings.Join(r.Command, " "),
		Valid: r.Verdict.Valid, Reasons: r.Verdict.Reasons, Ended: r.Ended, Conditions: conditions(r), Figures: figures(r),
		Charts: charts(r), Tables: tables(r), Sections: sections(r),
	}
	if r.SessionCapacity != nil || r.Overhead != nil { // no run, whose numbers these would be
		v.Figures, v.Charts, v.Tables = measuredFigures(r), nil, nil
	}
	if r.Interrupted {
		v.Ended = "The run was interrupted: the numbers are those until then."
	}
	return v
}

// conditions lists what a number must not be quoted without.
func conditions(r *bench.Result) []pair {
	c := &r.Conditions
	load := fmt.Sprintf("closed loop, %d in flight", c.Concurrency)
	if c.Loop == "open" {
		load = fmt.Sprintf("open loop, %s, %s arrivals", perSecond(c.RateRPS), c.Arrivals)
		if c.MaxInFlight > 0 {
			load += fmt.Sprintf(", at most %d in flight (%s)", c.MaxInFlight, c.Overflow)
		}
	}
	server := c.Server
	if c.InProcess {
		server += ", in the process of the generator"
	}
	return []pair{
		{"Target", c.Target},
		{"Server", server},
		{"Transport", c.Transport + ", protocol " + c.Protocol},
		{"Load", load},
		{"Sessions", count(float64(c.Sessions))},
		{"Calls", strings.Join(c.Tools, ", ")},
		{"Duration", fmt.Sprintf("%s measured, %s warm-up, timeout %s", seconds(c.DurationS), seconds(c.WarmupS), seconds(c.TimeoutS))},
		{"Seed", fmt.Sprint(c.Seed)},
		{"Generator", fmt.Sprintf("%d CPUs, %s, %s", c.Host.CPUs, c.Host.OS, c.Host.Go)},
	}
}

// all gives the row of all calls, or an empty one.
func all(r *bench.Result) *bench.Latency {
	for i := range r.Latency {
		if r.Latency[i].Method == "*" {
			return &r.Latency[i]
		}
	}
	return &bench.Latency{Response: &bench.Dist{}, Service: &bench.Dist{}}
}

// figures are the few numbers that a reader looks for first.
func figures(r *bench.Result) []figure {
	d, q := all(r).Response, &r.Requests
	delivered := figure{Value: perSecond(r.Verdict.DeliveredRPS), Name: "delivered"}
	if r.Verdict.AskedRPS > 0 {
		delivered.Note = "asked " + perSecond(r.Verdict.AskedRPS)
	}
	p99 := figure{Value: micros(float64(d.P99US)), Name: "p99 response", Note: "interval not known, run longer"}
	if ci := d.P99CI95US; ci != nil {
		p99.Note = fmt.Sprintf("95 %%: %s to %s", micros(float64(ci[0])), micros(float64(ci[1])))
	}
	failed := q.Total - q.OK
	errs := figure{Value: count(float64(failed)), Name: "errors", Note: "of " + count(float64(q.Total)) + " calls", Bad: failed > 0}
	sessions := figure{Value: count(float64(r.Sessions.Opened)), Name: "sessions", Note: fmt.Sprintf("%d failed, %d lost", r.Sessions.Failed, r.Sessions.Lost)}
	sessions.Bad = r.Sessions.Failed+r.Sessions.Lost > 0
	return []figure{
		delivered, {Value: micros(float64(d.P50US)), Name: "p50 response", Note: "from the intended start"}, p99, errs, sessions,
	}
}
