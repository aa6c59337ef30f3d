package usl

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// measure makes points of a system whose coefficients are known, with relative noise.
func measure(c Coefficients, noise float64, repeats int, rng *rand.Rand, levels ...float64) []Point {
	var out []Point
	for range repeats {
		for _, n := range levels {
			out = append(out, Point{N: n, X: c.At(n) * (1 + noise*rng.NormFloat64())})
		}
	}
	return out
}

func near(got, want, share float64) bool { return math.Abs(got-want) <= share*want }

// TestRecovers finds the coefficients within 5 % through noise of half a percent.
func TestRecovers(t *testing.T) {
	for _, want := range []Coefficients{{50, 0.05, 0.002}, {1000, 0.02, 0.001}, {30, 0.2, 0.01}} {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 1))
			got, err := Fit(measure(want, 0.005, 2, rng, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64), seed)
			if err != nil {
				t.Fatal(err)
			}
			if !near(got.Lambda, want.Lambda, 0.05) || !near(got.Sigma, want.Sigma, 0.05) || !near(got.Kappa, want.Kappa, 0.05) {
				t.Errorf("seed %d: Fit = %+v, want %+v within 5 %%", seed, got.Coefficients, want)
			}
			peak, _ := want.NMax()
			if n, ok := got.NMax(); !ok || !near(n, peak, 0.05) {
				t.Errorf("seed %d: NMax = %.1f, %v; want %.1f", seed, n, ok, peak)
			}
			if got.Residual > 0.01 {
				t.Errorf("seed %d: Residual = %.3f, want about 0.005", seed, got.Residual)
			}
		}
	}
}

// TestCoverage draws 200 sweeps of eight levels: the 95 % intervals must hold the truth in at least 90 of 100.
func TestCoverage(t *testing.T) {
	want := Coefficients{50, 0.05, 0.002}
	peak, _ := want.NMax()
	const draws = 200
	var covered [4]int
	for seed := range uint64(draws) {
		rng := rand.New(rand.NewPCG(seed, 2))
		m, err := Fit(measure(want, 0.02, 1, rng, 1, 2, 4, 8, 16, 24, 32, 48), seed)
		if err != nil {
			t.Fatal(err)
		}
		for k, c := range []struct {
			ci    Interval
			truth float64
		}{{m.LambdaCI, want.Lambda}, {m.SigmaCI, want.Sigma}, {m.KappaCI, want.Kappa}, {m.NMaxCI, peak}} {
			if c.ci.Low <= c.truth && c.truth <= c.ci.High {
				covered[k]++
			}
		}
	}
	t.Logf("λ, σ, κ, N_max covered in %v of %d", covered, draws)
	for k, n := range covered {
		if n < draws*90/100 || n == draws {
			t.Errorf("%s is covered in %d of %d draws, want at least 90 %% and not all", []string{"λ", "σ", "κ", "N_max"}[k], n, draws)
		}
	}
}

// TestEdges: systems without contention or coherency have coefficients of zero and never negative ones.
func TestEdges(t *testing.T) {
	levels := []float64{1, 2, 4, 8, 16, 32}
	for _, tt := range []struct {
		name string
		c    Coefficients
		peak bool
	}{{"linear", Coefficients{100, 0, 0}, false}, {"Amdahl", Coefficients{100, 0.1, 0}, false}, {"coherency alone", Coefficients{100, 0, 0.01}, true}} {
		for seed := range uint64(5) {
			m, err := Fit(measure(tt.c, 0.01, 1, rand.New(rand.NewPCG(seed, 3)), levels...), 1)
			if err != nil {
				t.Fatal(err)
			}
			if m.Sigma < 0 || m.Kappa < 0 || math.Abs(m.Sigma-tt.c.Sigma) > 0.02 || math.Abs(m.Kappa-tt.c.Kappa) > 0.002 || !near(m.Lambda, 100, 0.05) {
				t.Errorf("%s, seed %d: Fit = %+v, want about %+v", tt.name, seed, m.Coefficients, tt.c)
			}
			for _, ci := range []Interval{m.LambdaCI, m.SigmaCI, m.KappaCI} {
				if ci.Low < 0 || ci.High < ci.Low {
					t.Errorf("%s, seed %d: interval %+v, want one at or above zero", tt.name, seed, ci)
				}
			}
		}
		if _, ok := tt.c.NMax(); ok != tt.peak {
			t.Errorf("%s: NMax known = %v, want %v", tt.name, ok, tt.peak)
		}
	}
	exact, err := Fit(measure(Coefficients{100, 0.1, 0.01}, 0, 1, rand.New(rand.NewPCG(1, 1)), levels...), 1)
	if err != nil || !near(exact.Kappa, 0.01, 1e-6) || exact.KappaCI.High > 0.0101 {
		t.Errorf("without noise: Fit = %+v, %v; want κ = 0.01 and a narrow interval", exact, err)
	}
}

// TestRefuses: what no curve can be fitted to is refused with a reason.
func TestRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		points []Point
		want   string
	}{
		{"none", nil, "at least 6 different levels, and got 0"},
		{"five", []Point{{1, 1}, {2, 2}, {4, 3}, {8, 4}, {16, 5}}, "at least 6 different levels, and got 5"},
		{"repeats", []Point{{1, 1}, {1, 2}, {4, 3}, {8, 4}, {16, 5}, {16, 6}}, "at least 6 different levels, and got 4"},
		{"narrow", []Point{{10, 1}, {11, 2}, {12, 3}, {13, 4}, {14, 5}, {15, 6}}, "further apart"},
		{"nothing came through", []Point{{1, 1}, {2, 2}, {4, 3}, {8, 4}, {16, 5}, {32, 0}}, "above zero, and got 0/s at 32"},
		{"no number", []Point{{1, 1}, {2, 2}, {4, 3}, {8, 4}, {16, 5}, {32, math.NaN()}}, "above zero"},
	} {
		if m, err := Fit(tt.points, 1); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Fit = %+v, %v; want an error with %q", tt.name, m, err, tt.want)
		}
	}
}
