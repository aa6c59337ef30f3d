package bench

import (
	"time"

	"github.com/mcpengine/mcpengine/bench/plan"
)

// Schema names the layout of Result; scripts rely on its names.
const Schema = "mcp-load/v1"

// Result is everything that a run has found. Times are microseconds where the name ends in _us, seconds where it ends in
// _s; rates are calls a second. Sections that a run has nothing to say about are null or empty.
type Result struct {
	Schema     string      `json:"schema"`
	Version    string      `json:"version"`
	Started    time.Time   `json:"started"`
	Command    []string    `json:"command"`
	Conditions Conditions  `json:"conditions"`
	Verdict    Verdict     `json:"verdict"`
	Sessions   Sessions    `json:"sessions"`
	Requests   Requests    `json:"requests"`
	Latency    []Latency   `json:"latency"`
	Lag        *Dist       `json:"lag,omitempty"`   // how late the generator itself began calls; not in a closed loop
	Flows      []FlowCount `json:"flows,omitempty"` // of a scenario
	Streams    Streams     `json:"streams"`
	Server     *Server     `json:"server"`

	// ServerRequests is null where the server has asked nothing.
	ServerRequests *ServerRequests `json:"server_requests"`

	LittlesLaw *LittlesLaw `json:"littles_law"`
	Thresholds []Threshold `json:"thresholds"`
	Intervals  []Interval  `json:"intervals"`

	// Capacity is what FindCapacity or Sweep has found; the rest of the result is that of the step which shows it.
	Capacity *Capacity `json:"capacity,omitempty"`
	// SessionCapacity is what MeasureSessions has found, and Overhead what MeasureOverhead has.
	SessionCapacity *SessionCapacity `json:"session_capacity,omitempty"`
	Overhead        *Overhead        `json:"overhead,omitempty"`
	// Plan is what plan has made of results; the rest of the result is that of the first of them.
	Plan *plan.Plan `json:"plan,omitempty"`

	// Interrupted is set when the run was ended from outside before its time.
	Interrupted bool `json:"interrupted,omitempty"`
	// Ended says why the run ended early for another reason, such as a target that went away.
	Ended string `json:"ended,omitempty"`

	log histogramLog // what WriteHistogramLog writes
}

// Conditions are what a number must not be quoted without.
type Conditions struct {
	Target      string  `json:"target"`
	Transport   string  `json:"transport"` // "http" or "stdio"
	Protocol    string  `json:"protocol"`  // as negotiated
	Loop        string  `json:"loop"`      // "open" or "closed"
	RateRPS     float64 `json:"rate_rps"`  // 0 in a closed loop; with stages the highest
	Arrivals    string  `json:"arrivals"`  // empty in a closed loop
	Concurrency int     `json:"concurrency"`
	Sessions    int     `json:"sessions"`
	DurationS   float64 `json:"duration_s"` // of the measured window
	WarmupS     float64 `json:"warmup_s"`
	Seed        uint64  `json:"seed"`
	Host        Host    `json:"host"`

	Stages    []StageCondition `json:"stages,omitempty"`
	StartRPS  float64          `json:"start_rps,omitempty"`  // at the begin of the first stage
	Users     int              `json:"users,omitempty"`      // virtual users, in a closed loop with think time
	ThinkTime string           `json:"think_time,omitempty"` // of users: 2s, or exp:2s for exponential times

	Server      string   `json:"server"` // name and version that the server gave
	Tools       []string `json:"tools"`
	Scenario    string   `json:"scenario,omitempty"` // name of its file
	TimeoutS    float64  `json:"timeout_s"`
	MaxInFlight int      `json:"max_in_flight"` // 0 means no cap was asked for
	Overflow    string   `json:"overflow"`
	HTTP2       bool     `json:"http2"`      // by another client than the lean one, whose cost is in every time
	InProcess   bool     `json:"in_process"` // generator and server were one process
}

// StageCondition is a stage of the run: the rate that it leads to in a straight line, and how long that takes.
type StageCondition struct {
	DurationS float64 `json:"duration_s"`
	RateRPS   float64 `json:"rate_rps"`
}

// Host is the machine that the generator ran on.
type Host struct {
	CPUs int    `json:"cpus"` // that this process could use
	OS   string `json:"os"`
	Go   string `json:"go"`
}

// Verdict says whether the result can be trusted, as far as the generator is concerned.
type Verdict struct {
	Valid        bool     `json:"valid"`
	Reasons      []string `json:"reasons"`
	AskedRPS     float64  `json:"asked_rps"`       // 0 in a closed loop
	DeliveredRPS float64  `json:"delivered_rps"`   // calls begun in the measured window
	CompletedRPS float64  `json:"completed_rps"`   // calls answered in the measured window
	LagP99US     int64    `json:"lag_p99_us"`      // how late the generator itself began calls
	GeneratorCPU float64  `json:"generator_cpu"`   // share of the cores that it could use, 0 to 1
	GCPauseMaxUS int64    `json:"gc_pause_max_us"` // longest time for which its memory management stopped it
}

// Sessions counts the sessions of the run. With protocol 2026-07-28, which has none, they are clients of which the
// server knows nothing: opened counts one server/discover each, which the set-up times, and closed those that the run
// has ended, for which nothing is sent.
type Sessions struct {
	Opened int64 `json:"opened"` // handshakes that succeeded, those that replaced a lost session included
	Failed int64 `json:"failed"` // handshakes that did not
	Lost   int64 `json:"lost"`   // sessions that the server no longer knew, or whose process ended
	Closed int64 `json:"closed"` // sessions ended by DELETE, or processes that were closed
	Setup  *Dist `json:"setup"`  // time from the first byte to a session that may be used
}

// Requests counts the measured calls by outcome. Total is their sum; what was never begun is in Dropped only.
type Requests struct {
	Total          int64            `json:"total"`
	OK             int64            `json:"ok"`
	ToolError      int64            `json:"tool_error"`      // a result with isError
	RPCError       int64            `json:"rpc_error"`       // a JSON-RPC error
	HTTPError      int64            `json:"http_error"`      // a status that is not 2xx
	TransportError int64            `json:"transport_error"` // no connection, or one that broke or made no sense
	Timeout        int64            `json:"timeout"`
	Cancelled      int64            `json:"cancelled"`                 // given up by an interrupt, or by a step of a scenario
	CancelledMeant int64            `json:"cancelled_meant,omitempty"` // of these, by a step of a scenario: no errors
	Dropped        int64            `json:"dropped"`                   // due and never begun
	RPCCodes       map[string]int64 `json:"rpc_codes"`
	HTTPCodes      map[string]int64 `json:"http_codes"`

	Warmup   int64             `json:"warmup"`   // calls begun before the measured window, counted nowhere else
	Examples map[string]string `json:"examples"` // the first error of each outcome
	Outcomes map[string]*Dist  `json:"outcomes"` // response time of each outcome that is not a success
}

// Latency is the distribution of the successful calls of one method, and with tools/call of one tool; the row of method
// "*" covers all. A row whose method is a notification holds how long the steps of a scenario waited for it; it has no
// service time and is not part of the row of all.
type Latency struct {
	Method   string `json:"method"`
	Tool     string `json:"tool"`     // empty but for tools/call
	Response *Dist  `json:"response"` // from the intended start
	Service  *Dist  `json:"service"`  // from the sending
	TTFB     *Dist  `json:"ttfb"`     // from the sending to the first byte of the reply

	Blocks []Block `json:"blocks"` // the same calls by time, for comparisons; null in what capacity finds
}

// FlowCount counts the instances of a flow that were due in the measured window. With flows the schedule, and with it
// asked_rps, delivered_rps and dropped, is one of instances; requests, completed_rps and latency are about single calls.
type FlowCount struct {
	Flow       string `json:"flow"`
	Begun      int64  `json:"begun"`
	Completed  int64  `json:"completed"`
	Failed     int64  `json:"failed"`        // a call failed, an expectation was not met, a notification did not come
	Unfinished int64  `json:"unfinished"`    // the run was over before their last step
	FirstWhy   string `json:"first_failure"` // of the first that failed
	Duration   *Dist  `json:"duration"`      // of those completed, from the intended start, think times included
}

// Dist is a distribution of times. P999US is null with fewer than 10,000 samples, and P99CI95US with fewer than 20 time
// blocks of 100.
type Dist struct {
	Count     int64     `json:"count"`
	MeanUS    float64   `json:"mean_us"`
	P50US     int64     `json:"p50_us"`
	P90US     int64     `json:"p90_us"`
	P95US     int64     `json:"p95_us"`
	P99US     int64     `json:"p99_us"`
	P999US    *int64    `json:"p999_us"`
	MaxUS     int64     `json:"max_us"`
	P99CI95US *[2]int64 `json:"p99_ci95_us"`
	HDR       string    `json:"hdr"` // base64 of the HdrHistogram V2 encoding
}

// Streams counts what the server sent of its own accord: on GET streams, on the stream of a reply before its response,
// and from a process between answers. Events that have numbers are held to them: a notifications/message whose data is an
// object with an integer "seq" that begins at 1 on each stream, and a notifications/resources/updated with an integer
// "change" in its _meta. A number that never came is lost, and one that came again is duplicated; of events without a
// number, those are duplicated whose event id the stream has had not long before.
type Streams struct {
	OpenPeak   int64 `json:"open_peak"` // GET streams open at once
	Events     int64 `json:"events"`
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	Gap        *Dist `json:"gap"` // between two events of one stream

	Failed  int64 `json:"failed"`           // GET streams that could not be opened; a server that offers none is none
	Broken  int64 `json:"broken"`           // GET streams that ended before the run did
	Changes int64 `json:"changes"`          // changes of which the subscribers heard
	Spread  *Dist `json:"spread,omitempty"` // of one change, between the first and the last subscriber to hear of it
}

// ServerRequests counts what the server asked of its client.
type ServerRequests struct {
	Sampling    int64 `json:"sampling"`
	Elicitation int64 `json:"elicitation"`
	Roots       int64 `json:"roots"`
	Ping        int64 `json:"ping"`
	Refused     int64 `json:"refused"` // what the client has not declared, or does not know
	Failed      int64 `json:"failed"`  // of all: the answer did not get through
}

// Server is what the processes of the server used in the measured window.
type Server struct {
	PID           int        `json:"pid"`       // of the first
	Processes     int        `json:"processes"` // more than one where each session has its own
	CPUSeconds    float64    `json:"cpu_s"`
	RSSStartBytes uint64     `json:"rss_start_bytes"`
	RSSEndBytes   uint64     `json:"rss_end_bytes"`
	RSSPeakBytes  uint64     `json:"rss_peak_bytes"`
	RSSProcess    RSSProcess `json:"rss_process"`
}

// RSSProcess is the memory of single processes, as it was last seen.
type RSSProcess struct {
	MinBytes    uint64 `json:"min_bytes"`
	MedianBytes uint64 `json:"median_bytes"`
	MaxBytes    uint64 `json:"max_bytes"`
}

// LittlesLaw compares what is in flight with rate times time; with users it is the response-time law, X·(R+Z) and N. They
// differ where the run was not in a steady state, or where the measurement is wrong.
type LittlesLaw struct {
	Predicted float64 `json:"predicted"`
	Observed  float64 `json:"observed"`
	OK        bool    `json:"ok"`
	Warning   string  `json:"warning,omitempty"` // set where it does not hold
}

// Threshold is a condition that the user has set, such as p(99)<200ms, errors<0.1% or
// tools/call{tool=search} p(99.9)<1s. Value is what came out: microseconds, or a share between 0 and 1.
type Threshold struct {
	Expr  string  `json:"expr"`
	Value float64 `json:"value"`
	OK    bool    `json:"ok"`
}

// Interval is one second of the run. Calls are counted in the second in which they ended; rows after the measured window
// hold the calls that were in flight at its end.
type Interval struct {
	TS     float64 `json:"t_s"` // begin, counted from the begin of the measured window
	RPS    float64 `json:"rps"` // successes
	Errors int64   `json:"errors"`
	P50US  int64   `json:"p50_us"`
	P99US  int64   `json:"p99_us"`

	// At the end of the interval.
	Sessions int64 `json:"sessions"`
	InFlight int64 `json:"in_flight"`
	// Of the server's processes, where they are known: cores used on average, and bytes resident at the end.
	ServerCPU float64 `json:"server_cpu,omitempty"`
	ServerRSS uint64  `json:"server_rss_bytes,omitempty"`
}
