// Package report draws results of package bench as one HTML file that needs no network: conditions and verdict first,
// then what was measured over time, the percentile spectra, and every number in tables. It looks right in light and dark
// and on paper, and works without its script, which only shows values under the pointer.
package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
)

//go:embed page.html style.css script.js live.js
var parts embed.FS

var page = template.Must(template.New("page.html").ParseFS(parts, "page.html"))

// pageView is all that the page shows.
type pageView struct {
	Title   string
	Style   template.CSS
	Script  template.JS
	Live    bool // the run goes on
	Runs    []runView
	Several bool
}

// Write draws one or several results, such as those of a matrix of protocols, as an HTML page.
func Write(w io.Writer, results ...*bench.Result) error {
	if len(results) == 0 {
		return fmt.Errorf("report: no result to draw")
	}
	v, err := newPage("script.js")
	if err != nil {
		return err
	}
	v.Title, v.Several = title(results[0]), len(results) > 1
	for i, r := range results {
		v.Runs = append(v.Runs, viewOf(i, r))
	}
	return page.Execute(w, v)
}

// newPage makes a page without a run, with the style and the scripts.
func newPage(scripts ...string) (*pageView, error) {
	style, err := parts.ReadFile("style.css")
	if err != nil {
		return nil, err
	}
	v := &pageView{Style: template.CSS(style)}
	for _, name := range scripts {
		script, err := parts.ReadFile(name)
		if err != nil {
			return nil, err
		}
		v.Script += template.JS(script)
	}
	return v, nil
}

func title(r *bench.Result) string { return "mcp-load: " + r.Conditions.Target }

// runView is one result as the page shows it.
type runView struct {
	ID         string
	Name       string // in a matrix
	Started    string
	Version    string
	Command    string
	Answers    []string // of the sections
	Verdict    verdictView
	Conditions []pair
	Sections   []section
	Details    string // heading of what follows, where sections come first
	Figures    []figure
	Charts     []chartView
	Tables     []table
}

// verdictView is the box that says whether the numbers can be trusted.
type verdictView struct {
	Word  string
	Of    string // what it is about, where it is not the whole page
	Class string // good, bad or running
	Lines []string
}

// pair is a line of the conditions.
type pair struct{ Name, Value string }

// figure is a number in large type.
type figure struct {
	Value, Name, Note string
	Bad               bool
}

// table is a table with a heading. The first column is text, the others are numbers where Words does not say otherwise.
type table struct {
	Title, Note string
	Head        []string // none where the rows need no names of columns
	Rows        [][]string
	Bad         map[int]bool // rows that tell of a failure
	Words       []int        // columns of sentences, which may take several lines
}

// Wordy reports whether a column holds sentences.
func (t table) Wordy(column int) bool { return slices.Contains(t.Words, column) }

func viewOf(i int, r *bench.Result) runView {
	v := runView{
		ID: fmt.Sprintf("run%d", i+1), Name: "protocol " + r.Conditions.Protocol, Version: r.Version,
		Started: r.Started.Format("2006-01-02 15:04:05 MST"), Command: strings.Join(r.Command, " "), Verdict: verdict(r),
		Conditions: conditions(r), Figures: figures(r), Charts: charts(r), Tables: tables(r), Sections: sections(r),
	}
	if r.SessionCapacity != nil || r.Overhead != nil { // no run, whose numbers these would be
		v.Figures, v.Charts, v.Tables = measuredFigures(r), nil, nil
	}
	for _, s := range v.Sections {
		v.Answers = append(v.Answers, s.Text)
		v.Details = s.Details
	}
	v.Verdict.Of = v.Details
	if len(v.Figures) == 0 { // nothing follows
		v.Details = ""
	}
	return v
}

// verdict judges the run, and says why it ended where that was not its time.
func verdict(r *bench.Result) verdictView {
	v := verdictView{Word: "VALID", Class: "good", Lines: []string{"The generator kept its schedule and was not the limit."}}
	if !r.Verdict.Valid {
		v = verdictView{Word: "INVALID", Class: "bad", Lines: r.Verdict.Reasons}
	}
	if r.Ended != "" {
		v.Lines = append(v.Lines, r.Ended)
	}
	if r.Interrupted {
		v.Lines = append(v.Lines, "The run was interrupted: the numbers are those until then.")
	}
	return v
}

// conditions lists what a number must not be quoted without.
func conditions(r *bench.Result) []pair {
	c := &r.Conditions
	server := c.Server
	if c.InProcess {
		server += ", in the process of the generator"
	}
	transport := c.Transport
	if c.HTTP2 {
		transport = "HTTP/2"
	}
	calls := strings.Join(c.Tools, ", ")
	if len(r.Flows) > 0 {
		calls = strings.TrimSpace("the flows of "+c.Scenario) + "; rates of starts are flows a second"
	}
	return []pair{
		{"Target", c.Target},
		{"Server", server},
		{"Transport", transport + ", protocol " + c.Protocol},
		{"Load", c.LoadText()},
		{"Sessions", count(float64(c.Sessions))},
		{"Calls", calls},
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
	if q.Total == 0 && q.Dropped == 0 {
		return nil // such as sessions that were only held
	}
	delivered := figure{Value: perSecond(r.Verdict.DeliveredRPS), Name: "delivered"}
	if len(r.Flows) > 0 {
		delivered.Name = "flows begun"
	}
	switch {
	case r.Verdict.AskedRPS > 0:
		delivered.Note = "asked " + perSecond(r.Verdict.AskedRPS)
	case len(r.Flows) > 0:
		delivered.Note = perSecond(r.Verdict.CompletedRPS) + " calls answered"
	}
	p99 := figure{Value: micros(float64(d.P99US)), Name: "p99 response", Note: "interval not known, run longer"}
	if ci := d.P99CI95US; ci != nil {
		p99.Note = fmt.Sprintf("95 %%: %s to %s", micros(float64(ci[0])), micros(float64(ci[1])))
	}
	failed := q.Total - q.OK - q.CancelledMeant
	errs := figure{Value: count(float64(failed)), Name: "errors", Note: "of " + count(float64(q.Total)) + " calls", Bad: failed > 0}
	sessions := figure{Value: count(float64(r.Sessions.Opened)), Name: "sessions", Note: fmt.Sprintf("%d failed, %d lost", r.Sessions.Failed, r.Sessions.Lost)}
	sessions.Bad = r.Sessions.Failed+r.Sessions.Lost > 0
	return []figure{
		delivered, {Value: micros(float64(d.P50US)), Name: "p50 response", Note: "from the intended start"}, p99, errs, sessions,
	}
}
