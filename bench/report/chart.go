package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"math"
	"strings"
)

// The measures of a chart, in the units of its view box.
const (
	chartWidth, chartHeight = 720, 260
	left, right, top, foot  = 66, 14, 12, 40
	mostPoints              = 1200 // drawn of one line; more cannot be told apart
)

// series is one line of a chart.
type series struct {
	name  string
	class string // colour, a class of the style sheet
	x, y  []float64
	shape shape
}

// shape is how a series is drawn.
type shape string

const (
	solid   shape = ""
	dashed  shape = "dashed"
	dots    shape = "dots"    // no line
	crosses shape = "crosses" // no line; for what has failed
	stairs  shape = "stairs"  // the value holds until the next one
)

// chart is what is drawn. A chart without a point is left out by its page.
type chart struct {
	title, note string
	x, y        *scale
	xName       string
	lines       []series
	marks       []mark
	band        *[2]float64 // of x, such as an interval
}

// mark is a line across the chart, such as a rate that was asked for.
type mark struct {
	value   float64
	text    string
	upright bool // value is one of x
	atLeft  bool // where the text of one that is not upright stands
}

// chartView is a chart as the page shows it.
type chartView struct {
	Title, Note string
	SVG         template.HTML
	DataText    string // JSON for the values under the pointer
	Legend      []key
}

// key is an entry of a legend.
type key struct {
	Name, Class string
	Shape       shape
}

// view draws the chart. Everything that goes into the SVG is a number or passes through escape.
func (c *chart) view() chartView {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, chartHeight, escape(c.title))
	if c.band != nil {
		x := c.px(c.band[0])
		fmt.Fprintf(&b, `<rect class="band" x="%.1f" y="%d" width="%.1f" height="%d"/>`, x, top, c.px(c.band[1])-x, chartHeight-foot-top)
	}
	c.grid(&b)
	for _, m := range c.marks {
		x1, y1, x2, y2 := c.ends(m)
		fmt.Fprintf(&b, `<line class="mark" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/>`, x1, x2, y1, y2)
	}
	for _, l := range c.lines {
		c.line(&b, &l)
	}
	for _, m := range c.marks { // over the lines, to be read
		c.markText(&b, m)
	}
	fmt.Fprintf(&b, `<line class="cursor" y1="%d" y2="%d" x1="-9" x2="-9"/>`, top, chartHeight-foot)
	b.WriteString(`</svg>`)
	v := chartView{Title: c.title, Note: c.note, SVG: template.HTML(b.String()), DataText: c.data()}
	for _, l := range c.lines {
		if len(l.x) > 0 {
			v.Legend = append(v.Legend, key{l.name, l.class, l.shape})
		}
	}
	return v
}

// ends gives the two ends of a mark.
func (c *chart) ends(m mark) (x1, y1, x2, y2 float64) {
	if m.upright {
		return c.px(m.value), top, c.px(m.value), chartHeight - foot
	}
	return left, c.py(m.value), chartWidth - right, c.py(m.value)
}

// markText writes beside a mark, on the side that has room.
func (c *chart) markText(b *strings.Builder, m mark) {
	x, y, anchor := float64(chartWidth-right-4), c.py(m.value)-5, "end"
	switch {
	case m.upright && c.px(m.value) < (left+chartWidth-right)/2:
		x, y, anchor = c.px(m.value)+5, chartHeight-foot-8, "start"
	case m.upright:
		x, y = c.px(m.value)-5, chartHeight-foot-8
	case m.atLeft:
		x, anchor = left+4, "start"
	}
	if !m.upright && y < top+10 { // it would be cut off
		y += 20
	}
	fmt.Fprintf(b, `<text class="marktext" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`, anchor, x, y, escape(m.text))
}

// grid draws axes and ticks.
func (c *chart) grid(b *strings.Builder) {
	for _, v := range c.y.ticks {
		y := c.py(v)
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/><text class="tick" text-anchor="end" x="%d" y="%.1f">%s</text>`,
			left, chartWidth-right, y, y, left-6, y+4, escape(c.y.format(v)))
	}
	for _, v := range c.x.ticks {
		x, anchor := c.px(v), "middle"
		switch {
		case x > chartWidth-right-20:
			anchor = "end" // it would be cut off
		case x < left+20:
			anchor = "start" // it would run into the tick of the other axis
		}
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text class="tick" text-anchor="%s" x="%.1f" y="%d">%s</text>`,
			x, x, top, chartHeight-foot, anchor, x, chartHeight-foot+16, escape(c.x.format(v)))
	}
	fmt.Fprintf(b, `<text class="axis" text-anchor="middle" x="%d" y="%d">%s</text>`, (left+chartWidth-right)/2, chartHeight-3, escape(c.xName))
}

// line draws one series.
func (c *chart) line(b *strings.Builder, l *series) {
	switch l.shape {
	case dots:
		for i := range l.x {
			fmt.Fprintf(b, `<circle class="dot %s" cx="%.1f" cy="%.1f" r="4"/>`, l.class, c.px(l.x[i]), c.py(l.y[i]))
		}
		return
	case crosses:
		for i := range l.x {
			fmt.Fprintf(b, `<path class="line %s" d="M%.1f %.1fl8 8m0 -8l-8 8"/>`, l.class, c.px(l.x[i])-4, c.py(l.y[i])-4)
		}
		return
	}
	fmt.Fprintf(b, `<path class="line %s %s" d="`, l.class, l.shape)
	pen, step := "M", max(1, int(math.Ceil(float64(len(l.x))/mostPoints)))
	for i := 0; i < len(l.x); i += step {
		x := c.px(l.x[i])
		if l.shape == stairs && pen == "L" {
			fmt.Fprintf(b, "H%.1f", x)
		}
		fmt.Fprintf(b, "%s%.1f %.1f", pen, x, c.py(l.worst(i, step)))
		pen = "L"
	}
	b.WriteString(`"/>`)
}

// worst gives the largest of the n values from i on, so that thinning out hides no peak.
func (l *series) worst(i, n int) float64 {
	v := l.y[i]
	for _, o := range l.y[i:min(i+n, len(l.y))] {
		v = max(v, o)
	}
	return v
}

func (c *chart) px(v float64) float64 {
	return left + clamp(c.x.at(v))*(chartWidth-left-right)
}

func (c *chart) py(v float64) float64 {
	return chartHeight - foot - clamp(c.y.at(v))*(chartHeight-foot-top)
}

func clamp(share float64) float64 {
	if !(share > 0) { // NaN as well
		return 0
	}
	return min(share, 1)
}

// pointerLine is a series for the script that shows values under the pointer.
type pointerLine struct {
	Name string    `json:"name"`
	X    []float64 `json:"x"` // pixels
	At   []string  `json:"at"`
	Text []string  `json:"text"`
}

// data gives what the script needs, at most a few hundred values for each line.
func (c *chart) data() string {
	const most = 300
	out := []pointerLine{}
	for _, l := range c.lines {
		if len(l.x) == 0 {
			continue
		}
		p := pointerLine{Name: l.name, X: []float64{}, At: []string{}, Text: []string{}}
		step := max(1, int(math.Ceil(float64(len(l.x))/most)))
		for i := 0; i < len(l.x); i += step {
			p.X = append(p.X, math.Round(10*c.px(l.x[i]))/10)
			p.At = append(p.At, c.x.format(l.x[i]))
			p.Text = append(p.Text, c.y.format(l.worst(i, step)))
		}
		out = append(out, p)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "[]" // floats that are no numbers; the lines are drawn all the same
	}
	return string(text)
}

// empty reports whether there is nothing to draw.
func (c *chart) empty() bool {
	for _, l := range c.lines {
		if len(l.x) > 0 {
			return false
		}
	}
	return true
}

func escape(s string) string { return template.HTMLEscapeString(s) }

// highest gives the largest value of all lines, and lowest the smallest above zero.
func highest(lines []series) float64 {
	v := 0.0
	for _, l := range lines {
		for _, y := range l.y {
			v = max(v, y)
		}
	}
	return v
}

func lowest(lines []series) float64 {
	v := math.Inf(1)
	for _, l := range lines {
		for _, y := range l.y {
			if y > 0 {
				v = min(v, y)
			}
		}
	}
	if math.IsInf(v, 1) {
		return 0
	}
	return v
}
