package bench

import (
	"math"
	"math/rand/v2"
	"testing"
)

// noise makes n values around 0: white, or correlated from one to the next, plus a slow wave.
func noise(rng *rand.Rand, n int, memory, wave float64) []float64 {
	out := make([]float64, n)
	phase, last := rng.Float64()*2*math.Pi, rng.NormFloat64()/math.Sqrt(1-memory*memory)
	for i := range out {
		last = memory*last + rng.NormFloat64()
		out[i] = last + wave*math.Sin(2*math.Pi*float64(i)/float64(n)+phase)
	}
	return out
}

// TestIntervalsCover: 95 % intervals of mean, median and slope cover the truth in at least 90 of 100 series, also where
// the noise is correlated over tens of samples. Without correlation they are not much wider than they must be.
func TestIntervalsCover(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic in virtual time, and much of it")
	}
	const trials = 400
	for _, c := range []struct {
		name   string
		n      int
		memory float64
	}{{"independent", 300, 0}, {"correlated", 1000, 0.9}, {"strongly correlated", 3000, 0.97}} {
		rng := rand.New(rand.NewPCG(7, uint64(c.n)))
		var mean, median int
		var width float64
		for range trials {
			x := noise(rng, c.n, c.memory, 0)
			m, q := meanOf(x), medianOf(x)
			if m.low <= 0 && 0 <= m.high {
				mean++
			}
			if q.low <= 0 && 0 <= q.high {
				median++
			}
			width += (m.high - m.low) / trials
		}
		if mean < trials*90/100 || median < trials*90/100 {
			t.Errorf("%s: mean covered %d, median %d of %d, want at least 90 %%", c.name, mean, median, trials)
		}
		if ideal := 2 * 1.96 / (1 - c.memory) / math.Sqrt(float64(c.n)); width > 1.4*ideal {
			t.Errorf("%s: mean width %.4f, want at most 1.4 times %.4f", c.name, width, ideal)
		}
	}
}

// TestSlopeCovers: the interval of a slope covers the truth in at least 90 of 100 sets of points, also where what is left
// over is correlated.
func TestSlopeCovers(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic in virtual time, and much of it")
	}
	const trials = 400
	for _, c := range []struct {
		name   string
		n      int
		memory float64
	}{{"independent", 20, 0}, {"correlated", 20, 0.5}, {"few points", 8, 0}} {
		rng := rand.New(rand.NewPCG(8, uint64(c.n)))
		covered := 0
		for range trials {
			x, y := make([]float64, c.n), noise(rng, c.n, c.memory, 0)
			for i := range x {
				x[i] = float64(25 * i)
				y[i] += 40 + 3*x[i]
			}
			base, s := fitLine(x, y)
			if s.low <= 3 && 3 <= s.high {
				covered++
			}
			if math.Abs(base-40) > 20 {
				t.Fatalf("%s: base = %.1f, want about 40", c.name, base)
			}
		}
		if covered < trials*90/100 {
			t.Errorf("%s: covered %d of %d, want at least 90 %%", c.name, covered, trials)
		}
	}
}

// TestDriftWidens: what drifts during the series is in the interval.
func TestDriftWidens(t *testing.T) {
	if raceDetector {
		t.Skip("nothing but arithmetic in virtual time, and much of it")
	}
	rng := rand.New(rand.NewPCG(9, 9))
	still, drifting := meanOf(noise(rng, 1000, 0, 0)), meanOf(noise(rng, 1000, 0, 3))
	if a, b := still.high-still.low, drifting.high-drifting.low; b < 3*a {
		t.Errorf("width = %.3f with drift and %.3f without, want at least three times as wide", b, a)
	}
}

func TestIntervalsOfLittle(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{nil, 0}, {[]float64{4}, 4}, {[]float64{1, 2, 6}, 2}} {
		if got := medianOf(c.x); got.value != c.want || got.known {
			t.Errorf("medianOf(%v) = %+v, want %v without an interval", c.x, got, c.want)
		}
	}
	if _, s := fitLine([]float64{1, 1, 1, 1, 1, 1}, []float64{1, 2, 3, 4, 5, 6}); s.known {
		t.Errorf("fitLine over one x = %+v, want no interval", s)
	}
}
