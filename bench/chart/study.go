package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// measured is the part of a result of mcp-load that is drawn.
type measured struct {
	Started    string `json:"started"`
	Conditions struct {
		Sessions int `json:"sessions"`
		Host     struct {
			Go string `json:"go"`
		} `json:"host"`
	} `json:"conditions"`
	Capacity *struct {
		RateRPS    float64  `json:"rate_rps"`
		Objectives []string `json:"objectives"`
		FailedAt   float64  `json:"failed_at"`
		LimitedBy  string   `json:"limited_by"`
		Confirmed  bool     `json:"confirmed"`
		TimedOut   bool     `json:"timed_out"`
	} `json:"capacity"`
	Plan *struct {
		Target struct {
			Users int `json:"users"`
		} `json:"target"`
		ThinkS float64 `json:"think_s"`
		Needs  []struct {
			What   string  `json:"what"`
			Wanted float64 `json:"wanted"`
		} `json:"needs"`
	} `json:"plan"`
}

// lowerBound reports whether the server may hold more than was found.
func (m *measured) lowerBound() bool {
	c := m.Capacity
	return c.LimitedBy == "generator" || c.TimedOut || c.FailedAt == 0
}

// studied are the servers of a study by the names of their files, and the ways to them.
var studied = []struct{ file, shown string }{{"mcpengine", "mcpengine"}, {"mcp-go", "mcp-go"}, {"go-sdk", "Go SDK"}}

var ways = []struct{ file, shown, fill string }{
	{"direct", "direct", "#2563eb"}, {"gateway", "via gateway", "#93c5fd"},
}

// The measures of the picture of a study, in pixels.
const (
	studyWidth  = 760
	studyTop    = 62
	studyLabels = 180
	studyValues = 150
	studyBar    = 20
	studyGroup  = 2*studyBar + 22
)

// readStudy reads the results of a folder that internal/interop/study/run.sh has written, by name without .json.
func readStudy(folder string) (map[string]*measured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	study := make(map[string]*measured)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m := new(measured)
		if err := json.Unmarshal(text, m); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		study[strings.TrimSuffix(filepath.Base(file), ".json")] = m
	}
	return study, nil
}

// drawStudy writes the picture of a study: the rate that each server holds, directly and through the gateway, and what
// the planned agents ask for.
func drawStudy(w io.Writer, study map[string]*measured) error {
	most, of := 0.0, (*measured)(nil)
	for _, s := range studied {
		for _, way := range ways {
			if m := study[s.file+"-"+way.file]; m != nil && m.Capacity != nil {
				most, of = max(most, m.Capacity.RateRPS), m
			}
		}
	}
	if most == 0 {
		return errors.New("chart: no result of mcp-load capacity in the folder, such as mcp-go-direct.json")
	}
	scale := (studyWidth - studyLabels - studyValues) / most
	var b strings.Builder
	height := studyTop + len(studied)*studyGroup
	for i, mark := range agents(study) {
		x, y := studyLabels+mark.rate*scale, studyTop-18+14*i
		if mark.rate > most {
			continue
		}
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#dc2626" stroke-dasharray="4 3"/>`+
			`<text x="%.1f" y="%d" font-size="11" fill="#dc2626">%s</text>`+"\n", x, x, y-10, height, x+4, y, escape(mark.text))
	}
	for i, s := range studied {
		y := studyTop + i*studyGroup + 6
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="600">%s</text>`+"\n", margin, y+studyBar+4, s.shown)
		for j, way := range ways {
			study[s.file+"-"+way.file].bar(&b, way.shown, way.fill, y+j*(studyBar+2), scale)
		}
	}
	height += footer
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12" fill="#1f2937">
<rect width="%d" height="%d" fill="#ffffff"/>
<text x="%d" y="24" font-size="14" font-weight="600">%s</text>
%s<text x="%d" y="%d" font-size="10" fill="#6b7280">%s</text>
</svg>
`, studyWidth, height, studyWidth, height, margin, escape("Calls a second on one processor with "+of.Capacity.Objectives[0]),
		b.String(), margin, height-10, escape(of.conditions()))
	return err
}

// conditions is the line under the bars.
func (m *measured) conditions() string {
	date, _, _ := strings.Cut(m.Started, "T")
	return fmt.Sprintf("%s sessions open; a tool that takes 20 ms; server and gateway share the processor; loopback; %s, %s",
		number(float64(m.Conditions.Sessions), 0), m.Conditions.Host.Go, date)
}

// bar draws what was found. What was not found has no bar; what may be more says so.
func (m *measured) bar(b *strings.Builder, way, fill string, y int, scale float64) {
	length, text := 0.0, "no valid result"
	if m != nil && m.Capacity != nil && m.Capacity.RateRPS > 0 {
		length, text = m.Capacity.RateRPS*scale, number(m.Capacity.RateRPS, 0)+"/s"
		switch {
		case m.lowerBound():
			text = "at least " + text
		case !m.Capacity.Confirmed:
			text += ", not confirmed"
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text><rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/><text x="%.1f" y="%d">%s</text>`+"\n",
		studyLabels-8, y+14, way, studyLabels, y, length, studyBar, fill, studyLabels+length+6, y+14, text)
}

// wanted is a load that was planned for.
type wanted struct {
	rate float64
	text string
}

// agents gives the calls a second that the planned users make, for each think time.
func agents(study map[string]*measured) []wanted {
	var marks []wanted
	for _, think := range []int{10, 1} {
		m := study[fmt.Sprintf("mcpengine-direct-plan-%d", think)]
		if m == nil || m.Plan == nil {
			continue
		}
		for _, n := range m.Plan.Needs {
			if n.What == "rate" {
				marks = append(marks, wanted{n.Wanted, fmt.Sprintf("%s agents, a call each %d s: %s/s",
					number(float64(m.Plan.Target.Users), 0), think, number(n.Wanted, 0))})
			}
		}
	}
	return marks
}
