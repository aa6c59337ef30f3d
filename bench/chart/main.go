// Command chart draws a side-by-side result of the measuring program perf as an
// SVG picture, or the folder of a capacity study:
//
//	go run ./bench/chart results/2026-11-30-side-by-side-*.json > results/side-by-side.svg
//	go run ./bench/chart results/2026-11-30-capacity-study > results/capacity-study.svg
//
// Each panel has a scale of its own; a bar is the median over the rounds, or what
// a search for a capacity has found.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
)

// result is the part of perf's JSON that is drawn.
type result struct {
	Conditions struct {
		Time string   `json:"time"`
		CPU  string   `json:"cpu"`
		Go   string   `json:"go"`
		Peer []string `json:"peers"`
	} `json:"conditions"`
	Workloads []workload `json:"workloads"`
}

type workload struct {
	Workload string   `json:"workload"`
	Servers  []server `json:"servers"`
}

type server struct {
	Server  string               `json:"server"`
	Rounds  []map[string]float64 `json:"rounds"`
	Invalid string               `json:"invalid"`
	Refused string               `json:"refused"`
}

// panels are what is drawn, in this order.
var panels = []struct {
	workload, figure string
	title            string
	unit             float64 // what one of the shown unit is in perf's
	digits           int
}{
	{"http-each", "cpu", "HTTP 2025-11-25, 64 sessions: CPU µs per call", 1e-6, 1},
	{"http-shared", "cpu", "HTTP 2025-11-25, one session: CPU µs per call", 1e-6, 1},
	{"http-stateless", "cpu", "HTTP 2026-07-28: CPU µs per call", 1e-6, 1},
	{"stdio", "cpu", "stdio, 256 in flight: CPU µs per call", 1e-6, 1},
	{"sessions", "bytes", "idle HTTP session: bytes resident", 1, 0},
	{"streams", "both", "session with its GET stream: bytes resident", 1, 0},
}

// names are the servers as the chart calls them, in the order of their bars.
var names = []struct{ server, shown string }{
	{"bare", "bare"}, {"subject", "mcpengine"}, {"mcpgo", "mcp-go"}, {"gosdk", "Go SDK"},
}

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: chart RESULT.json...|FOLDER > CHART.svg")
	}
	if err := drawFiles(os.Stdout, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// drawFiles draws side-by-side results of different workloads, or the folder of a study.
func drawFiles(w io.Writer, names []string) error {
	info, err := os.Stat(names[0])
	if err != nil {
		return err
	}
	if info.IsDir() {
		study, err := readStudy(names[0])
		if err != nil {
			return err
		}
		return drawStudy(w, study)
	}
	var texts [][]byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		texts = append(texts, text)
	}
	return draw(w, texts...)
}

// The measures of the picture, in pixels.
const (
	panelWidth, panelHeight = 400, 138
	barHeight, barGap       = 16, 6
	labelWidth, valueWidth  = 82, 66
	margin                  = 14
	footer                  = 26
)

// draw writes the picture of results, whose conditions are taken to be those of the first.
func draw(w io.Writer, texts ...[]byte) error {
	var r result
	for i, text := range texts {
		var one result
		if err := json.Unmarshal(text, &one); err != nil {
			return err
		}
		if i == 0 {
			r.Conditions = one.Conditions
		}
		r.Workloads = append(r.Workloads, one.Workloads...)
	}
	var drawn []string
	for _, p := range panels {
		i := slices.IndexFunc(r.Workloads, func(w workload) bool { return w.Workload == p.workload })
		if i < 0 {
			continue
		}
		x, y := len(drawn)%2*panelWidth, len(drawn)/2*panelHeight
		bars := bars(r.Workloads[i].medians(p.figure), p.unit, p.digits)
		drawn = append(drawn, fmt.Sprintf(`<g transform="translate(%d,%d)"><text x="%d" y="24" font-weight="600">%s</text>%s</g>`,
			x, y, margin, p.title, bars))
	}
	if len(drawn) == 0 {
		return fmt.Errorf("chart: none of the workloads of a side-by-side result")
	}
	width, height := 2*panelWidth, (len(drawn)+1)/2*panelHeight+footer
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#1f2937">
<rect width="%d" height="%d" fill="#ffffff"/>
%s
<text x="%d" y="%d" font-size="10" fill="#6b7280">medians, less is better; %s</text>
</svg>
`, width, height, width, height, strings.Join(drawn, "\n"), margin, height-10, r.conditions())
	return err
}

// conditions is the line under the panels.
func (r *result) conditions() string {
	var peers []string
	for _, peer := range r.Conditions.Peer {
		peers = append(peers, peer[strings.LastIndexByte(peer[:strings.IndexByte(peer+" ", ' ')], '/')+1:])
	}
	date, _, _ := strings.Cut(r.Conditions.Time, "T")
	return escape(strings.Join(append([]string{date, r.Conditions.Go}, peers...), ", "))
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// medians gives the median of a figure for each server that has a valid one.
func (w *workload) medians(figure string) map[string]float64 {
	found := make(map[string]float64)
	for _, s := range w.Servers {
		var values []float64
		for _, round := range s.Rounds {
			if v, ok := round[figure]; ok {
				values = append(values, v)
			}
		}
		if len(values) > 0 && s.Invalid == "" && s.Refused == "" {
			slices.Sort(values)
			middle := len(values) / 2
			found[s.Server] = (values[middle] + values[(len(values)-1)/2]) / 2
		}
	}
	return found
}

// bars draws the bars of a panel below its title.
func bars(medians map[string]float64, unit float64, digits int) string {
	most := 0.0
	for _, v := range medians {
		most = max(most, v)
	}
	var b strings.Builder
	y := 36
	for _, n := range names {
		v, ok := medians[n.server]
		if !ok || v <= 0 {
			continue
		}
		fill := "#cbd5e1"
		if n.server == "subject" {
			fill = "#2563eb"
		}
		length := v / most * (panelWidth - 2*margin - labelWidth - valueWidth)
		fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%s</text>`,
			margin, y+12, n.shown, margin+labelWidth, y, length, barHeight, fill,
			float64(margin+labelWidth)+length+6, y+12, number(v/unit, digits))
		y += barHeight + barGap
	}
	return b.String()
}

// number writes a figure with separators between the thousands.
func number(v float64, digits int) string {
	text := fmt.Sprintf("%.*f", digits, v)
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}
