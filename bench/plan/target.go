package plan

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Target is the load that is wanted. What is zero is not asked for.
type Target struct {
	RateRPS  float64 `json:"rate_rps"`
	Users    int     `json:"users"`
	Sessions int     `json:"sessions"`
}

var targetForm = regexp.MustCompile(`^([0-9][0-9_,]*(?:\.[0-9]+)?)\s*(k|M)?\s*(/s|/m|/h|users?|sessions?|agents?)$`)

// ParseTarget reads targets such as 2000/s, 6000/m, 5000users and 10000sessions. Several are wanted at the same time.
func ParseTarget(texts ...string) (Target, error) {
	var t Target
	for _, text := range texts {
		m := targetForm.FindStringSubmatch(strings.TrimSpace(text))
		if m == nil {
			return t, fmt.Errorf("target %q is not understood: write for example 5000users, 2000/s or 10000sessions", text)
		}
		n, err := strconv.ParseFloat(strings.NewReplacer("_", "", ",", "").Replace(m[1]), 64)
		if err != nil {
			return t, fmt.Errorf("target %q is not understood: %q is no number", text, m[1])
		}
		n *= map[string]float64{"": 1, "k": 1e3, "M": 1e6}[m[2]]
		if !(n > 0) || n > 1e9 {
			return t, fmt.Errorf("target %q must lie between 0 and 1,000,000,000", text)
		}
		if per, ok := map[string]float64{"/s": 1, "/m": 60, "/h": 3600}[m[3]]; ok {
			t.RateRPS += n / per
			continue
		}
		if n != math.Trunc(n) {
			return t, fmt.Errorf("target %q must be a whole number", text)
		}
		if m[3][0] == 's' {
			t.Sessions += int(n)
		} else {
			t.Users += int(n)
		}
	}
	return t, nil
}

func (t Target) empty() bool { return t.RateRPS == 0 && t.Users == 0 && t.Sessions == 0 }

// parts lists what is asked for in words.
func (t Target) parts() []string {
	var out []string
	if t.Users > 0 {
		out = append(out, amount("users", float64(t.Users)))
	}
	if t.RateRPS > 0 {
		out = append(out, amount("rate", t.RateRPS))
	}
	if t.Sessions > 0 {
		out = append(out, amount("sessions", float64(t.Sessions)))
	}
	return out
}
