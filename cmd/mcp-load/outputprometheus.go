package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const liveStopTime = 2 * time.Second // for scrapes that are under way when a run ends

// latencyBounds are the upper ends of the buckets in seconds: 100 µs to 60 s.
var latencyBounds = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
}

var (
	descRequests = prometheus.NewDesc("mcp_load_requests_total", "Measured calls that have ended, by outcome.", []string{"outcome"}, nil)
	descBegun    = prometheus.NewDesc("mcp_load_requests_begun_total", "Measured calls that were begun.", nil, nil)
	descDropped  = prometheus.NewDesc("mcp_load_requests_dropped_total", "Calls that were due and never begun.", nil, nil)
	descResponse = prometheus.NewDesc("mcp_load_response_time_seconds", "Time of successes from the intended start.", []string{"method", "tool"}, nil)
	descService  = prometheus.NewDesc("mcp_load_service_time_seconds", "Time of successes from the sending.", []string{"method", "tool"}, nil)
	descLag      = prometheus.NewDesc("mcp_load_schedule_lag_seconds", "How late the generator itself began calls (open loop).", nil, nil)
	descSessions = prometheus.NewDesc("mcp_load_sessions", "Sessions that are alive.", nil, nil)
	descInFlight = prometheus.NewDesc("mcp_load_requests_in_flight", "Calls in flight.", nil, nil)
)

// histogram is the count, the sum and the buckets of one distribution.
type histogram struct {
	count   uint64
	sum     float64
	buckets map[float64]uint64 // cumulative, by upper end
}

// add puts times in microseconds into the histogram.
func (h *histogram) add(times []bench.Bucket) {
	if h.buckets == nil {
		h.buckets = make(map[float64]uint64, len(latencyBounds))
		for _, bound := range latencyBounds {
			h.buckets[bound] = 0
		}
	}
	for _, t := range times {
		seconds, n := float64(t.ValueUS)/1e6, uint64(t.Count)
		h.count += n
		h.sum += seconds * float64(t.Count)
		for i := len(latencyBounds) - 1; i >= 0 && seconds <= latencyBounds[i]; i-- {
			h.buckets[latencyBounds[i]] += n
		}
	}
}

// metric gives the histogram as it is now.
func (h *histogram) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.buckets))
	for bound, n := range h.buckets {
		buckets[bound] = n
	}
	return prometheus.MustNewConstHistogram(desc, h.count, h.sum, buckets, labels...)
}

// toolTimes is the two distributions of a tool.
type toolTimes struct{ response, service histogram }

// exporter adds up the slots of a run for Prometheus. It costs the run nothing but the sums: the page is made when
// somebody asks for it.
type exporter struct {
	mu       sync.Mutex
	outcomes map[string]int64         // guarded by mu
	tools    map[[2]string]*toolTimes // guarded by mu; by method and tool
	lag      histogram                // guarded by mu
	last     bench.Slot               // guarded by mu
}

func newExporter() *exporter {
	e := &exporter{outcomes: map[string]int64{"ok": 0}, tools: map[[2]string]*toolTimes{}}
	e.lag.add(nil)
	return e
}

// slot adds what a slot has found.
func (e *exporter) slot(s bench.Slot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for outcome, n := range s.Outcomes {
		e.outcomes[outcome] += n
	}
	for _, l := range s.Latency {
		key := [2]string{l.Method, l.Tool}
		if e.tools[key] == nil {
			e.tools[key] = &toolTimes{}
		}
		e.tools[key].response.add(l.Response)
		e.tools[key].service.add(l.Service)
	}
	e.lag.add(s.Lag)
	e.last = s
}

// Describe lists what Collect gives.
func (e *exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRequests, descBegun, descDropped, descResponse, descService, descLag, descSessions, descInFlight,
	} {
		ch <- d
	}
}

// Collect gives the sums so far.
func (e *exporter) Collect(ch chan<- prometheus.Metric) {
	for _, m := range e.metrics() {
		ch <- m
	}
}

func (e *exporter) metrics() []prometheus.Metric {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := []prometheus.Metric{
		prometheus.MustNewConstMetric(descBegun, prometheus.CounterValue, float64(e.last.Begun)),
		prometheus.MustNewConstMetric(descDropped, prometheus.CounterValue, float64(e.last.Dropped)),
		prometheus.MustNewConstMetric(descSessions, prometheus.GaugeValue, float64(e.last.Sessions)),
		prometheus.MustNewConstMetric(descInFlight, prometheus.GaugeValue, float64(e.last.InFlight)),
		e.lag.metric(descLag),
	}
	for outcome, n := range e.outcomes {
		out = append(out, prometheus.MustNewConstMetric(descRequests, prometheus.CounterValue, float64(n), outcome))
	}
	for key, t := range e.tools {
		tool := strings.ToValidUTF8(key[1], "\ufffd") // the server has named it
		out = append(out, t.response.metric(descResponse, key[0], tool), t.service.metric(descService, key[0], tool))
	}
	return out
}

// servePrometheus offers /metrics on addr; an address without a host is loopback only.
func servePrometheus(addr string) (*liveOutput, error) {
	if strings.HasPrefix(addr, ":") {
		addr = "127.0.0.1" + addr
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	e := newExporter()
	registry := prometheus.NewRegistry()
	registry.MustRegister(e)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // it ends when stop is called
	}()
	return &liveOutput{
		where: "http://" + l.Addr().String() + "/metrics",
		slot:  e.slot,
		stop: func(ctx context.Context) error {
			err := srv.Shutdown(ctx)
			<-done
			return err
		},
	}, nil
}
