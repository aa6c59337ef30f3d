package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/report"
)

const (
	webEvery   = time.Second     // between two drawings
	webWrite   = 5 * time.Second // for one drawing to reach a browser
	mostViewer = 16
)

// webView shows the report of a run in a browser while the run goes on. The run only takes down what happens; one
// goroutine draws it, once a second, while somebody looks.
type webView struct {
	live   *report.Live
	target string
	stderr io.Writer
	server *http.Server
	final  *bench.Result // set before end, where there is one

	wake    chan struct{} // somebody has come to look
	ending  chan struct{}
	drawing sync.WaitGroup
	serving sync.WaitGroup

	mu      sync.Mutex
	viewers map[chan string]struct{} // guarded by mu; each holds the latest event that was not sent yet
	last    string                   // guarded by mu: the latest event
	over    bool                     // guarded by mu
}

// newWebView listens and says where. The configuration tells the view what happens from then on.
func newWebView(s *liveSetup) (liveView, error) {
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		return nil, usageError("--live web cannot listen on %s: %v", s.addr, err)
	}
	c := s.config
	v := &webView{
		target: targetText(c), stderr: s.stderr, wake: make(chan struct{}, 1), ending: make(chan struct{}), viewers: map[chan string]struct{}{},
	}
	v.live = report.NewLive(bench.Result{
		Version: c.Version, Command: c.Argv, Started: time.Now().UTC(), Conditions: bench.Conditions{Target: v.target},
	})
	c.OnBegin = v.live.Begin
	others := c.OnSlot
	c.OnSlot = func(s bench.Slot) {
		v.live.Slot(s)
		if others != nil {
			others(s)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", v.page)
	mux.HandleFunc("GET /events", v.events)
	v.server = &http.Server{Handler: onlyLoopback(mux), ReadHeaderTimeout: webWrite, IdleTimeout: time.Minute}
	v.serving.Go(func() { _ = v.server.Serve(listener) }) // until end
	v.drawing.Go(v.draw)
	fmt.Fprintf(s.stderr, "live http://%s/\n", listener.Addr())
	return v, nil
}

// webAddr reads the address of --live web=ADDR. The page tells the target and the command line, so it is for this machine
// only.
func webAddr(addr string) (string, error) {
	if addr == "" {
		return "127.0.0.1:0", nil
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", usageError("--live web=%s is not understood: write web=:9000, or web alone for a free port", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if !hereOnly(host) {
		return "", usageError("--live web listens on loopback only, and %s is not: write web=:%s", host, port)
	}
	return net.JoinHostPort(host, port), nil
}

// hereOnly reports whether a host name stands for this machine and no other.
func hereOnly(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// onlyLoopback refuses names of other hosts, which a web page elsewhere could have made to lead here.
func onlyLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if !hereOnly(strings.Trim(host, "[]")) {
			http.Error(w, "this page is for its own machine", http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

func (v *webView) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'")
	_ = report.WriteLive(w, v.target) // the browser has gone
}

// events sends every drawing that the browser is quick enough for, and the last one.
func (v *webView) events(w http.ResponseWriter, r *http.Request) {
	viewer, ok := v.join()
	if !ok {
		http.Error(w, "too many pages look at this run", http.StatusServiceUnavailable)
		return
	}
	defer v.leave(viewer)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	for {
		select {
		case event, more := <-viewer:
			if !more {
				return
			}
			_ = out.SetWriteDeadline(time.Now().Add(webWrite)) // every net/http connection has one
			if _, err := io.WriteString(w, event); err != nil || out.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// join adds a viewer, who gets the latest drawing at once.
func (v *webView) join() (chan string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.viewers) >= mostViewer {
		return nil, false
	}
	viewer := make(chan string, 1)
	if v.last != "" {
		viewer <- v.last
	}
	if v.over {
		close(viewer)
		return viewer, true
	}
	v.viewers[viewer] = struct{}{}
	select {
	case v.wake <- struct{}{}:
	default: // it is awake
	}
	return viewer, true
}

func (v *webView) leave(viewer chan string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.viewers, viewer)
}

// watched reports whether anybody looks.
func (v *webView) watched() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.viewers) > 0
}

// send hands an event to every viewer, in place of one that was not sent yet.
func (v *webView) send(name string, html []byte, over bool) {
	var text *string
	if html != nil {
		s := string(html)
		text = &s
	}
	data, err := json.Marshal(text)
	if err != nil {
		return // a string can always be written
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last, v.over = "event: "+name+"\ndata: "+string(data)+"\n\n", over
	for viewer := range v.viewers {
		select {
		case <-viewer:
		default:
		}
		viewer <- v.last // there is room: only this function fills it
		if over {
			close(viewer)
		}
	}
	if over {
		clear(v.viewers)
	}
}

// draw draws until the run has ended.
func (v *webView) draw() {
	tick := time.NewTicker(webEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-v.wake:
		case <-v.ending:
			return
		}
		if !v.watched() {
			v.live.Gather()
			continue
		}
		html, err := v.live.Draw()
		if err != nil {
			v.warning("the live page cannot be drawn: " + err.Error())
			return
		}
		v.send("page", html, false)
	}
}

func (v *webView) progress(p bench.Progress) { v.live.Progress(p) }

func (v *webView) warning(text string) { printWarning(v.stderr, text) }

func (v *webView) result(res *bench.Result) { v.final = res }

// end shows the result to those who look, and stops to listen.
func (v *webView) end() {
	close(v.ending)
	v.drawing.Wait() // nothing comes after the result
	var html []byte
	if v.final != nil {
		var err error
		if html, err = report.Body(v.final); err != nil {
			v.warning("the result cannot be drawn: " + err.Error())
		}
	}
	v.send("end", html, true)
	ctx, cancel := context.WithTimeout(context.Background(), liveStopTime)
	defer cancel()
	if err := v.server.Shutdown(ctx); err != nil && !errors.Is(err, http.ErrServerClosed) {
		_ = v.server.Close() // a browser did not take its last page in time
	}
	v.serving.Wait()
}
