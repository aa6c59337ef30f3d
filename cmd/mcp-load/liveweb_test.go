package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// announced is a stderr that tells the address of the live page when it is written.
type announced struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
	url  chan string
}

var liveLine = regexp.MustCompile(`(?m)^live (http://127\.0\.0\.1:[0-9]+/)$`)

func (a *announced) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(p)
	if m := liveLine.FindSubmatch(p); m != nil {
		a.url <- string(m[1])
	}
	return len(p), nil
}

// TestLiveWeb looks at a run of two seconds as a browser does: the page, the run while it goes on, and its result; then
// nobody listens any more.
func TestLiveWeb(t *testing.T) {
	target := (&countingServer{}).start(t)
	stderr := &announced{url: make(chan string, 1)}
	ended := make(chan int, 1)
	go func() {
		ended <- execute(context.Background(), []string{"mcp-load", "run", target, "-r", "50", "-d", "2s", "--live", "web"}, io.Discard, stderr)
	}()
	var url string
	select {
	case url = <-stderr.url:
	case code := <-ended:
		t.Fatalf("the run ended with %d before it told where its page is: %s", code, stderr.text.String())
	}
	page, code := get(t, url, "")
	if code != http.StatusOK || !strings.Contains(page, "EventSource") || !strings.Contains(page, "<title>mcp-load: "+target) {
		t.Errorf("GET / = %d, %.200q", code, page)
	}
	if text, code := get(t, url, "evil.example:80"); code != http.StatusForbidden {
		t.Errorf("GET / with the name of another host = %d, %q; want 403", code, text)
	}
	events := readEvents(t, url+"events")
	running, last := 0, events[len(events)-1]
	for _, e := range events {
		if e.name == "page" && strings.Contains(e.html, "RUNNING") {
			running++
		}
	}
	if running == 0 {
		t.Errorf("no event shows the run while it goes on: %d events", len(events))
	}
	if last.name != "end" || !strings.Contains(last.html, "VALID") || !strings.Contains(last.html, "of 100 calls") {
		t.Errorf("the last event is %q and does not hold the result: %.300q", last.name, last.html)
	}
	<-ended
	if _, err := http.Get(url); err == nil {
		t.Error("the page outlives the run")
	}
}

// TestLiveWebWithoutResult ends the page of a run that could not be made, and says so.
func TestLiveWebWithoutResult(t *testing.T) {
	stderr := &announced{url: make(chan string, 1)}
	code := execute(context.Background(), []string{"mcp-load", "run", "http://127.0.0.1:1/mcp", "--live", "web"}, io.Discard, stderr)
	if code != exitRuntime {
		t.Errorf("a run without a server = %d, want 1: %s", code, stderr.text.String())
	}
	if _, err := http.Get(<-stderr.url); err == nil {
		t.Error("the page outlives the run")
	}
	if code, _, text := call("run", "http://127.0.0.1:1/mcp", "--live", "web=127.0.0.1:99999"); code != exitUsage || !strings.Contains(text, "cannot listen on") {
		t.Errorf("a port that does not exist = %d, %q; want 2", code, text)
	}
}

func get(t *testing.T, url, host string) (string, int) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), resp.StatusCode
}

type pageEvent struct{ name, html string }

// readEvents reads server-sent events until the other side ends them.
func readEvents(t *testing.T, url string) []pageEvent {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	events := []pageEvent{{}}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		last := &events[len(events)-1]
		switch name {
		case "event":
			events = append(events, pageEvent{name: value})
		case "data":
			if err := json.Unmarshal([]byte(value), &last.html); err != nil {
				t.Fatalf("event %q: %v", last.name, err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}
