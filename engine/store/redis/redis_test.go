package redis_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/engine/store/redis"
	"github.com/mcpengine/mcpengine/engine/store/storetest"
)

// startRedis starts a real server on a free port of the loopback interface.
func startRedis(t *testing.T) (url string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no redis-server (Debian: apt-get install redis-server)")
		}
		t.Skip("there is no redis-server on the PATH")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	cmd := exec.Command(path, "--bind", "127.0.0.1", "--port", port, "--save", "", "--dir", t.TempDir(), "--daemonize", "no")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url = "redis://127.0.0.1:" + port
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s, err := redis.Open(t.Context(), url, nil)
		if err == nil {
			_ = s.Close()
			return url
		}
		if time.Now().After(deadline) {
			t.Fatalf("redis-server does not answer: %v", err)
		}
	}
}

func TestStore(t *testing.T) {
	url := startRedis(t)
	opened := 0
	connect := func(t *testing.T) *redis.Store {
		s, err := redis.Open(t.Context(), url, &redis.Options{
			Max: storetest.Max, Prefix: fmt.Sprintf("{test%d}:", opened),
			SessionEventBytes: storetest.SessionEventBytes, EventBytes: storetest.EventBytes,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	next := func(t *testing.T) *redis.Store {
		opened++
		return connect(t)
	}
	storetest.Run(t, func(t *testing.T) engine.SessionStore { return next(t) },
		func(t *testing.T) engine.SessionStore { return connect(t) })
	t.Run("events", func(t *testing.T) {
		storetest.RunEvents(t, func(t *testing.T) engine.EventLog { return next(t) },
			func(t *testing.T) engine.EventLog { return connect(t) })
	})
}

// TestEventLife checks that the events of a session that has nothing to say any
// more are forgotten when others speak.
func TestEventLife(t *testing.T) {
	s, err := redis.Open(t.Context(), startRedis(t), &redis.Options{EventLife: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	for _, session := range []string{"quiet", "other"} {
		if err := s.AppendEvents(t.Context(), []engine.LoggedEvent{{Session: session, Stream: 1, Seq: 1}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	for session, want := range map[string]int{"quiet": 0, "other": 1} {
		if got, err := s.EventsAfter(t.Context(), session, 1, 0); len(got) != want || err != nil {
			t.Errorf("EventsAfter(%s): got %v, %v; want %d", session, got, err, want)
		}
	}
}

// TestOpenRefuses checks that the password of a URL is in no error.
func TestOpenRefuses(t *testing.T) {
	for _, url := range []string{
		"redis://user:hunter2@127.0.0.1:1/0", "redis://user:hunter2@127.0.0.1:port", "http://user:hunter2@127.0.0.1/",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := redis.Open(ctx, url, nil)
		cancel()
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q): got %v, want an error without the password", url, err)
		}
	}
}

// TestServerGone checks that a server that went away is an error, not an answer.
func TestServerGone(t *testing.T) {
	url := startRedis(t)
	s, err := redis.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	if revoked, err := s.Revoked(t.Context(), engine.SessionRef{Name: "a"}); err == nil {
		t.Errorf("Revoked: got %t and no error", revoked)
	}
}
