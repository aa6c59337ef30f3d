package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAbandonedSessions has clients open sessions and leave them, ten times as
// many as there may be. The process grows no further once it is full; the newest
// sessions answer; one that had to make room is a 404 without keys and goes on
// with them. With MCP_LOAD_FULL set 100,000 are opened under a cap of 10,000.
func TestAbandonedSessions(t *testing.T) {
	if _, err := residentBytes(os.Getpid()); err != nil {
		t.Skip("no /proc/PID/status on this system")
	}
	opened := size(4_000, 100_000)
	limit := opened / 10
	for _, sealed := range []bool{false, true} {
		args := []string{"--http", "127.0.0.1:0", "--max-sessions", strconv.Itoa(limit), "--log-level", "error"}
		if sealed {
			args = append(args, "--session-keys", keyFile(t))
		}
		s := startServed(t, "", args...)
		client, url := newHTTPClient(t), s.endpoint(t)
		ids := make([]string, opened)
		var resident [2]int64
		for half := range resident {
			part := ids[half*opened/2:][:opened/2]
			openSessions(t, client, url, part[:len(part)-limit], 8)
			openSessions(t, client, url, part[len(part)-limit:], 1) // one by one: no doubt which are the newest
			resident[half] = settledBytes(t, s.cmd.Process.Pid)
		}
		grown := float64(resident[1])/float64(resident[0]) - 1
		newest := statuses(client, url, ids[opened-limit:])
		evicted := statuses(client, url, ids[:limit/10])
		t.Logf("sealed %t: %d sessions opened, at most %d kept; resident %d KiB after the first half, %d KiB after all (%+.1f %%); "+
			"newest %v, evicted %v", sealed, opened, limit, resident[0]>>10, resident[1]>>10, 100*grown, newest, evicted)
		most := 0.05
		if opened < 100_000 {
			most = 0.25 // a small process is noisy
		}
		if grown > most {
			t.Errorf("sealed %t: resident memory grew by %.1f %% in the second half, want at most %.0f %%", sealed, 100*grown, 100*most)
		}
		want := http.StatusNotFound
		if sealed {
			want = http.StatusOK
		}
		if newest[http.StatusOK] != limit || evicted[want] != limit/10 {
			t.Errorf("sealed %t: newest got %v, want %d of 200; evicted got %v, want %d of %d",
				sealed, newest, limit, evicted, limit/10, want)
		}
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
	}
}

// openSessions opens a session for each place of ids, with some workers.
func openSessions(t *testing.T, client *http.Client, url string, ids []string, workers int) {
	t.Helper()
	shares(len(ids), workers, func(from, to int) {
		c := legacyClient{http: client, url: url}
		for i := from; i < to; i++ {
			if err := c.open("2025-11-25"); err != nil {
				t.Error(err)
				return
			}
			ids[i] = c.session
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// statuses pings each session once, and counts what comes back.
func statuses(client *http.Client, url string, ids []string) map[int]int {
	var mu sync.Mutex // guards count
	count := make(map[int]int)
	shares(len(ids), 8, func(from, to int) {
		for i := from; i < to; i++ {
			c := legacyClient{http: client, url: url, session: ids[i]}
			status, _, _ := c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			mu.Lock()
			count[status]++
			mu.Unlock()
		}
	})
	return count
}

// shares splits n things among workers.
func shares(n, workers int, f func(from, to int)) {
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() { f(i*n/workers, (i+1)*n/workers) })
	}
	running.Wait()
}

// settledBytes gives the resident memory of a process that has come to rest: the
// least of a few looks, since the collector returns memory when it likes.
func settledBytes(t *testing.T, pid int) int64 {
	t.Helper()
	least := int64(0)
	for i := range 5 {
		now, err := residentBytes(pid)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 || now < least {
			least = now
		}
		time.Sleep(time.Duration(size(20, 1_000)) * time.Millisecond)
	}
	return least
}

// residentBytes gives the resident memory of a process.
func residentBytes(pid int) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("no VmRSS in the status of process %d", pid)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}
