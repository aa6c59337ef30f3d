package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"golang.org/x/term"
)

const (
	plainEvery   = 5 * time.Second
	repaintEvery = 200 * time.Millisecond
	barWidth     = 24
)

// liveView shows the progress of a run on stderr: a line that is repainted on a terminal, a line every five seconds
// elsewhere, or nothing. Its methods are called from one goroutine at a time.
type liveView struct {
	w       io.Writer
	repaint bool
	off     bool
	width   func() int
	last    time.Time
	painted bool
}

func newLiveView(mode string, w io.Writer) *liveView {
	v := &liveView{w: w, off: mode == "off", width: func() int { return 100 }, last: time.Now()}
	if f, ok := w.(*os.File); ok && mode == "auto" && isTerminal(w) {
		v.repaint = true
		v.width = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
			return 100
		}
	}
	return v
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// progress shows p, unless it was shown a moment ago.
func (v *liveView) progress(p bench.Progress) {
	every := plainEvery
	if v.repaint {
		every = repaintEvery
	}
	if v.off || time.Since(v.last) < every {
		return
	}
	v.last = time.Now()
	if v.repaint {
		line := []rune(progressLine(p, true))
		fmt.Fprintf(v.w, "\r\x1b[K%s", string(line[:min(len(line), v.width()-1)]))
		v.painted = true
		return
	}
	fmt.Fprintln(v.w, progressLine(p, false))
}

// warning prints a line of its own.
func (v *liveView) warning(text string) {
	v.end()
	fmt.Fprintf(v.w, "mcp-load: warning: %s\n", text)
}

// end wipes the repainted line.
func (v *liveView) end() {
	if v.painted {
		fmt.Fprint(v.w, "\r\x1b[K")
		v.painted = false
	}
}

// progressLine puts a look at a run into one line.
func progressLine(p bench.Progress, bar bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s", p.Phase)
	share, known := doneShare(p)
	if bar && known {
		full := int(share * barWidth)
		b.WriteString(" " + strings.Repeat("█", full) + strings.Repeat("░", barWidth-full))
	}
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
	return b.String()
}

// doneShare tells how much of the phase is over, where that is known.
func doneShare(p bench.Progress) (share float64, known bool) {
	switch {
	case p.Phase == bench.PhaseOpening || p.Phase == bench.PhaseClosing:
		share = float64(p.Sessions) / float64(max(p.Wanted, 1))
	case p.Total > 0:
		share = float64(p.Elapsed) / float64(p.Total)
	case p.Limit > 0:
		share = float64(p.Calls) / float64(p.Limit)
	default:
		return 0, false
	}
	return min(max(share, 0), 1), true
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
