package tui

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// clip makes text one line of at most width cells. Control characters, which a server may have sent, do not reach the
// terminal.
func clip(s string, width int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
	return ansi.Truncate(s, max(width, 0), "…")
}

// wrap breaks text into at most a number of lines at blanks; what does not fit is cut off.
func wrap(s string, width, most int) []string {
	lines := strings.Split(ansi.Wordwrap(clip(s, width*most), max(width, 1), ""), "\n")
	if len(lines) > most {
		lines[most-1] = clip(strings.Join(lines[most-1:], " "), width)
		lines = lines[:most]
	}
	return lines
}

// count writes an integer with commas.
func count(n int64) string {
	s := strconv.FormatInt(max(n, 0), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// micros writes microseconds with about three digits.
func micros(us int64) string {
	if us <= 0 {
		return "-"
	}
	unit := time.Microsecond
	for n := us; n >= 1000; n /= 10 {
		unit *= 10
	}
	return (time.Duration(us) * time.Microsecond).Round(unit).String()
}
