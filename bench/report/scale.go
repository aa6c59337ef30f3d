package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// scale maps values to the unit interval.
type scale struct {
	low, high float64
	log       bool
	format    func(float64) string
	ticks     []float64
}

// at gives where v lies, 0 being the low end and 1 the high one.
func (s *scale) at(v float64) float64 {
	if s.log {
		return (math.Log(max(v, s.low)) - math.Log(s.low)) / (math.Log(s.high) - math.Log(s.low))
	}
	return (v - s.low) / (s.high - s.low)
}

// linear makes a scale from low to at least high, with about n ticks at round values.
func linear(low, high float64, n int, format func(float64) string) *scale {
	if !(high > low) {
		high = low + 1
	}
	step := niceStep((high - low) / float64(n))
	s := &scale{low: low, high: math.Ceil(high/step-1e-9) * step, format: format}
	for i := math.Ceil(low/step - 1e-9); i*step <= s.high+step/1e6; i++ {
		s.ticks = append(s.ticks, i*step+0) // no negative zero
	}
	return s
}

// niceStep rounds a step up to 1, 2 or 5 times a power of ten.
func niceStep(raw float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if raw <= m*unit*(1+1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// logarithmic makes a scale over the powers of ten that hold low and high.
func logarithmic(low, high float64, format func(float64) string) *scale {
	if !(low > 0) {
		low = 1
	}
	if !(high > low) {
		high = 10 * low
	}
	s := &scale{low: math.Pow(10, math.Floor(math.Log10(low)+1e-9)), log: true, format: format}
	s.high = math.Pow(10, math.Ceil(math.Log10(high)-1e-9))
	for v := s.low; v <= s.high*(1+1e-9); v *= 10 {
		s.ticks = append(s.ticks, v)
	}
	return s
}

// latencyScale fits times in microseconds: from zero, or logarithmic where they differ by much.
func latencyScale(low, high float64) *scale {
	if low > 0 && high > 50*low {
		return logarithmic(low, high, micros)
	}
	return linear(0, high, 5, micros)
}

// micros writes a time in microseconds with three digits.
func micros(us float64) string {
	switch {
	case us <= 0:
		return "0"
	case us < 1000:
		return digits(us) + " µs"
	case us < 1e6:
		return digits(us/1e3) + " ms"
	case us < 120e6:
		return digits(us/1e6) + " s"
	}
	return digits(us/60e6) + " min"
}

// digits writes a number with three significant digits, and those before the point in full.
func digits(v float64) string {
	n := 0
	switch a := math.Abs(v); {
	case a == math.Trunc(a) && a < 1e6 || a >= 100:
	case a >= 10:
		n = 1
	case a >= 1:
		n = 2
	default:
		n = 3
	}
	s := strconv.FormatFloat(v, 'f', n, 64)
	if n > 0 {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// count writes a number with separators, and a small one with three digits.
func count(v float64) string {
	if v != math.Trunc(v) && math.Abs(v) < 1000 {
		return digits(v)
	}
	s := strconv.FormatInt(int64(math.Round(v)), 10)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// perSecond writes a rate.
func perSecond(v float64) string { return count(math.Round(v*100)/100) + "/s" }

// percent writes a share of a hundred as a whole number.
func percent(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) + " %" }

// bytesText writes a size.
func bytesText(b float64) string {
	const unit = 1024
	names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for ; b >= unit && i < len(names)-1; i++ {
		b /= unit
	}
	return digits(b) + " " + names[i]
}

// seconds writes a moment of a run.
func seconds(s float64) string {
	if s < 120 {
		return digits(s) + " s"
	}
	return (time.Duration(s) * time.Second).String()
}

// percentile writes the x value of a spectrum, 1 in so many, as a percentage.
func percentile(oneIn float64) string {
	if oneIn <= 1 {
		return "0 %"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", 100-100/oneIn), "0"), ".") + " %"
}
