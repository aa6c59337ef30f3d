package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// thousands writes an integer with commas.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// rateText writes calls a second with one digit after the point where that says something.
func rateText(r float64) string {
	if r >= 1000 || r == math.Trunc(r) {
		return thousands(int64(math.Round(r)))
	}
	return strconv.FormatFloat(r, 'f', 1, 64)
}

// microsText writes microseconds in the unit that suits their size, with three significant digits.
func microsText(us float64) string {
	switch {
	case us <= 0:
		return "0"
	case us < 999.5:
		return significant(us) + " µs"
	case us < 999.5e3:
		return significant(us/1e3) + " ms"
	}
	return significant(us/1e6) + " s"
}

func durationText(d time.Duration) string { return microsText(float64(d) / float64(time.Microsecond)) }

// significant writes f, which is at least 0.0005, with three significant digits.
func significant(f float64) string {
	switch {
	case f >= 99.95:
		return thousands(int64(math.Round(f)))
	case f >= 9.995:
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// bytesText writes a size in binary units.
func bytesText(n uint64) string {
	f := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if f < 1024 {
			return significantBytes(f) + " " + unit
		}
		f /= 1024
	}
	return significantBytes(f) + " TiB"
}

func significantBytes(f float64) string {
	if f >= 100 || f == math.Trunc(f) {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 1, 64)
}

// plural writes a count with its noun.
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// commandLine writes argv so that it can be read, with quotes where a shell would want them.
func commandLine(argv []string) string {
	out := make([]string, len(argv))
	for i, a := range argv {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$") {
			a = fmt.Sprintf("%q", a)
		}
		out[i] = a
	}
	return strings.Join(out, " ")
}
