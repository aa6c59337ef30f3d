package report

import (
	"fmt"
	"strings"

	"github.com/mcpengine/mcpengine/bench/plan"
)

// planSection shows how many replicas a wanted load needs, and what that takes for granted.
func planSection(p *plan.Plan) section {
	s := section{Title: "Plan", Text: p.Answer, Details: "The measurement that the plan is made from"}
	s.Tables = []table{needsTable(p), sizeTable(p)}
	if v := p.Verification; v != nil {
		s.Tables = append(s.Tables, verificationTable(v))
	}
	s.Lists = []list{{"Assumed", p.Assumptions}, {"Not known", p.Unknown}}
	return s
}

// needsTable sets what is wanted against what a replica holds.
func needsTable(p *plan.Plan) table {
	t := table{Title: "What decides", Head: []string{"", "wanted", "one replica holds", "replicas", ""}, Words: []int{4}}
	if len(p.Objectives) > 0 {
		t.Note = "With " + strings.Join(p.Objectives, " and ") + "."
	}
	for _, n := range p.Needs {
		row := []string{n.What, amount(n.What, n.Wanted), "not known", "", ""}
		if n.PerReplica > 0 {
			row[2], row[3] = amount(n.What, n.PerReplica), count(float64(n.Replicas))
		}
		if n.What == p.DecidedBy {
			row[4] = "decides"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// amount writes a number of what a plan is about.
func amount(what string, n float64) string {
	if what == "rate" {
		return perSecond(n)
	}
	return count(n)
}

// sizeTable says what one replica and all of them take.
func sizeTable(p *plan.Plan) table {
	s, r := &p.PerReplica, &p.Resources
	t := table{Title: "Replicas and their size", Head: []string{"", "each", "all"}}
	add := func(name, each, all string) { t.Rows = append(t.Rows, []string{name, each, all}) }
	add("replicas that carry the load", "", count(float64(p.Replicas)))
	add("replicas to run", "", fmt.Sprintf("%s (N+%d)", count(float64(p.WithHeadroom)), p.WithHeadroom-p.Replicas))
	if s.RateRPS > 0 {
		add("calls", perSecond(s.RateRPS), perSecond(s.RateRPS*float64(p.Replicas)))
	}
	if s.Sessions > 0 {
		add("sessions", count(float64(s.Sessions)), count(float64(max(p.Target.Sessions, p.Target.Users))))
	}
	used, spared := 100*s.Utilisation, 100*s.Utilisation
	if p.WithHeadroom > 0 {
		spared *= float64(p.Replicas) / float64(p.WithHeadroom)
	}
	add("used of what a replica holds", percent(used), percent(spared)+" while all run")
	if s.CPUCores > 0 {
		add("CPU cores", digits(s.CPUCores), digits(p.CPUCores))
	}
	if s.MemoryBytes > 0 {
		add("memory", bytesText(s.MemoryBytes), bytesText(p.Memory))
	}
	if r.CPURequestMillis > 0 {
		add("Kubernetes CPU, request and limit", fmt.Sprintf("%dm, %dm", r.CPURequestMillis, r.CPULimitMillis), "")
	}
	if r.MemoryRequestMiB > 0 {
		add("Kubernetes memory, request and limit", fmt.Sprintf("%dMi, %dMi", r.MemoryRequestMiB, r.MemoryLimitMiB), "")
	}
	return t
}

// verificationTable lists the trials.
func verificationTable(v *plan.Verification) table {
	t := table{Title: "The plan, tried", Note: v.Text, Head: []string{"", "expected", "came out", "answered", "p99", "why"}, Words: []int{1, 2, 5}, Bad: map[int]bool{}}
	add := func(trial *plan.Trial, expected bool) {
		words := map[bool]string{true: "holds", false: "does not hold"}
		got := words[trial.OK]
		if !trial.Valid {
			got = "not valid: the generator was at fault"
		}
		t.Bad[len(t.Rows)] = !trial.Valid || trial.OK != expected
		t.Rows = append(t.Rows, []string{
			count(float64(trial.Replicas)) + " replicas", words[expected], got, perSecond(trial.CompletedRPS), micros(float64(trial.P99US)), trial.Why,
		})
	}
	add(&v.Enough, true)
	if v.OneLess != nil {
		add(v.OneLess, false)
	}
	return t
}
