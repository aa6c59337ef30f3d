package bench

import "fmt"

// stagesText lists the first stages.
func (c *Conditions) stagesText() string {
	const most = 5
	b := "from " + rateText(c.StartRPS) + "/s"
	for i, s := range c.Stages {
		if i == most {
			return b + fmt.Sprintf(" and %d more stages", len(c.Stages)-most)
		}
		b += fmt.Sprintf(" to %s/s in %s", rateText(s.RateRPS), secondsText(s.DurationS))
	}
	return b
}

// begun counts the starts of the schedule: of flows where there are some, else of calls.
func (r *Result) begun() int64 {
	if len(r.Flows) == 0 {
		return r.Requests.Total
	}
	var n int64
	for _, f := range r.Flows {
		n += f.Begun
	}
	return n
}

// starts writes a rate of starts, and callRate one of calls. Only where these differ do they say so.
func (r *Result) starts(rate float64) string {
	if len(r.Flows) > 0 {
		return rateText(rate) + " flows/s"
	}
	return rateText(rate) + "/s"
}

func (r *Result) callRate(rate float64) string {
	if len(r.Flows) > 0 {
		return rateText(rate) + " calls/s"
	}
	return rateText(rate) + "/s"
}

// flows writes two lines for each flow of a scenario, the second only where one has failed.
func (s *summary) flows(r *Result) {
	const most = 20
	for i := range r.Flows {
		f := &r.Flows[i]
		label, took := "", ""
		if i == most {
			s.line("", "and %d more, in the JSON", len(r.Flows)-most)
			return
		}
		if i == 0 {
			label = "flows"
		}
		if f.Duration != nil {
			took = fmt.Sprintf("; took p50 %s, p99 %s",
				microsText(float64(f.Duration.P50US)), microsText(float64(f.Duration.P99US)))
		}
		s.line(label, "%s: %s begun, %s completed, %s failed, %s unfinished%s",
			clip([]byte(f.Flow)), thousands(f.Begun), thousands(f.Completed), thousands(f.Failed), thousands(f.Unfinished), took)
		if f.FirstWhy != "" {
			s.line("", "first failure: %s", f.FirstWhy)
		}
	}
}
