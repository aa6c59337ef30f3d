package report

import (
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/plan"
)

// steps makes a step of each level; the last ones have failed.
func steps(find bench.Find, failed int, levels ...int) []bench.CapacityStep {
	var out []bench.CapacityStep
	for i, n := range levels {
		s := bench.CapacityStep{Phase: "search", RateRPS: float64(n), OK: i < len(levels)-failed, Why: "why " + hostile, HoldS: 5,
			CompletedRPS: float64(n), InFlight: float64(n) / 2, P50US: 1000, P99US: int64(2000 * n)}
		if find != bench.FindRate {
			s.Users, s.Sessions, s.RateRPS = n, n, float64(10*n)
		}
		out = append(out, s)
	}
	return out
}

func pointer[T any](v T) *T { return &v }

// TestSections draws what the commands besides run have found, and sees that each says what it has to.
func TestSections(t *testing.T) {
	curve := &bench.USL{
		Lambda: 50, Sigma: 0.05, Kappa: 0.002, NMax: pointer(21.8), PeakRPS: pointer(360.0), LambdaCI95: [2]float64{49, 51},
		NMaxCI95: [2]*float64{pointer(20.0), nil}, Warnings: []string{"warning " + hostile},
	}
	ladder := []bench.Rung{{Objective: "p(99)<10ms"}, {Objective: "p(99)<25ms", Level: 16, RateRPS: 99}, {Objective: "p(99)<1s", Level: 64, Highest: true}}
	for _, tt := range []struct {
		name        string
		res         *bench.Result
		want, never []string
	}{
		{"search for a rate", &bench.Result{Capacity: &bench.Capacity{
			Find: bench.FindRate, RateRPS: 1200, Objectives: []string{"p(99)<100ms", "errors<1%"}, Answer: "The server holds 1,200/s.",
			Steps: steps(bench.FindRate, 1, 600, 1200, 2400),
		}}, []string{
			`<p class="answer">The server holds 1,200/s.`, "p99 response time by offered rate", "objective 100 ms", ">1,200/s</text>",
			"The search, step after step", "<td>2,400/s</td>", "not met", "did not", "why &lt;/script",
		}, []string{"Scalability", "Objectives ladder", "figures"}},
		{"search for users, the first failed", &bench.Result{Capacity: &bench.Capacity{
			Find: bench.FindUsers, Answer: "No number.", Steps: steps(bench.FindUsers, 1, 7),
		}}, []string{"p99 response time by users", "<td>7</td>"}, []string{"objective ", "met the objectives"}},
		{"search without a step", &bench.Result{Capacity: &bench.Capacity{Find: bench.FindSessions, Answer: "No step."}},
			[]string{"No step."}, []string{"<svg", "<table"}},
		{"sweep", &bench.Result{Capacity: &bench.Capacity{
			Find: bench.FindUsers, Answer: "Peak.", Steps: steps(bench.FindUsers, 2, 1, 2, 4, 8, 16, 32), USL: curve, Ladder: ladder,
		}}, []string{
			"Scalability", "fitted law", "N max 21.8", `class="band"`, "from 20, no upper end", "49 to 51", "not even the lowest", "at least 64",
			"warning &lt;/script",
		}, []string{"The search, step after step"}},
		{"sweep with think time, peak far out", &bench.Result{Capacity: &bench.Capacity{
			Find: bench.FindUsers, ThinkS: 1, Steps: steps(bench.FindUsers, 0, 1, 2, 4), USL: curve, Ladder: ladder,
		}}, []string{"mean number of calls at the server", "fitted law"}, []string{"N max 21.8</text>", `class="band"`}},
		{"sweep without a fit", &bench.Result{Capacity: &bench.Capacity{
			Find: bench.FindUsers, Answer: "No scalability curve.", Steps: steps(bench.FindUsers, 0, 1, 2), Ladder: ladder,
		}}, []string{"No scalability curve.", "Scalability", "Objectives ladder"}, []string{"fitted law", "Universal"}},
		{"plan", &bench.Result{Plan: &plan.Plan{
			Target: plan.Target{RateRPS: 2499.4}, Objectives: []string{"p(99)<1s"}, Replicas: 9, WithHeadroom: 10, DecidedBy: "rate", Answer: "Run 10.",
			Needs:      []plan.Need{{What: "rate", Wanted: 2499.4, PerReplica: 288, Replicas: 9}, {What: "sessions", Wanted: 5000}},
			PerReplica: plan.Share{RateRPS: 277.7, CPUCores: 0.5, MemoryBytes: 3 << 20, Utilisation: 0.96}, CPUCores: 4.5, Memory: 30 << 20,
			Resources:   plan.Resources{CPURequestMillis: 500, CPULimitMillis: 1000, MemoryRequestMiB: 3, MemoryLimitMiB: 5},
			Assumptions: []string{"assumed " + hostile}, Unknown: []string{},
			Verification: &plan.Verification{Text: "Verified.", Enough: plan.Trial{Replicas: 9, OK: true, Valid: true},
				OneLess: &plan.Trial{Replicas: 8, OK: true, Valid: true, Why: "p(99) fine"}},
		}}, []string{
			`<p class="answer">Run 10.`, "2,499/s", "not known", "decides", "10 (N&#43;1)", "96 %", "86 % while all run", "30 MiB", "500m, 1000m", "3Mi, 5Mi",
			"assumed &lt;/script", "Verified.", `<tr class="failed"><td>8 replicas</td><td class="words">does not hold</td><td class="words">holds</td>`,
		}, []string{"<svg", "Not known", "figures\"", "Calls by outcome"}},
	} {
		html := draw(t, tt.res)
		body := html[strings.Index(html, "<main>"):strings.Index(html, "</main>")]
		for _, want := range tt.want {
			if !strings.Contains(body, want) {
				t.Errorf("%s: the page lacks %q", tt.name, want)
			}
		}
		for _, bad := range append(tt.never, "NaN", "Inf", "<img", "<tbody>\n</tbody>", `<div class="charts">`+"\n</div>") {
			if strings.Contains(body, bad) {
				t.Errorf("%s: the page contains %q", tt.name, bad)
			}
		}
	}
}

// TestParts shows the parts of a result that only some runs have.
func TestParts(t *testing.T) {
	h := bench.NewHistogram()
	h.Record(5e6, 10)
	r := sample(3)
	r.Latency = r.Latency[1:] // one tool, and all calls
	r.Conditions.Scenario = "shop.yaml"
	r.Conditions.Loop, r.Conditions.Users, r.Conditions.ThinkTime = "closed", 7, "2s"
	r.Flows = []bench.FlowCount{{Flow: "buy", Begun: 12_000, Completed: 11_000, Failed: 1, FirstWhy: hostile, Duration: h.Dist()}}
	r.ServerRequests = &bench.ServerRequests{Sampling: 1234, Failed: 1}
	r.Streams = bench.Streams{OpenPeak: 3, Events: 9, Lost: 1, Broken: 2, Changes: 4, Gap: h.Dist(), Spread: h.Dist()}
	r.Server.Processes, r.Server.RSSProcess = 4, bench.RSSProcess{MinBytes: 1 << 20, MedianBytes: 2 << 20, MaxBytes: 3 << 20}
	r.Requests.Cancelled, r.Requests.CancelledMeant, r.Requests.Total = 3, 3, 103
	r.Verdict.GCPauseMaxUS = 1500
	html := draw(t, r)
	for _, want := range []string{
		"the flows of shop.yaml", "7 users", "flows begun", `<tr class="failed"><td>buy</td><td>12,000</td>`, "What the server asked for", "1,234",
		`<tr class="failed"><td>answers that did not get through</td>`, `<tr class="failed"><td>events lost</td>`, "GET streams that broke",
		"from the first to the last subscriber of a change: p50, p99, max", "1 MiB, 2 MiB, 3 MiB", "1.5 ms", `<b>10</b><span>errors</span>`,
		`<tr><td>cancelled</td><td>3</td>`,
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(html, "<td>all calls</td>"); n != 0 {
		t.Errorf("%d rows of all calls beside the only tool, want none", n)
	}
}
