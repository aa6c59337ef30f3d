package bench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"
)

const (
	overheadRate   = 50 // pairs a second
	overheadTime   = 20 * time.Second
	overheadWarmup = time.Second
	overheadLanes  = 8
	overheadSetups = 100
)

// OverheadConfig says which two ways to the same server to compare. Config names the direct one as its URL, and the calls;
// its Rate is the number of pairs a second, its Concurrency how many pairs may be under way at once, its Sessions how many
// sessions are opened on each way to compare their set-up. Without a URL nothing is compared, and only Upstream and
// Replicas say what is looked at.
type OverheadConfig struct {
	Config
	Via     string        // the endpoint of the gateway
	ViaTool string        // the name of the tool there; default: the same, or the one whose name ends with it
	Wait    time.Duration // how long the gateway may take until it is there

	// Upstream reads the counters of the server behind the gateway; nil where they are not known.
	Upstream func() (UpstreamCounts, error)

	Replicas   int                         // behind Via; 0 means that stickiness is not looked at
	EndReplica func(context.Context) error // ends one of the replicas; nil leaves survival out

	// OnPhase is told what is being done.
	OnPhase func(string)

	lanes   int  // Concurrency
	viaPeer peer // tests replace it
}

// Overhead is what a gateway adds and multiplies. Differences are via minus direct.
type Overhead struct {
	Direct        string              `json:"direct"`
	Via           string              `json:"via"`
	Tool          string              `json:"tool"`
	ViaTool       string              `json:"via_tool"`
	Pairs         int                 `json:"pairs"`    // in which both calls were successes
	Failed        int                 `json:"failed"`   // in which one was not, and which are in no difference
	RateRPS       float64             `json:"rate_rps"` // pairs a second, each with one call on each way
	Phases        []OverheadPhase     `json:"phases"`
	Histogram     []DifferenceBar     `json:"histogram"` // of the differences of the service time
	Amplification *Amplification      `json:"amplification,omitempty"`
	Replicas      *ReplicaObservation `json:"replicas,omitempty"`
	Answer        string              `json:"answer"`
}

// OverheadPhase compares one phase of a session or call: setup (to a session that may be used), ttfb (from the sending to
// the first byte) or service (from the sending to the response).
type OverheadPhase struct {
	Phase  string     `json:"phase"`
	Direct *Dist      `json:"direct"`
	Via    *Dist      `json:"via"`
	Median Difference `json:"median"` // of the differences
	Mean   Difference `json:"mean"`
}

// Difference is a difference in microseconds with its 95 % interval, which is null with fewer than 60 pairs.
type Difference struct {
	US   float64     `json:"us"`
	CI95 *[2]float64 `json:"ci95_us"`
}

// DifferenceBar counts the pairs whose difference lies between two values in microseconds.
type DifferenceBar struct {
	FromUS float64 `json:"from_us"`
	ToUS   float64 `json:"to_us"`
	Count  int     `json:"count"`
}

// MeasureOverhead compares the direct way and the one through the gateway. Each pair is one call on each way, one after
// the other in a random order, so that whatever drifts slowly falls on both and cancels in the difference. Then it
// counts what the gateway does upstream for each session, call and list of its clients, and how many requests lose
// their session among replicas. Ending ctx ends it; the result tells what was found until then.
func MeasureOverhead(ctx context.Context, c OverheadConfig) (*Result, error) {
	m, err := newOverheadRun(ctx, &c)
	if err != nil {
		return nil, err
	}
	defer m.close()
	started := time.Now()
	for _, part := range []struct {
		wanted bool
		name   string
		do     func() error
	}{
		{c.compares(), "comparing the set-up of sessions", m.setups},
		{c.compares(), "comparing calls", m.calls},
		{c.Upstream != nil, "counting what reaches the upstream server", m.amplification},
		{c.Replicas > 0, "looking for lost sessions", m.replicas},
	} {
		if !part.wanted || ctx.Err() != nil {
			continue
		}
		c.OnPhase(part.name)
		if err = part.do(); err != nil {
			break
		}
	}
	res := m.result(started)
	if err != nil && ctx.Err() == nil {
		res.Ended = err.Error()
	}
	return res, nil
}

// compares reports whether there is a direct way to compare with.
func (c *OverheadConfig) compares() bool { return c.URL != "" || c.peer != nil }

// prepare refuses what cannot be meant, and fills in the defaults.
func (c *OverheadConfig) prepare() error {
	switch {
	case c.Via == "" && c.viaPeer == nil:
		return usage("give the gateway: --via URL")
	case len(c.Command) > 0 || c.Users > 0 || len(c.Stages) > 0 || c.Requests > 0:
		return usage("an overhead is measured with pairs of calls over HTTP: leave out commands, users, stages and requests")
	case !c.compares() && c.Upstream == nil && c.Replicas == 0:
		return usage("give what to compare the gateway with (--direct URL), " +
			"or what lies behind it (--replicas N, --upstream-stats URL)")
	case c.Replicas < 0 || c.Replicas == 1:
		return usage("--replicas is how many there are: at least 2")
	case c.EndReplica != nil && c.Replicas == 0:
		return usage("a command that ends a replica needs --replicas, how many there are")
	}
	setDefault(&c.Rate, overheadRate)
	setDefault(&c.Duration, overheadTime)
	setDefault(&c.Warmup, overheadWarmup)
	setDefault(&c.Sessions, overheadSetups)
	setDefault(&c.Concurrency, overheadLanes)
	c.lanes, c.Concurrency = c.Concurrency, 0 // a rate and a concurrency exclude each other in a run
	like := c.Config
	if !c.compares() {
		like.URL = c.Via
	}
	full, err := like.withDefaults()
	if err != nil {
		return err
	}
	if !c.compares() {
		full.URL = ""
	}
	c.Config = full
	if c.OnPhase == nil {
		c.OnPhase = func(string) {}
	}
	return nil
}

// conditions are those of the comparison; the target is the gateway.
func (m *overheadRun) conditions() Conditions {
	c := &m.cfg
	agreed := m.via.set.agreed()
	return Conditions{
		Target: c.Via, Transport: "http", Protocol: agreed.protocol, Loop: "open", RateRPS: c.Rate,
		Arrivals: string(Constant), Concurrency: c.lanes, Sessions: c.lanes, DurationS: c.Duration.Seconds(),
		WarmupS: c.Warmup.Seconds(), Seed: c.Seed, Host: Host{CPUs: runtime.GOMAXPROCS(0), OS: runtime.GOOS,
			Go: runtime.Version()},
		Server: agreed.server, Tools: []string{m.via.tool}, TimeoutS: c.Timeout.Seconds(), Overflow: string(Wait), HTTP2: c.HTTP2,
		InProcess: c.InProcess,
	}
}

// result puts together what was found.
func (m *overheadRun) result(started time.Time) *Result {
	c := &m.cfg
	m.close()
	res := emptyResult(&c.Config, started)
	res.Conditions = m.conditions()
	res.Interrupted = m.ctx.Err() != nil
	o := &m.found
	o.Direct, o.Via, o.RateRPS = c.URL, c.Via, c.Rate
	if m.direct != nil {
		o.Tool = m.direct.tool
	}
	o.ViaTool = m.via.tool
	o.Answer = o.sentence(c.compares())
	res.Overhead = o
	res.Sessions = m.sessions()
	if c.compares() {
		m.judge(res)
	}
	res.Verdict.Valid = len(res.Verdict.Reasons) == 0
	return res
}

// emptyResult is a result of a command that is no run, without a null where readers of JSON expect a list.
func emptyResult(c *Config, started time.Time) *Result {
	r := &Result{
		Schema: Schema, Version: c.Version, Started: started.UTC().Truncate(time.Millisecond), Command: c.Argv,
		Latency: []Latency{}, Thresholds: []Threshold{}, Intervals: []Interval{},
		Verdict: Verdict{Reasons: []string{}},
		Requests: Requests{
			RPCCodes: map[string]int64{}, HTTPCodes: map[string]int64{}, Examples: map[string]string{}, Outcomes: map[string]*Dist{},
		},
	}
	if r.Command == nil {
		r.Command = []string{}
	}
	return r
}

// sentence puts the answer into words.
func (o *Overhead) sentence(compared bool) string {
	var parts []string
	for i := range o.Phases {
		p := &o.Phases[i]
		if p.Phase != phaseService || o.Pairs == 0 {
			continue
		}
		what := "The gateway adds " + p.Median.text() + " to a call"
		if ci := p.Median.CI95; ci != nil && ci[0] <= 0 && 0 <= ci[1] {
			what = "No difference between the two ways is to be seen: " + p.Median.text()
		} else if p.Median.US < 0 {
			what = "A call is faster through the gateway: the difference is " + p.Median.text()
		}
		parts = append(parts, what)
	}
	if compared && len(parts) == 0 {
		parts = append(parts, "No pair of calls was a success on both ways, so nothing can be compared")
	}
	if a := o.Amplification; a != nil {
		parts = append(parts, a.sentence())
	}
	if r := o.Replicas; r != nil {
		parts = append(parts, r.sentence())
	}
	return strings.Join(parts, ". ") + "."
}

// text writes a difference with its interval.
func (d *Difference) text() string {
	if d.CI95 == nil {
		return signedText(d.US) + " (too few pairs for an interval)"
	}
	return fmt.Sprintf("%s (95 %%: %s to %s)", signedText(d.US), signedText(d.CI95[0]), signedText(d.CI95[1]))
}

// signedText writes microseconds that may be negative.
func signedText(us float64) string {
	text := microsText(math.Abs(us))
	if us < 0 && text != "0" {
		return "−" + text
	}
	return text
}
