package bench

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// Revisions are the protocol revisions with sessions that a run can ask for, newest first.
var Revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Protocols is all that a run can be told to speak.
var Protocols = append([]string{Auto, Stateless}, Revisions...)

// Arrivals is the pattern of an open loop's intended starts.
type Arrivals string

// Overflow is what happens to a call that is due while MaxInFlight calls are in flight.
type Overflow string

const (
	// Constant spaces the intended starts evenly.
	Constant Arrivals = "constant"
	// Poisson draws exponential gaps from the seed.
	Poisson Arrivals = "poisson"
	// Wait starts the call as soon as there is room; the wait counts in its response time.
	Wait Overflow = "wait"
	// Skip does not start the call and counts it as dropped.
	Skip Overflow = "skip"
)

// ToolChoice is a tool to call and its share of the calls relative to the other choices.
type ToolChoice struct {
	Name   string
	Weight int // at least 1
}

// Config says what load to offer, and to whom. Exactly one of URL and Command is set. The zero value of everything else
// means the documented default. Run copies it.
type Config struct {
	URL     string   // Streamable HTTP endpoint
	Command []string // argv of a stdio server, spawned once for each session

	Protocol string      // one of Protocols; "" means the newest in Revisions
	Header   wire.Header // added to every HTTP request
	TLS      *tls.Config // of an https endpoint; nil trusts what this machine trusts
	HTTP2    bool        // HTTP/2 and nothing else; slower, because it is not the lean client that speaks it

	Answers     []Answer      // what the server may ask for; anything else gets the error "Method not found"
	AnswerDelay time.Duration // how long an answer takes
	Subscribe   []string      // URIs of resources that every session subscribes to; not in the stateless era

	Rate        float64       // calls a second in the whole run (open loop); with Stages, where the first one begins
	Stages      []Stage       // open loop whose rate changes; they make the Duration
	Arrivals    Arrivals      // default Constant
	MaxInFlight int           // open loop: calls in flight at once; 0 means as many as descriptors allow
	Overflow    Overflow      // default Wait
	Users       int           // closed loop with think time: virtual users, each with a session of its own
	ThinkTime   Think         // of a user, between an answer and the next call
	Concurrency int           // closed loop without: calls in flight; default 10 over HTTP, 1 over stdio
	Sessions    int           // default: Users or Concurrency over HTTP, 1 over stdio
	Duration    time.Duration // measured time; default 10 s, or none where Requests is set
	Requests    int64         // measured calls; 0 means that Duration alone ends the run
	Warmup      time.Duration // offered before the measured time, and left out of the result
	Timeout     time.Duration // of one call, counted from its sending; default 30 s
	Streams     bool          // open the GET stream of every HTTP session
	Seed        uint64        // of everything random; 0 picks one, which the result names

	Tools   []ToolChoice    // default: the first listed tool that declares readOnlyHint
	AnyTool bool            // lifts the condition on the default
	Args    json.RawMessage // arguments of every call, an object; default: made from each tool's schema

	ArgsRows []json.RawMessage // instead of Args: arguments of one call each, in turn, again and again

	Scenario string    // name of the file that Flows come from, for the result
	Flows    []Flow    // instead of Tools and Args: what the schedule starts, and what users do
	Data     []DataSet // rows that Flows take values from

	Thresholds []string // conditions on the result, see Threshold

	ServerPID int  // process whose CPU and memory are recorded; a spawned server is known without it
	InProcess bool // the server runs in this process, so CPU and memory are those of both

	Version string   // of the program, for the result and for clientInfo
	Argv    []string // command line, for the result

	// OnBegin is told the conditions when the sessions are open, before the first call; their DurationS is what was asked for.
	OnBegin func(Conditions)
	// OnProgress is called from one goroutine about once a slot (see Progress). It must not block.
	OnProgress func(Progress)
	// OnSlot is told what each slot of the measured window has added, from the goroutine of OnProgress. The slots add up to
	// the result. It must not block; nil costs nothing.
	OnSlot func(Slot)
	// OnWarning is told, in one line, what the reader of the result should know before it is there.
	OnWarning func(string)

	pause func(time.Duration) // how the pacer sleeps; tests in virtual time replace it
	peer  peer                // what sessions are opened on; tests replace it
	brief bool                // one step of many: the result has no blocks of time, which nobody compares
}

const maxRate = 10e6

// UsageError is a configuration that cannot be run. Its text says what to do.
type UsageError struct{ Text string }

// Error gives the text.
func (e *UsageError) Error() string { return e.Text }

func usage(format string, args ...any) error { return &UsageError{Text: fmt.Sprintf(format, args...)} }

// withDefaults checks c and fills in the defaults.
func (c Config) withDefaults() (Config, error) {
	if err := c.check(); err != nil {
		return c, err
	}
	stdio := len(c.Command) > 0
	setDefault(&c.Arrivals, Constant)
	setDefault(&c.Overflow, Wait)
	setDefault(&c.Timeout, 30*time.Second)
	setDefault(&c.Protocol, Revisions[0])
	c.Streams = c.Streams || c.listens()
	if len(c.Stages) > 0 {
		c.Duration = c.stagesTime()
	}
	if c.Requests == 0 {
		setDefault(&c.Duration, 10*time.Second)
	}
	if c.Seed == 0 {
		c.Seed = uint64(rand.Uint32()) + 1 // small enough for every reader of JSON
	}
	usual := 10
	if stdio {
		usual = 1
	}
	switch {
	case c.open():
		setDefault(&c.Sessions, usual)
	case c.Users > 0:
		c.Sessions = c.Users
	case stdio:
		setDefault(&c.Concurrency, max(usual, c.Sessions))
		setDefault(&c.Sessions, usual)
	default:
		setDefault(&c.Concurrency, usual)
		setDefault(&c.Sessions, c.Concurrency)
	}
	if c.OnProgress == nil {
		c.OnProgress = func(Progress) {}
	}
	if c.OnWarning == nil {
		c.OnWarning = func(string) {}
	}
	if c.pause == nil {
		c.pause = preciseSleep
	}
	return c, nil
}

// open reports whether the run is an open loop.
func (c *Config) open() bool { return c.Rate > 0 || len(c.Stages) > 0 }

// paced reports whether calls are due at moments of their own: in an open loop, and with users who think.
func (c *Config) paced() bool { return c.open() || c.Users > 0 }

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// check refuses what cannot be meant.
func (c *Config) check() error {
	if c.peer == nil && (c.URL == "") == (len(c.Command) == 0) {
		return usage("give one target: a URL, or -- and the command of a stdio server")
	}
	if c.URL != "" {
		if _, err := c.endpoint(); err != nil {
			return usage("%v", err)
		}
	}
	for _, n := range []struct {
		what  string
		value int64
	}{
		{"the number of sessions", int64(c.Sessions)}, {"the concurrency", int64(c.Concurrency)},
		{"the number of requests", c.Requests}, {"the duration", int64(c.Duration)}, {"the warm-up", int64(c.Warmup)},
		{"the timeout", int64(c.Timeout)}, {"the number of users", int64(c.Users)}, {"the think time", int64(c.ThinkTime.Mean)},
		{"the cap on calls in flight", int64(c.MaxInFlight)},
	} {
		if n.value < 0 {
			return usage("%s cannot be negative", n.what)
		}
	}
	if err := c.checkLoop(); err != nil {
		return err
	}
	switch {
	case c.Arrivals != "" && c.Arrivals != Constant && c.Arrivals != Poisson:
		return usage("unknown arrivals %q: choose constant or poisson", c.Arrivals)
	case c.Overflow != "" && c.Overflow != Wait && c.Overflow != Skip:
		return usage("unknown overflow %q: choose wait or skip", c.Overflow)
	}
	for _, tool := range c.Tools {
		if tool.Name == "" || tool.Weight < 1 {
			return usage("a tool is given as NAME or NAME=WEIGHT with a weight of at least 1")
		}
	}
	if len(c.Flows) > 0 && (len(c.Tools) > 0 || c.arguments() != nil) {
		return usage("a scenario says what is called and with which arguments: leave --tool, --args and --args-file out")
	}
	if c.Args != nil && c.ArgsRows != nil {
		return usage("--args and --args-file exclude each other: give one of them")
	}
	if c.Args != nil && (!json.Valid(c.Args) || firstByte(c.Args) != '{') {
		return usage("the arguments are not a JSON object: %s", c.Args)
	}
	for _, expr := range c.Thresholds {
		if _, err := parseThreshold(expr); err != nil {
			return err
		}
	}
	if err := c.checkAnswers(); err != nil {
		return err
	}
	return c.checkProtocol()
}

// checkLoop refuses mixtures of an open loop, a closed loop and users.
func (c *Config) checkLoop() error {
	switch {
	case !(c.Rate >= 0 && c.Rate <= maxRate):
		return usage("the rate must lie between 0 and 10,000,000 calls a second")
	case c.open() && c.Concurrency > 0:
		return usage("a rate (-r, -s) and a concurrency (-c) exclude each other: an open loop starts calls when they are due, cap it with --max-in-flight")
	case c.open() && c.Users > 0:
		return usage("a rate (-r, -s) and users (-u) exclude each other: users call when they have thought, whatever rate that makes")
	case c.Users > 0 && c.Concurrency > 0:
		return usage("users (-u) and a concurrency (-c) exclude each other: each user has one call in flight, or thinks")
	case c.Users > 0 && c.Sessions > 0 && c.Sessions != c.Users:
		return usage("each user (-u) has a session of its own: leave --sessions out")
	case c.ThinkTime.Mean > 0 && c.Users == 0:
		return usage("--think-time needs users (-u)")
	case !c.open() && c.MaxInFlight > 0:
		return usage("--max-in-flight needs a rate (-r, -s); in a closed loop -c is the number in flight")
	}
	return c.checkStages()
}

func (c *Config) checkStages() error {
	if len(c.Stages) == 0 {
		return nil
	}
	for _, s := range c.Stages {
		if s.Duration < 0 || !(s.Rate >= 0 && s.Rate <= maxRate) {
			return usage("a stage takes at least 0s and leads to a rate between 0 and 10,000,000 calls a second")
		}
	}
	switch {
	case len(c.Stages) > maxStages:
		return usage("more than %d stages", maxStages)
	case c.stagesTime() <= 0:
		return usage("the stages take no time at all: write for example -s 30s:100")
	case c.peakRate() == 0:
		return usage("no stage leads to a rate above 0")
	case c.Duration > 0:
		return usage("stages (-s) have a duration of their own: leave -d out")
	case c.Requests > 0:
		return usage("stages (-s) and a number of requests (-n) exclude each other")
	case c.Warmup > 0 && c.Rate == 0:
		return usage("--warmup before stages needs -r, the rate to warm up with and to begin the first stage at")
	}
	return nil
}

func (c *Config) checkProtocol() error {
	if c.Protocol == "" || slices.Contains(Protocols, c.Protocol) {
		return nil
	}
	return usage("protocol %q is not supported: choose one of %s", c.Protocol, strings.Join(Protocols, ", "))
}

// session is the revision that initialize asks for, where it comes to that.
func (c *Config) session() string {
	if c.Protocol == Auto || c.Protocol == Stateless {
		return Revisions[0]
	}
	return c.Protocol
}

func firstByte(b []byte) byte {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}
