package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// loadgenStep is a load test. The generator's calls carry no progress token: a
// reply that is not there at once is an event stream all the same, whose
// response ends the measurement.
type loadgenStep struct {
	URL         string          `json:"url"`
	Mode        string          `json:"mode"` // "open" or "closed"
	Rate        float64         `json:"rate"`
	Seconds     float64         `json:"seconds"`
	Requests    int64           `json:"requests"`
	Concurrency int             `json:"concurrency"`
	Sessions    int             `json:"sessions"`
	MaxInFlight int             `json:"max_in_flight"`
	Overflow    bench.Overflow  `json:"overflow"`
	Tool        string          `json:"tool"`
	Arguments   json.RawMessage `json:"arguments"`
	TimeoutMS   int             `json:"timeout_ms"`
	Target      string          `json:"target"` // "stalling", or empty for the URL
	Stall       struct {
		FromMS int `json:"from_ms"`
		ToMS   int `json:"to_ms"`
	} `json:"stall"`
}

// config says the step in the generator's words.
func (l *loadgenStep) config() bench.Config {
	c := bench.Config{
		URL: l.URL, Requests: l.Requests, Duration: time.Duration(l.Seconds * float64(time.Second)),
		Sessions: l.Sessions, Args: l.Arguments, Timeout: milliseconds(l.TimeoutMS), InProcess: true, Version: version,
	}
	if l.Tool != "" {
		c.Tools = []bench.ToolChoice{{Name: l.Tool, Weight: 1}}
	}
	if l.Mode == "open" {
		c.Rate, c.MaxInFlight, c.Overflow = l.Rate, l.MaxInFlight, l.Overflow
	} else {
		c.Concurrency = l.Concurrency
	}
	return c
}

// loadgen runs the load generator and gives its numbers.
func (h *debugHooks) loadgen(ctx context.Context, step loadgenStep) (any, error) {
	if step.Target == "stalling" {
		url, stop, err := startStalling(milliseconds(step.Stall.FromMS), milliseconds(step.Stall.ToMS))
		if err != nil {
			return nil, err
		}
		defer stop()
		step.URL = url
	}
	duplicates := h.server.counts.watchIDs()
	res, err := bench.Run(ctx, step.config())
	reused := duplicates()
	if err != nil {
		return nil, err
	}
	all := res.Latency[len(res.Latency)-1]
	answer := make(map[string]any)
	if err := describeDist(answer, "", all.Response); err != nil {
		return nil, err
	}
	if err := describeDist(answer, "service_", all.Service); err != nil {
		return nil, err
	}
	answer["scheduled"] = res.Requests.Total + res.Requests.Dropped
	answer["sent"] = res.Requests.Total
	answer["missed"], answer["skipped"] = res.Requests.Dropped, 0
	if step.Overflow == bench.Skip {
		answer["missed"], answer["skipped"] = 0, res.Requests.Dropped
	}
	answer["errors"] = res.Requests.Total - res.Requests.OK
	answer["achieved_rate"] = res.Verdict.CompletedRPS
	answer["flag_saturated"] = !res.Verdict.Valid
	answer["sessions"], answer["deletes"] = res.Sessions.Opened, res.Sessions.Closed
	answer["duplicate_ids"] = reused
	return answer, nil
}

// describeDist puts the numbers of a distribution into an answer, in
// milliseconds.
func describeDist(answer map[string]any, prefix string, d *bench.Dist) error {
	h, err := d.Histogram()
	if err != nil {
		return err
	}
	ms := func(us int64) float64 { return float64(us) / 1000 }
	answer[prefix+"count"] = d.Count
	answer[prefix+"mean_ms"] = d.MeanUS / 1000
	answer[prefix+"min_ms"] = float64(h.Min()) / float64(time.Millisecond)
	answer[prefix+"p50_ms"] = ms(d.P50US)
	answer[prefix+"p90_ms"] = ms(d.P90US)
	answer[prefix+"p95_ms"] = ms(d.P95US)
	answer[prefix+"p99_ms"] = ms(d.P99US)
	if d.P999US != nil {
		answer[prefix+"p999_ms"] = ms(*d.P999US)
	}
	answer[prefix+"max_ms"] = ms(d.MaxUS)
	return nil
}

// samples are equal times.
type samples struct {
	ValueMS float64 `json:"value_ms"`
	Count   int64   `json:"count"`
}

type histogramStep struct {
	samples
	ValuesMS []float64 `json:"values_ms"`
	Workers  []samples `json:"workers"`
}

// histogram records times, those of each worker in a histogram of its own, and
// merges them.
func (h *debugHooks) histogram(_ context.Context, step histogramStep) (any, error) {
	all := step.Workers
	if step.Count > 0 {
		all = append(all, step.samples)
	}
	for _, v := range step.ValuesMS {
		all = append(all, samples{v, 1})
	}
	if len(all) == 0 {
		return nil, errors.New("give workers, values_ms, or value_ms and count")
	}
	sum := bench.NewHistogram()
	for _, s := range all {
		part := bench.NewHistogram()
		part.Record(time.Duration(s.ValueMS*float64(time.Millisecond)), s.Count)
		sum.Merge(part)
	}
	answer := make(map[string]any)
	return answer, describeDist(answer, "", sum.Dist())
}

// startStalling starts a server whose one tool answers at once, but for a stall:
// what arrives in it waits for its end. The first call starts the clock.
func startStalling(from, to time.Duration) (url string, stop func(), err error) {
	e := engine.New(engine.Info{Name: "stalling"}, nil)
	begin := sync.OnceValue(time.Now)
	err = plainTool(e, "work", "Answers at once, unless the server stalls.", readOnly,
		func(ctx context.Context, _ *engine.Call) (string, error) {
			if since := time.Since(begin()); since >= from && since < to {
				return "late", sleep(ctx, to-since)
			}
			return "done", nil
		})
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	web := &http.Server{Handler: transport.NewHTTPHandler(e, nil), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = web.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() {
		_ = e.Shutdown(context.Background()) // the generator is done, so nothing is in flight
		_ = web.Close()
	}, nil
}
