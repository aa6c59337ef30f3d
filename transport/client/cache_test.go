package client_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// memoryModern connects a client to a fake server without sockets.
func memoryModern(t *testing.T, s *modernServer, o client.Options) *client.Client {
	t.Helper()
	s.t = t
	o.Protocol, o.HTTPClient = client.ProtocolStateless, &http.Client{Transport: memory{s}}
	c, err := client.ConnectHTTP(t.Context(), "http://memory/mcp", &o)
	if err != nil {
		t.Fatalf("ConnectHTTP: %v", err)
	}
	t.Cleanup(func() { closeClient(t, c) })
	return c
}

// TestCacheLifetime: how long a result is kept follows from what it says.
func TestCacheLifetime(t *testing.T) {
	for _, test := range []struct {
		ttl  string // the member, or nothing
		o    client.Options
		want string // after how many seconds a request is made, of 0, 1, 2 and 3
	}{
		{`,"ttlMs":2000`, client.Options{}, "0 2"},
		{`,"ttlMs":2000,"cacheScope":"public"`, client.Options{}, "0 2"},
		{`,"ttlMs":2000`, client.Options{NoCache: true}, "0 1 2 3"},
		{`,"ttlMs":2000`, client.Options{Cache: client.NewCache(100)}, "0 1 2 3"}, // too large for it
		{`,"ttlMs":0`, client.Options{}, "0 1 2 3"},
		{`,"ttlMs":-5`, client.Options{}, "0 1 2 3"},
		{`,"ttlMs":"x"`, client.Options{}, "0 1 2 3"},
		{``, client.Options{}, "0 1 2 3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var at []string
			var begun time.Time
			s := &modernServer{}
			s.answer = func(f frame, _ http.Header) string {
				at = append(at, fmt.Sprint(int(time.Since(begun).Seconds())))
				return resultOf(f, `{"resources":[],"padding":"`+strings.Repeat("x", 30)+`"`+test.ttl+`}`)
			}
			c := memoryModern(t, s, test.o)
			begun = time.Now()
			for range 4 {
				if _, err := c.ListResources(t.Context()); err != nil {
					t.Errorf("ListResources: %v", err)
				}
				time.Sleep(time.Second)
			}
			if got := strings.Join(at, " "); got != test.want {
				t.Errorf("%s, %+v: asked at %s, want %s", test.ttl, test.o.NoCache, got, test.want)
			}
		})
	}
}

// TestCacheKeys: what belongs to different requests or people is kept apart, and what is public is shared.
func TestCacheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := &modernServer{}
		s.answer = func(f frame, _ http.Header) string {
			asked++
			scope := "private"
			if strings.Contains(string(f.Params), "public") {
				scope = "public"
			}
			return resultOf(f, `{"contents":[],"ttlMs":1000,"cacheScope":"`+scope+`"}`)
		}
		shared := client.NewCache(0)
		a, b := memoryModern(t, s, client.Options{Cache: shared}), memoryModern(t, s, client.Options{Cache: shared})
		for _, step := range []struct {
			c    *client.Client
			uri  string
			want int // requests so far
		}{
			{a, "u:public", 1}, {a, "u:public", 1}, {b, "u:public", 1}, {a, "u:mine", 2}, {a, "u:mine", 2}, {b, "u:mine", 3}, {a, "u:other", 4},
		} {
			if _, err := step.c.ReadResource(t.Context(), step.uri); err != nil || asked != step.want {
				t.Errorf("ReadResource(%s): %d requests so far (%v), want %d", step.uri, asked, err, step.want)
			}
		}
		if _, err := a.Request(t.Context(), "resources/read", []byte(`{"uri":"u:mine"}`), &client.CallOptions{NoCache: true}); err != nil || asked != 5 {
			t.Errorf("NoCache: %d requests so far (%v), want 5", asked, err)
		}
	})
}

// TestCacheAfterRounds: a resource that took a question is not kept, and a bad cursor makes the list stale.
func TestCacheAfterRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		s := &modernServer{}
		s.answer = func(f frame, _ http.Header) string {
			text := string(f.Params)
			switch {
			case f.Method == "resources/read" && !strings.Contains(text, "requestState"):
				seen = append(seen, "ask")
				return resultOf(f, `{"resultType":"input_required","requestState":"s"}`)
			case f.Method == "resources/read":
				seen = append(seen, "read")
				return resultOf(f, `{"contents":[],"ttlMs":5000}`)
			case strings.Contains(text, "cursor"):
				seen = append(seen, "bad")
				return errorOf(-32602, "")
			}
			seen = append(seen, "page")
			return resultOf(f, `{"prompts":[],"nextCursor":"c","ttlMs":5000}`)
		}
		c := memoryModern(t, s, client.Options{})
		for range 2 {
			if _, err := c.ReadResource(t.Context(), "u"); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if _, err := c.ListPrompts(t.Context()); err == nil {
				t.Error("ListPrompts: got no error")
			}
		}
		if got, want := strings.Join(seen, " "), "ask read ask read page bad page bad"; got != want {
			t.Errorf("requests: got %s, want %s", got, want)
		}
	})
}
