package bench

import (
	"fmt"
	"io"
	"strings"
)

// WriteSessionCapacity writes what was found about sessions for people, the conditions first and the answer last.
func (r *Result) WriteSessionCapacity(w io.Writer, color bool) error {
	s, n, c := &summary{color: color}, r.SessionCapacity, &r.Conditions
	fmt.Fprintf(&s.b, "%s\n\n", s.paint("1", strings.TrimSpace("mcp-load "+r.Version)+", Model Context Protocol sessions"))
	s.line("target", "%s  (%s, protocol %s)", clip([]byte(c.Target)), clip([]byte(c.Server)), c.Protocol)
	memory := n.MemoryOf
	if memory == "" {
		memory = "not known: give --server-pid or --server-cgroup, or start the server with -- CMD {addr}"
	}
	s.line("memory", "%s", memory)
	if len(c.Tools) > 0 {
		s.line("steady calls", "tools/call %s, %s/s, timeout %s, seed %d", clip([]byte(c.Tools[0])),
			rateText(c.RateRPS), secondsText(c.TimeoutS), c.Seed)
	}
	s.line("host", "%s, %s, %s; took %s", plural(int64(c.Host.CPUs), "CPU"), c.Host.OS, c.Host.Go,
		secondsText(c.DurationS))
	s.verdictOf(r)
	s.b.WriteByte('\n')
	s.sessionMemory(n)
	s.sessionLimit(n)
	if i := n.Idle; i != nil && i.Found {
		s.line("idle expiry", "%.2f s: known after %.2f s, gone after %.2f s (%s asked once each)", i.ExpiryS,
			i.AliveS, i.DeadS, plural(int64(i.Probes), "session"))
	} else if i != nil {
		s.line("idle expiry", "none: still known after %.2f s (--idle-max looks further)", i.AliveS)
	}
	if n.Released != nil {
		s.released(n.Released)
	}
	if n.Storm != nil {
		s.storm(n.Storm)
	}
	q := &r.Sessions
	s.line("sessions", "%s opened, %s refused or failed, %s expired or lost, %s closed", thousands(q.Opened),
		thousands(q.Failed), thousands(q.Lost), thousands(q.Closed))
	s.b.WriteByte('\n')
	s.line("answer", "%s", s.paint("1", n.Answer))
	_, err := io.WriteString(w, s.b.String())
	return err
}

func (s *summary) sessionMemory(n *SessionCapacity) {
	if n.MemoryOf == "" || len(n.Points) < 2 {
		return
	}
	interval := "no interval, too few steps"
	if ci := n.BytesPerSessionCI95; ci != nil {
		interval = fmt.Sprintf("95 %%: %s to %s", thousands(int64(ci[0])), thousands(int64(ci[1])))
	}
	first, last := n.Points[0], n.Points[len(n.Points)-1]
	s.line("per session", "%s bytes (%s), %s", thousands(int64(n.BytesPerSession)), interval,
		plural(int64(len(n.Points)), "step"))
	s.line("", "%s with %s open, %s with %s", bytesText(first.Bytes), thousands(int64(first.Sessions)),
		bytesText(last.Bytes), thousands(int64(last.Sessions)))
}

func (s *summary) sessionLimit(n *SessionCapacity) {
	if n.MaxSessions == 0 {
		s.line("limit", "none up to %s (--max tries more)", plural(int64(n.Tried), "session"))
		return
	}
	sure := "not confirmed: one was ended, and what fitted then was not exactly one"
	if n.Confirmed {
		sure = "confirmed: one was ended, and exactly one more fitted"
	}
	s.line("limit", "%s; %s", plural(int64(n.MaxSessions), "session"), sure)
	s.line("", "the server said: %s", n.Refusal)
}

func (s *summary) released(r *Released) {
	share := func(v *float64) string {
		if v == nil {
			return "memory not known"
		}
		if *v < 0.005 { // the process may even have grown meanwhile
			return "none of their memory came back"
		}
		return fmt.Sprintf("%.0f %% of their memory came back", 100**v)
	}
	s.line("deleted", "%s: %s", plural(int64(r.Deleted), "session"), share(r.DeletedShare))
	s.line("abandoned", "%s, after %s: %s", plural(int64(r.Abandoned), "session"), secondsText(r.WaitedS),
		share(r.AbandonedShare))
}

func (s *summary) storm(n *ReconnectStorm) {
	s.line("storm", "%s drop and reopen at once, %s: all back within %s; %s of %s attempts failed, %s never came back",
		plural(int64(n.Clients), "client"), plural(int64(n.Waves),
			"wave"), secondsText(n.AllBackS), thousands(n.Failures), thousands(n.Attempts),
		thousands(int64(n.NeverBack)))
	if n.FirstError != "" {
		s.line("", "first failure: %s", n.FirstError)
	}
	if n.Setup != nil && n.Setup.Count > 0 {
		s.line("", "a client is back after p50 %s, p99 %s", microsText(float64(n.Setup.P50US)),
			microsText(float64(n.Setup.P99US)))
	}
	for _, row := range []struct {
		when string
		c    *SteadyCalls
	}{{"before", &n.Before}, {"during", &n.During}, {"after", &n.After}} {
		p99 := "not known, too few calls"
		if row.c.P99US != nil {
			p99 = microsText(float64(*row.c.P99US))
		}
		s.line("", "others %-7s %s, %s failed: p50 %s, p99 %s, max %s", row.when+":", plural(row.c.Calls, "call"),
			thousands(row.c.Failed),
			microsText(float64(row.c.P50US)), p99, microsText(float64(row.c.MaxUS)))
	}
}
