package plan

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// WriteText writes the plan for people. Bold text is put between bold and plain, which are empty without a terminal.
func (p *Plan) WriteText(w io.Writer, bold, plain string) error {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "  %-14s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("target", "%s", strings.Join(p.Target.parts(), " and "))
	if len(p.Objectives) > 0 {
		line("objectives", "%s", strings.Join(p.Objectives, " and "))
	}
	fmt.Fprintf(&b, "\n  %-14s %14s %14s %10s\n", "", "wanted", "one replica", "replicas")
	for _, n := range p.Needs {
		each, count, mark := "not known", "-", ""
		if n.PerReplica > 0 {
			each, count = amount(n.What, n.PerReplica), strconv.Itoa(n.Replicas)
		}
		if n.What == p.DecidedBy {
			mark = "  decides"
		}
		fmt.Fprintf(&b, "  %-14s %14s %14s %10s%s\n", n.What, amount(n.What, n.Wanted), each, count, mark)
	}
	b.WriteByte('\n')
	line("replicas", "%d without headroom, %d with (N+%d)", p.Replicas, p.WithHeadroom, p.WithHeadroom-p.Replicas)
	s := &p.PerReplica
	wrap(&b, "one replica", p.shareText())
	if s.CPUCores > 0 || s.MemoryBytes > 0 {
		line("it needs", "%s", join(cores(s.CPUCores), bytes(s.MemoryBytes)))
		line("all need", "%s", join(cores(p.CPUCores), bytes(p.Memory)))
		line("kubernetes", "%s", p.Resources.text())
	}
	b.WriteByte('\n')
	for i, a := range p.Assumptions {
		wrap(&b, choose(i == 0, "assumed"), a)
	}
	for i, u := range p.Unknown {
		wrap(&b, choose(i == 0, "not known"), u)
	}
	if v := p.Verification; v != nil {
		b.WriteByte('\n')
		v.write(&b)
	}
	b.WriteByte('\n')
	wrap(&b, "answer", bold+p.Answer+plain)
	_, err := io.WriteString(w, b.String())
	return err
}

// shareText says what a replica has to do.
func (p *Plan) shareText() string {
	s := &p.PerReplica
	var parts []string
	if s.RateRPS > 0 {
		parts = append(parts, amount("rate", s.RateRPS))
	}
	if s.Sessions > 0 {
		parts = append(parts, amount("sessions", float64(s.Sessions)))
	}
	spare := ""
	if p.WithHeadroom > p.Replicas {
		spare = fmt.Sprintf(" (%.0f %% while all %d run)", 100*s.Utilisation*float64(p.Replicas)/float64(p.WithHeadroom), p.WithHeadroom)
	}
	return fmt.Sprintf("%s: %.0f %% of what it holds%s", strings.Join(parts, ", "), 100*s.Utilisation, spare)
}

// write lists the two trials.
func (v *Verification) write(b *strings.Builder) {
	trials := []*Trial{&v.Enough}
	if v.OneLess != nil {
		trials = append(trials, v.OneLess)
	}
	for i, t := range trials {
		word := "FAIL"
		switch {
		case !t.Valid:
			word = "INVALID"
		case t.OK:
			word = "ok"
		}
		fmt.Fprintf(b, "  %-14s %-11s %-7s %s\n", choose(i == 0, "verified"), plural(t.Replicas, "replica"), word, t.Why)
	}
}

// text writes requests and limits.
func (r *Resources) text() string {
	var parts []string
	if r.CPURequestMillis > 0 {
		parts = append(parts, fmt.Sprintf("cpu %dm to %dm", r.CPURequestMillis, r.CPULimitMillis))
	}
	if r.MemoryRequestMiB > 0 {
		parts = append(parts, fmt.Sprintf("memory %dMi to %dMi", r.MemoryRequestMiB, r.MemoryLimitMiB))
	}
	return strings.Join(parts, ", ") + " (request to limit)"
}

// wrap writes a label and a text that may take several lines.
func wrap(b *strings.Builder, label, text string) {
	const width = 63
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			fmt.Fprintf(b, "  %-14s %s\n", label, line)
			label, line = "", " "
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	fmt.Fprintf(b, "  %-14s %s\n", label, line)
}

func choose(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

// amount writes a number of what is wanted.
func amount(what string, n float64) string {
	if what == "rate" {
		if n >= 1000 {
			return thousands(n) + "/s"
		}
		return strconv.FormatFloat(n, 'g', 4, 64) + "/s"
	}
	return thousands(n) + " " + what
}

func thousands(n float64) string {
	s := strconv.FormatInt(int64(math.Round(n)), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(float64(n)) + " " + noun + "s"
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(100 * time.Microsecond).String()
}

func cores(c float64) string {
	if c == 0 {
		return ""
	}
	return fmt.Sprintf("%.2g CPU cores", c)
}

func bytes(n float64) string {
	switch {
	case n == 0:
		return ""
	case n >= 1<<30:
		return fmt.Sprintf("%.3g GiB of memory", n/(1<<30))
	}
	return fmt.Sprintf("%.3g MiB of memory", n/mib)
}

func join(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}
