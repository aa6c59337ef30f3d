package tui

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/mcpengine/mcpengine/bench"
)

// The colours are those of the terminal's own palette, so that they suit light and dark ones.
var (
	bold   = lipgloss.NewStyle().Bold(true)
	dim    = lipgloss.NewStyle().Faint(true)
	good   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	warn   = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	accent = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	second = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

// model is the state of the screen, owned by the program's goroutine.
type model struct {
	header      Header
	feed        *feed
	interrupt   func()
	interrupted bool
	abandoned   bool

	width, height int
}

type tick struct{}

func nextTick() tea.Cmd { return tea.Tick(repaintEvery, func(time.Time) tea.Msg { return tick{} }) }

// Init begins the repainting.
func (m *model) Init() tea.Cmd { return nextTick() }

// Update takes keys, sizes and ticks.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		return m, nextTick()
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "ctrl+c" {
			if m.interrupted {
				m.abandoned = true
				return m, tea.Quit
			}
			m.interrupted = true
			m.interrupt()
		}
	}
	return m, nil
}

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	return v
}

// draw fits the screen into the window: no line is longer than it, and there are no more lines than it has. What matters
// least goes first.
func (m *model) draw() string {
	p, spark, warnings, ok := m.feed.look()
	width := max(min(m.width, 120)-2, 20)
	var lines []string
	lines = append(lines, m.title(p, width, ok), dim.Render(clip(m.header.Load, width)), dim.Render(clip(m.header.Details, width)), "",
		m.bar(p, width), "")
	if ok {
		lines = append(lines, m.rate(p, &spark, width)...)
		lines = append(lines, "")
		lines = append(lines, m.times(p, &spark, width)...)
		lines = append(lines, "")
		lines = append(lines, m.calls(p, width)...)
		lines = append(lines, "")
		lines = append(lines, m.verdict(p, width)...)
	}
	for _, text := range warnings[max(0, len(warnings)-2):] {
		lines = append(lines, label("warning")+warn.Render(clip(text, width-labelWidth)))
	}
	foot := dim.Render(clip("q or Ctrl-C ends the run; what was measured until then is written", width))
	if m.interrupted {
		foot = warn.Render(clip("ending: calls in flight are seen out, sessions closed, files written (again: give up at once)", width))
	}
	for len(lines) > m.height-2 {
		gap := slices.Index(lines, "")
		if gap < 0 {
			lines = lines[:max(m.height-2, 0)]
			break
		}
		lines = slices.Delete(lines, gap, gap+1)
	}
	lines = append(lines, "", foot)
	if m.height < len(lines) {
		lines = lines[:max(m.height, 1)]
	}
	for i, line := range lines {
		lines[i] = " " + ansi.Truncate(line, width, "…")
	}
	return strings.Join(lines, "\n")
}

func (m *model) title(p bench.Progress, width int, ok bool) string {
	phase := "STARTING"
	if ok {
		phase = strings.ToUpper(string(p.Phase))
	}
	if m.interrupted {
		phase = "INTERRUPTED, " + phase
	}
	left := clip("mcp-load  "+m.header.Target, max(width-len(phase)-2, 8))
	gap := max(width-lipgloss.Width(left)-len(phase), 1)
	return bold.Render(left) + strings.Repeat(" ", gap) + accent.Bold(true).Render(phase)
}

// bar draws how much of the phase is over.
func (m *model) bar(p bench.Progress, width int) string {
	share, text := 0.0, string(p.Phase)
	switch {
	case p.Phase == bench.PhaseOpening || p.Phase == bench.PhaseClosing:
		share = float64(p.Sessions) / float64(max(p.Wanted, 1))
		text = fmt.Sprintf("%s of %s sessions open", count(p.Sessions), count(int64(p.Wanted)))
	case p.Phase == bench.PhaseDraining:
		share, text = 1, fmt.Sprintf("%s calls in flight are seen out", count(p.InFlight))
	case p.Total > 0:
		share = float64(p.Elapsed) / float64(p.Total)
		left := max(p.Total-p.Elapsed, 0).Round(time.Second)
		text = fmt.Sprintf("%3.0f %%  %s left of %s", 100*min(share, 1), left, p.Total)
	case p.Limit > 0:
		share = float64(p.Calls) / float64(p.Limit)
		text = fmt.Sprintf("%3.0f %%  %s of %s calls", 100*min(share, 1), count(p.Calls), count(p.Limit))
	}
	room := max(width-34, 10)
	full := int(min(max(share, 0), 1) * float64(room))
	return accent.Render(strings.Repeat("█", full)) + dim.Render(strings.Repeat("░", room-full)) + "  " + clip(text, max(width-room-2, 0))
}

const (
	labelWidth = 16
	valueWidth = 22
	mostRows   = 6 // of a chart
)

func label(text string) string { return dim.Render(fmt.Sprintf("%-*s", labelWidth, text)) }

// curve is a chart with a label, the value of now and the highest that it shows.
func curve(name, value, most string, values []float64, style lipgloss.Style, width, rows int) []string {
	lines := chart(values, width-labelWidth-valueWidth, rows)
	for i, line := range lines {
		left := label("") + strings.Repeat(" ", valueWidth)
		switch {
		case i == len(lines)-1:
			left = label(name) + bold.Render(fmt.Sprintf("%-*s", valueWidth, clip(value, valueWidth-1)))
		case i == 0:
			left = label("") + dim.Render(fmt.Sprintf("%*s  ", valueWidth-2, clip("to "+most, valueWidth-3)))
		}
		lines[i] = left + style.Render(line)
	}
	return lines
}

// chartRows shares the lines that the window has to spare among the three charts.
func (m *model) chartRows() int { return min(max(1+(m.height-26)/3, 1), mostRows) }

func (m *model) rate(p bench.Progress, h *history, width int) []string {
	delivered := fmt.Sprintf("%.0f/s", p.Delivered)
	if m.header.RateRPS > 0 {
		delivered = fmt.Sprintf("%.0f/s of %.0f/s asked", p.Delivered, m.header.RateRPS)
	}
	rps := h.series(func(x point) float64 { return x.rps })
	return append([]string{label("delivered") + bold.Render(delivered)},
		curve("succeeding", fmt.Sprintf("%.0f/s", p.RPS), fmt.Sprintf("%.0f/s", peak(rps)), rps, good, width, m.chartRows())...)
}

func (m *model) times(p bench.Progress, h *history, width int) []string {
	p50, p99 := h.series(func(x point) float64 { return x.p50 }), h.series(func(x point) float64 { return x.p99 })
	return append(curve("p50", micros(p.P50US), micros(int64(peak(p50))), p50, accent, width, m.chartRows()),
		curve("p99", micros(p.P99US), micros(int64(peak(p99))), p99, second, width, m.chartRows())...)
}

func (m *model) calls(p bench.Progress, width int) []string {
	errors := good.Render("no errors")
	if p.Errors > 0 {
		text := fmt.Sprintf("%s errors (%.2g %%)", count(p.Errors), 100*float64(p.Errors)/float64(max(p.Calls, 1)))
		for _, name := range slices.Sorted(maps.Keys(p.Outcomes)) {
			text += fmt.Sprintf("  %s %s", strings.ReplaceAll(name, "_", " "), count(p.Outcomes[name]))
		}
		errors = bad.Render(clip(text, width-labelWidth))
	}
	dropped := ""
	if p.Dropped > 0 {
		dropped = bad.Render(fmt.Sprintf("   %s dropped", count(p.Dropped)))
	}
	sessions := bold.Render(count(p.Sessions)) + fmt.Sprintf(" of %s", count(int64(p.Wanted)))
	if p.Lost > 0 {
		sessions += warn.Render(fmt.Sprintf("   %s lost", count(p.Lost)))
	}
	if p.Failed > 0 {
		sessions += bad.Render(fmt.Sprintf("   %s could not be opened", count(p.Failed)))
	}
	return []string{
		label("calls") + bold.Render(count(p.Calls)) + " ended   " + bold.Render(count(p.InFlight)) + " in flight" + dropped,
		label("errors") + errors,
		label("sessions") + sessions,
	}
}

func (m *model) verdict(p bench.Progress, width int) []string {
	state := fmt.Sprintf("generator CPU %.0f %%", 100*p.CPU)
	if m.header.RateRPS > 0 {
		state = fmt.Sprintf("schedule lag p99 %s, ", micros(p.LagP99US)) + state
	}
	switch {
	case p.Phase == bench.PhaseOpening || p.Phase == bench.PhaseWarmup || p.CPU == 0 && p.LagP99US == 0 && len(p.Reasons) == 0:
		return []string{label("verdict") + dim.Render("not yet")}
	case len(p.Reasons) == 0:
		return []string{label("verdict so far") + good.Bold(true).Render("VALID") + dim.Render("  "+clip(state, width-labelWidth-7))}
	}
	lines := []string{label("verdict so far") + bad.Render("INVALID") + dim.Render("  "+clip(state, width-labelWidth-9))}
	for _, reason := range p.Reasons[:min(len(p.Reasons), 2)] {
		for _, line := range wrap(reason, width-labelWidth, 2) {
			lines = append(lines, label("")+line)
		}
	}
	return lines
}
