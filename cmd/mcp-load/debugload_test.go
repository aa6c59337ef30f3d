package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestHookLoad runs the load generator against the server of the hooks, and
// against one that stalls.
func TestHookLoad(t *testing.T) {
	h := newHooks(t, "")
	web := httptest.NewServer(h.server.handler)
	defer web.Close()
	type numbers struct {
		Count     int     `json:"count"`
		Scheduled int     `json:"scheduled"`
		Sent      int     `json:"sent"`
		Missed    int     `json:"missed"`
		Skipped   int     `json:"skipped"`
		Errors    int     `json:"errors"`
		Duplicate int     `json:"duplicate_ids"`
		Deletes   int     `json:"deletes"`
		Saturated bool    `json:"flag_saturated"`
		MinMS     float64 `json:"min_ms"`
		MaxMS     float64 `json:"max_ms"`
	}
	var closed numbers
	h.want(t, `{"action":"loadgen","mode":"closed","concurrency":4,"sessions":4,"requests":200,"tool":"echo",`+
		`"arguments":{"message":"x"},"url":"`+web.URL+`"}`, &closed)
	if closed.Count != 200 || closed.Errors != 0 || closed.Duplicate != 0 || closed.Deletes != 4 || closed.MinMS <= 0 {
		t.Errorf("closed loop: got %+v, want 200 calls in 4 sessions that are deleted", closed)
	}
	if n := h.server.engine.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left", n)
	}
	var skipping numbers
	h.want(t, `{"action":"loadgen","mode":"open","rate":100,"seconds":0.5,"max_in_flight":1,"overflow":"skip","tool":"sleep",`+
		`"arguments":{"ms":100},"url":"`+web.URL+`"}`, &skipping)
	if skipping.Scheduled != 50 || skipping.Sent+skipping.Skipped != 50 || skipping.Missed != 0 || skipping.Skipped < 40 || !skipping.Saturated {
		t.Errorf("skipping: got %+v, want 50 scheduled and most skipped", skipping)
	}
	var stalled numbers
	h.want(t, `{"action":"loadgen","mode":"open","rate":100,"seconds":0.6,"target":"stalling","stall":{"from_ms":200,"to_ms":400}}`, &stalled)
	if stalled.Count != 60 || stalled.MaxMS < 150 || stalled.MaxMS > 1000 {
		t.Errorf("stalling: got %+v, want 60 calls and one that took about 200 ms", stalled)
	}
}

// TestWatchIDs checks that a reused id is seen, and that the same id in two
// sessions is none.
func TestWatchIDs(t *testing.T) {
	h := newHooks(t, "")
	reused := h.server.counts.watchIDs()
	web := httptest.NewServer(h.server.handler)
	defer web.Close()
	for _, ids := range []string{"aab", "ab"} {
		key := ""
		for i, body := range append([]string{strings.SplitAfter(handshake, "\n")[0]}, strings.Split(ids, "")...) {
			if i > 0 {
				body = `{"jsonrpc":"2.0","id":"` + body + `","method":"tools/call","params":{"name":"fail"}}`
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
			if key != "" {
				r.Header.Set("Mcp-Session-Id", key)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if i == 0 {
				key = res.Header.Get("Mcp-Session-Id")
			}
		}
	}
	if got := reused(); got != 1 {
		t.Errorf("watchIDs: got %d reused, want 1", got)
	}
}
