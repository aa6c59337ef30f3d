package bench

import (
	"strconv"
	"strings"
	"time"
)

// ParseRate reads 200, 200/s, 6000/m or 10/h as calls a second; max, which asks for a closed loop, is 0.
func ParseRate(s string) (float64, error) {
	if s == "max" {
		return 0, nil
	}
	r, ok := perSecond(s)
	if !ok || r == 0 {
		return 0, usage("rate %q is not understood: write 200, 200/s, 6000/m or max", s)
	}
	return r, nil
}

// perSecond reads a number, which may be 0, with the time it is for.
func perSecond(s string) (float64, bool) {
	number, unit, _ := strings.Cut(s, "/")
	per, known := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}[unit]
	r, err := strconv.ParseFloat(number, 64)
	return r / per, err == nil && known && r >= 0 && r <= 1e9
}

// ParseStage reads 30s:100, a ramp to 100 calls a second within 30 seconds. The rate may have a unit as in ParseRate.
func ParseStage(s string) (Stage, error) {
	length, rate, _ := strings.Cut(s, ":")
	d, err := time.ParseDuration(length)
	r, ok := perSecond(rate)
	if err != nil || d < 0 || !ok {
		return Stage{}, usage("stage %q is not understood: write 30s:100 for a ramp to 100/s within 30 s", s)
	}
	return Stage{Duration: d, Rate: r}, nil
}
