package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/cmd/mcp-load/tui"
	"golang.org/x/term"
)

const plainEvery = 5 * time.Second

// liveView shows the progress of a run on stderr. progress and warning are called from the goroutines of the run and must
// not block it; end comes last.
type liveView interface {
	progress(bench.Progress)
	warning(text string)
	end()
}

// resultView is a liveView that shows the result of the run. It is told before the end; res is nil where there is none.
type resultView interface{ result(res *bench.Result) }

// liveSetup is what a view begins with. It may add itself to the configuration, to be told more.
type liveSetup struct {
	config    *bench.Config
	addr      string // of --live web
	stderr    io.Writer
	interrupt func() // ends the run as Ctrl-C does
}

// liveMode is one word that --live understands.
type liveMode struct {
	name string
	// problem says why the mode cannot be used here; nil or "" where it can.
	problem func(stderr io.Writer) string
	start   func(*liveSetup) (liveView, error)
}

// liveModes lists what --live understands, auto apart, which is tui on a terminal and plain elsewhere.
var liveModes = []liveMode{
	{name: "tui", problem: noTerminal, start: newTUIView},
	{name: "plain", start: newPlainView},
	{name: "web", start: newWebView},
	{name: "off", start: newSilentView},
}

// findLiveMode reads --live, and gives the address of web=ADDR as well.
func findLiveMode(name string, stderr io.Writer) (mode *liveMode, addr string, err error) {
	if rest, ok := strings.CutPrefix(name, "web"); ok && (rest == "" || rest[0] == '=') {
		if addr, err = webAddr(strings.TrimPrefix(rest, "=")); err != nil {
			return nil, "", err
		}
		name = "web"
	}
	if name == "auto" {
		name = "plain"
		if noTerminal(stderr) == "" {
			name = "tui"
		}
	}
	var names []string
	for i := range liveModes {
		m := &liveModes[i]
		if m.name != name {
			names = append(names, m.name)
			continue
		}
		if m.problem != nil {
			if text := m.problem(stderr); text != "" {
				return nil, "", usageError("--live %s cannot be used here: %s", name, text)
			}
		}
		return m, addr, nil
	}
	last := len(names) - 1
	return nil, "", usageError("unknown --live %q: choose auto, %s or %s", name, strings.Join(names[:last], ", "), names[last])
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// noTerminal says why no screen can be drawn on stderr, or "".
func noTerminal(stderr io.Writer) string {
	switch {
	case !isTerminal(stderr):
		return "standard error is not a terminal"
	case !isTerminal(os.Stdin):
		return "standard input is not a terminal, so no key could be read"
	case slices.Contains([]string{"", "dumb"}, os.Getenv("TERM")):
		return "the terminal can do no more than write lines (TERM)"
	case inBackground(stderr.(*os.File)):
		return "the program runs in the background of its terminal"
	}
	return ""
}

// tuiView is the screen of package tui.
type tuiView struct {
	screen *tui.Screen
	stderr io.Writer
}

func newTUIView(s *liveSetup) (liveView, error) {
	c := s.config
	abandon := func() { os.Exit(exitInterrupted) } // what a second Ctrl-C does where there is no screen
	return &tuiView{tui.Start(os.Stdin, s.stderr.(*os.File), tui.Header{
		Target: targetText(c), Load: loadText(c), Details: detailsText(c), RateRPS: c.Rate, Duration: c.Duration,
	}, s.interrupt, abandon), s.stderr}, nil
}

// targetText names what the load is offered to.
func targetText(c *bench.Config) string {
	if len(c.Command) > 0 {
		return strings.Join(c.Command, " ")
	}
	return c.URL
}

func (v *tuiView) progress(p bench.Progress) { v.screen.Progress(p) }

func (v *tuiView) warning(text string) { v.screen.Warning(text) }

func (v *tuiView) end() {
	warnings, err := v.screen.End()
	if err != nil {
		warnings = append(warnings, err.Error())
	}
	for _, text := range warnings {
		printWarning(v.stderr, text)
	}
}

// loadText says in short what load is offered.
func loadText(c *bench.Config) string {
	text := "closed loop"
	switch {
	case c.Rate > 0:
		text = fmt.Sprintf("open loop, %.4g/s %s", c.Rate, c.Arrivals)
	case c.Concurrency > 0:
		text += fmt.Sprintf(", %d in flight", c.Concurrency)
	}
	if c.MaxInFlight > 0 {
		text += fmt.Sprintf(", at most %d in flight", c.MaxInFlight)
	}
	if c.Warmup > 0 {
		text += fmt.Sprintf(", warm-up %s", c.Warmup)
	}
	return text
}

// detailsText names sessions, protocol, tools and thresholds, as far as they were given.
func detailsText(c *bench.Config) string {
	var parts []string
	if c.Protocol != "" {
		parts = append(parts, "protocol "+c.Protocol)
	}
	var tools []string
	for _, t := range c.Tools {
		tools = append(tools, t.Name)
	}
	if len(tools) > 0 {
		parts = append(parts, "tools "+strings.Join(tools, ", "))
	}
	if len(c.Thresholds) > 0 {
		parts = append(parts, "thresholds "+strings.Join(c.Thresholds, ", "))
	}
	return strings.Join(parts, " · ")
}

// plainView writes a line every five seconds.
type plainView struct {
	w    io.Writer
	last time.Time
}

func newPlainView(s *liveSetup) (liveView, error) {
	return &plainView{w: s.stderr, last: time.Now()}, nil
}

func (v *plainView) progress(p bench.Progress) {
	if time.Since(v.last) >= plainEvery {
		v.last = time.Now()
		fmt.Fprintln(v.w, progressLine(p))
	}
}

func (v *plainView) warning(text string) { printWarning(v.w, text) }

func (v *plainView) end() {}

// newStepView is the view of commands that make many runs and print a line for each: plain lines, or nothing.
func newStepView(mode string, stderr io.Writer) liveView {
	if mode == "off" {
		return &silentView{stderr}
	}
	return &plainView{w: stderr, last: time.Now()}
}

func printWarning(w io.Writer, text string) { fmt.Fprintf(w, "mcp-load: warning: %s\n", text) }

// silentView shows nothing but warnings.
type silentView struct{ w io.Writer }

func newSilentView(s *liveSetup) (liveView, error) { return &silentView{s.stderr}, nil }

func (v *silentView) progress(bench.Progress) {}

func (v *silentView) warning(text string) { printWarning(v.w, text) }

func (v *silentView) end() {}

// progressLine puts a look at a run into one line.
func progressLine(p bench.Progress) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s", p.Phase)
	switch {
	case p.Phase == bench.PhaseOpening || p.Phase == bench.PhaseClosing:
		fmt.Fprintf(&b, " %d of %d sessions open", p.Sessions, p.Wanted)
		return b.String()
	case p.Total > 0:
		fmt.Fprintf(&b, " %s left", max(p.Total-p.Elapsed, 0).Round(time.Second))
	case p.Limit > 0:
		fmt.Fprintf(&b, " %d of %d calls", p.Calls, p.Limit)
	}
	if p.Phase == bench.PhaseWarmup {
		fmt.Fprintf(&b, ", %d in flight", p.InFlight)
		return b.String()
	}
	fmt.Fprintf(&b, ", %.0f/s, %d errors, p50 %s, p99 %s, %d in flight, %d sessions",
		p.RPS, p.Errors, micros(p.P50US), micros(p.P99US), p.InFlight, p.Sessions)
	if len(p.Reasons) > 0 {
		b.WriteString(", INVALID so far: " + p.Reasons[0])
	}
	return b.String()
}

func micros(us int64) string {
	if us == 0 {
		return "-"
	}
	return (time.Duration(us) * time.Microsecond).Round(roundTo(us)).String()
}

// roundTo keeps about three digits.
func roundTo(us int64) time.Duration {
	d := time.Microsecond
	for ; us >= 1000; us /= 10 {
		d *= 10
	}
	return d
}
