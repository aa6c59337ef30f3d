package tui

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/mcpengine/mcpengine/bench"
)

func busy() bench.Progress {
	return bench.Progress{
		Phase: bench.PhaseMeasuring, Elapsed: 16 * time.Second, Total: 30 * time.Second, Sessions: 998, Wanted: 1000, Calls: 1234567,
		Errors: 89, InFlight: 12, RPS: 498.7, P50US: 1234, P99US: 56789, Delivered: 499.9, Dropped: 3, Lost: 2, Failed: 1,
		Outcomes: map[string]int64{"timeout": 80, "tool_error": 9}, LagP99US: 12000, CPU: 0.42,
		Reasons: []string{strings.Repeat("the generator began calls late; ", 10), "and another reason"},
	}
}

func newModel(width, height int) *model {
	m := &model{
		feed: &feed{}, width: width, height: height, interrupt: func() {},
		header: Header{Target: "http://127.0.0.1:8080/mcp\x1b[2J", Load: "open loop, 500/s constant", Details: "tools echo", RateRPS: 500},
	}
	for i := range 300 {
		p := busy()
		p.RPS, p.P99US = 400+float64(i%100), int64(1000*(1+i%7))
		m.feed.progress(p)
	}
	m.feed.progress(busy())
	m.feed.warning("one session could not be opened: \x1b[31mred\nsecond line")
	return m
}

// TestDrawFits: whatever the size of the window, no line is wider and there are no more lines, and nothing that a server
// has sent moves the cursor.
func TestDrawFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {60, 15}, {40, 10}, {25, 4}, {24, 1}} {
		for _, phase := range []bench.Phase{bench.PhaseOpening, bench.PhaseWarmup, bench.PhaseMeasuring, bench.PhaseDraining, bench.PhaseClosing} {
			m := newModel(size[0], size[1])
			p := busy()
			p.Phase = phase
			m.feed.progress(p)
			text := m.draw()
			lines := strings.Split(text, "\n")
			if len(lines) > size[1] {
				t.Errorf("%v %s: %d lines", size, phase, len(lines))
			}
			for _, line := range lines {
				if w := lipgloss.Width(line); w > size[0] {
					t.Errorf("%v %s: a line of %d cells: %q", size, phase, w, line)
				}
			}
			if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "\x1b[31mred") {
				t.Errorf("%v %s: control characters of a peer reach the terminal", size, phase)
			}
		}
	}
}

// TestDrawSays looks for what must be seen at 80x24.
func TestDrawSays(t *testing.T) {
	text := ansi.Strip(newModel(80, 24).draw())
	for _, want := range []string{
		"MEASURING", "14s left of 30s", "500/s of 500/s asked", "499/s", "1.23ms", "56.8ms", "1,234,567 ended", "12 in flight",
		"3 dropped", "89 errors", "timeout 80", "tool error 9", "998 of 1,000", "2 lost", "INVALID", "schedule lag p99 12ms", "CPU 42 %",
		"▇", "q or Ctrl-C", "one session could not be opened",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the screen lacks %q:\n%s", want, text)
		}
	}
	if m := newModel(120, 40); strings.Count(ansi.Strip(m.draw()), "█") <= strings.Count(text, "█")+50 {
		t.Errorf("a large window does not get taller charts:\n%s", ansi.Strip(m.draw()))
	}
}

// TestKeys: the first q or Ctrl-C asks the run to end, the second gives up; other keys do nothing.
func TestKeys(t *testing.T) {
	m := newModel(80, 24)
	asked := 0
	m.interrupt = func() { asked++ }
	press := func(k tea.Key) (quit bool) {
		_, cmd := m.Update(tea.KeyPressMsg(k))
		return cmd != nil
	}
	if press(tea.Key{Code: 'x', Text: "x"}) || asked != 0 {
		t.Errorf("x: asked %d times", asked)
	}
	if press(tea.Key{Code: 'q', Text: "q"}) || asked != 1 || m.abandoned || !strings.Contains(m.draw(), "INTERRUPTED") {
		t.Errorf("q: asked %d times, abandoned %v", asked, m.abandoned)
	}
	if !press(tea.Key{Code: 'c', Mod: tea.ModCtrl}) || asked != 1 || !m.abandoned {
		t.Errorf("Ctrl-C after it: asked %d times, abandoned %v; want the end", asked, m.abandoned)
	}
	m.Update(tea.WindowSizeMsg{Width: 44, Height: 11})
	if m.width != 44 || m.height != 11 {
		t.Errorf("the size is %d by %d", m.width, m.height)
	}
}

// TestHistory: a long run keeps its peaks and does not grow.
func TestHistory(t *testing.T) {
	var h history
	for i := range 10_000 {
		p := bench.Progress{RPS: 100, P50US: 10, P99US: 20}
		if i == 1234 {
			p.P99US = 5000
		}
		h.add(p)
	}
	if len(h.points) > mostPoints || peak(h.series(func(x point) float64 { return x.p99 })) != 5000 || h.points[0].rps != 100 {
		t.Errorf("%d points, peak %v, rate %v", len(h.points), peak(h.series(func(x point) float64 { return x.p99 })), h.points[0].rps)
	}
}

func TestChart(t *testing.T) {
	for _, tt := range []struct {
		values      []float64
		width, rows int
		want        string
	}{
		{nil, 5, 1, "[]"},
		{[]float64{0, 0}, 5, 1, "[▁▁]"},
		{[]float64{1, 4, 8}, 5, 1, "[▁▄█]"},
		{[]float64{1, 4, 8}, 2, 1, "[▄█]"},
		{[]float64{1, 4, 8}, 5, 2, "[  █ ▂██]"},
		{[]float64{1}, -3, 1, "[]"},
	} {
		if got := fmt.Sprint(chart(tt.values, tt.width, tt.rows)); got != tt.want {
			t.Errorf("chart(%v, %d, %d) = %s, want %s", tt.values, tt.width, tt.rows, got, tt.want)
		}
	}
}
