package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"reflect"
	"runtime"
	"strings"
	"time"
	"unicode"
)

// startAdmin serves what operators and their tools ask for on an address of its
// own: /healthz, whether the process is alive; /readyz, whether it takes new
// work, which it stops to at the begin of draining; /metrics, counters in the
// text format of Prometheus; /debug/pprof/. It is not for the public. It ends
// after the draining.
func (s *server) startAdmin(addr string) (stop func(), err error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
	}
	s.log.Info("admin", "address", listener.Addr().String())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	go func() { _ = web.Serve(listener) }()
	return func() {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if web.Shutdown(closing) != nil {
			_ = web.Close()
		}
	}, nil
}

// readyz tells whether new work is taken.
func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.engine.Accepting() != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "draining", http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ready")
}

// metrics gives the counters.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	stats, web := s.engine.Stats(), s.handler.Stats()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var b strings.Builder
	gauge := func(name string, value int64) { fmt.Fprintf(&b, "# TYPE mcp_%s gauge\nmcp_%s %d\n", name, name, value) }
	gauge("sessions", int64(stats.Sessions))
	gauge("requests_in_flight", int64(stats.ActiveRequests))
	gauge("subscriptions", int64(stats.Subscriptions))
	gauge("streams", int64(web.Streams))
	gauge("goroutines", int64(runtime.NumGoroutine()))
	gauge("heap_bytes", int64(m.HeapAlloc))
	fmt.Fprintf(&b, "# TYPE mcp_body_bytes_total counter\nmcp_body_bytes_total %d\n", web.BodyBytesRead)
	appendCounters(&b, "mcp_events_total", stats.Refusals)
	appendCounters(&b, "mcp_http_refusals_total", web.Refusals)
	if s.stored != nil {
		fmt.Fprintf(&b, "# TYPE mcp_replay_lost_total counter\nmcp_replay_lost_total %d\n", s.stored.Lost())
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
}

// appendCounters writes each field of a struct as a counter whose label tells its name,
// so that a counter which is added is served.
func appendCounters(b *strings.Builder, name string, counts any) {
	fmt.Fprintf(b, "# TYPE %s counter\n", name)
	fields := reflect.ValueOf(counts)
	for i := range fields.NumField() {
		fmt.Fprintf(b, "%s{kind=%q} %d\n", name, snake(fields.Type().Field(i).Name), fields.Field(i).Int())
	}
}

// snake turns the name of a field into that of a label, as DuplicateIDs into
// duplicate_ids.
func snake(name string) string {
	var b strings.Builder
	low := false // the letter before was a small one
	for _, r := range name {
		if unicode.IsUpper(r) && low {
			b.WriteByte('_')
		}
		low = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
