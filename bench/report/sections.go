package report

import "github.com/mcpengine/mcpengine/bench"

// section is what a command other than run has found. Its text is the answer in a sentence, which the page begins with.
type section struct {
	Title, Text string
	Charts      []chartView
	Tables      []table
	Lists       []list
	Details     string // heading of the run that follows: which one it is
}

// list is a number of sentences under a heading.
type list struct {
	Title string
	Items []string
}

// sections is what commands other than run have found, what matters most first.
func sections(r *bench.Result) []section {
	var out []section
	if r.Plan != nil {
		out = append(out, planSection(r.Plan))
	}
	if r.Capacity != nil {
		out = append(out, capacitySection(r.Capacity))
	}
	if r.SessionCapacity != nil {
		out = append(out, sessionSection(r.SessionCapacity))
	}
	if r.Overhead != nil {
		out = append(out, overheadSection(r.Overhead))
	}
	return out
}

// add appends a chart that has something to show.
func (s *section) add(charts ...*chart) {
	for _, c := range charts {
		if !c.empty() {
			s.Charts = append(s.Charts, c.view())
		}
	}
}
