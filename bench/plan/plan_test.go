package plan

import (
	"math"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for _, tt := range []struct {
		texts []string
		want  Target
		err   string
	}{
		{[]string{"5000users"}, Target{Users: 5000}, ""},
		{[]string{"5,000 users"}, Target{Users: 5000}, ""},
		{[]string{"5kagents"}, Target{Users: 5000}, ""},
		{[]string{"2000/s"}, Target{RateRPS: 2000}, ""},
		{[]string{"6000/m"}, Target{RateRPS: 100}, ""},
		{[]string{"0.5/s"}, Target{RateRPS: 0.5}, ""},
		{[]string{"10_000sessions", "2000/s"}, Target{Sessions: 10000, RateRPS: 2000}, ""},
		{[]string{"5000"}, Target{}, "write for example"},
		{[]string{"0users"}, Target{}, "must lie between"},
		{[]string{"1.5users"}, Target{}, "whole number"},
		{[]string{"-3/s"}, Target{}, "write for example"},
		{[]string{""}, Target{}, "write for example"},
	} {
		got, err := ParseTarget(tt.texts...)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("ParseTarget(%q) = %+v, %v; want an error with %q", tt.texts, got, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("ParseTarget(%q) = %+v, %v; want %+v", tt.texts, got, err, tt.want)
		}
	}
}

// TestReplicas: k is enough and k−1 is not, for every load and contention.
func TestReplicas(t *testing.T) {
	for _, sigma := range []float64{0, 0.001, 0.02} {
		for _, wanted := range []float64{0.1, 299, 300, 301, 599.9, 600, 3000, 9999} {
			k, ok := replicas(wanted, 300, sigma)
			hold := func(k int) float64 { n := float64(k); return n * 300 / (1 + sigma*(n-1)) }
			if sigma > 0 && wanted >= 300/sigma {
				if ok {
					t.Errorf("replicas(%g, 300, %g) = %d, want none", wanted, sigma, k)
				}
				continue
			}
			if !ok || hold(k) < wanted-1e-6 || k > 1 && hold(k-1) >= wanted {
				t.Errorf("replicas(%g, 300, %g) = %d, %v: they hold %.1f, and one less %.1f", wanted, sigma, k, ok, hold(k), hold(k-1))
			}
		}
	}
}

var measured = Measured{
	RateRPS: 300, ResponseS: 0.02, Sessions: 4000, CPUPerCall: 0.001, BaseBytes: 64 << 20, BytesPerSession: 32 << 10,
	Objectives: []string{"p(99)<100ms"},
}

func TestMake(t *testing.T) {
	for _, tt := range []struct {
		name     string
		target   Target
		measured Measured
		options  Options
		k, run   int
		decided  string
	}{
		{"rate", Target{RateRPS: 2000}, measured, Options{}, 7, 8, "rate"},
		{"exactly full", Target{RateRPS: 2100}, measured, Options{}, 7, 8, "rate"},
		{"utilisation", Target{RateRPS: 2000}, measured, Options{Utilisation: 0.7}, 10, 11, "rate"},
		{"no spare", Target{RateRPS: 2000}, measured, Options{NoSpare: true}, 7, 7, "rate"},
		{"two spare", Target{RateRPS: 2000}, measured, Options{Spare: 2}, 7, 9, "rate"},
		{"contention", Target{RateRPS: 2000}, measured, Options{Contention: 0.02}, 8, 9, "rate"},
		{"sessions", Target{Sessions: 10000}, measured, Options{}, 3, 4, "sessions"},
		{"sessions decide", Target{Sessions: 10000, RateRPS: 100}, measured, Options{}, 3, 4, "sessions"},
		{"users by their calls", Target{Users: 5000}, measured, Options{ThinkS: 9.98}, 2, 3, "rate"},
		{"users as measured", Target{Users: 5000}, Measured{Users: 700, ThinkS: 2}, Options{}, 8, 9, "users"},
		{"users with another think time", Target{Users: 5000}, Measured{Users: 700, RateRPS: 300, ThinkS: 2}, Options{ThinkS: 4}, 5, 6, "rate"},
		{"tiny", Target{RateRPS: 0.1}, measured, Options{}, 1, 2, "rate"},
	} {
		p, err := Make(tt.target, tt.measured, tt.options)
		if err != nil {
			t.Errorf("%s: Make: %v", tt.name, err)
			continue
		}
		if p.Replicas != tt.k || p.WithHeadroom != tt.run || p.DecidedBy != tt.decided {
			t.Errorf("%s: Make = %d replicas, %d with headroom, decided by %s; want %d, %d, %s",
				tt.name, p.Replicas, p.WithHeadroom, p.DecidedBy, tt.k, tt.run, tt.decided)
		}
		if len(p.Assumptions) < 4 || p.Answer == "" {
			t.Errorf("%s: assumptions %q, answer %q; want both", tt.name, p.Assumptions, p.Answer)
		}
	}
}

// TestSizes: memory and CPU of a replica are those of its share, and those of all follow the load.
func TestSizes(t *testing.T) {
	p, err := Make(Target{RateRPS: 1500, Sessions: 10000}, measured, Options{})
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s = %g, want %g", what, got, want)
		}
	}
	near("replicas", float64(p.Replicas), 5)
	near("CPU of a replica", p.PerReplica.CPUCores, 0.3)
	near("CPU of all", p.CPUCores, 1.5)
	near("memory of a replica", p.PerReplica.MemoryBytes, 64<<20+2000*32<<10)
	near("memory of all", p.Memory, 6*64<<20+10000*32<<10)
	near("utilisation", p.PerReplica.Utilisation, 1)
	if want := (Resources{CPURequestMillis: 300, CPULimitMillis: 600, MemoryRequestMiB: 127, MemoryLimitMiB: 190}); p.Resources != want {
		t.Errorf("resources = %+v, want %+v", p.Resources, want)
	}
	var yaml, text strings.Builder
	if err := p.WriteKubernetes(&yaml, "mcp"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n  replicas: 6\n", "- name: \"mcp\"\n", "requests:\n              cpu: 300m\n              memory: 127Mi\n", "limits:\n              cpu: 600m\n              memory: 190Mi\n", "# - a replica runs on a machine"} {
		if !strings.Contains(yaml.String(), want) {
			t.Errorf("the patch lacks %q:\n%s", want, yaml.String())
		}
	}
	if err := p.WriteText(&text, "", ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 without headroom, 6 with (N+1)", "cpu 300m to 600m", "assumed"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	for _, l := range strings.Split(text.String(), "\n") {
		if len([]rune(l)) > 80 {
			t.Errorf("a line has more than 80 columns: %q", l)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name     string
		target   Target
		measured Measured
		options  Options
		want     string
	}{
		{"no target", Target{}, measured, Options{}, "give a target"},
		{"nothing measured", Target{RateRPS: 1}, Measured{}, Options{}, "measure it with mcp-load capacity"},
		{"no session limit", Target{Sessions: 1}, Measured{RateRPS: 1}, Options{}, "capacity --find sessions"},
		{"contention", Target{RateRPS: 1e5}, measured, Options{Contention: 0.1}, "no number of replicas holds 100,000/s"},
		{"utilisation", Target{RateRPS: 1}, measured, Options{Utilisation: 1.5}, "between 0 and 1"},
		{"negative", Target{RateRPS: 1}, measured, Options{ThinkS: -1}, "cannot be negative"},
	} {
		if p, err := Make(tt.target, tt.measured, tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Make = %+v, %v; want an error with %q", tt.name, p, err, tt.want)
		}
	}
	p, err := Make(Target{Users: 100}, Measured{RateRPS: 10}, Options{})
	if err != nil || len(p.Unknown) != 4 || p.Resources != (Resources{}) {
		t.Errorf("only the rate is known: Make = %+v, %v; want a plan that lists four unknowns", p, err)
	}
}
