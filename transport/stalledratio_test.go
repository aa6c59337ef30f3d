//go:build !race

package transport_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// stalledRun is a size of TestStalledReaderRatio.
type stalledRun struct {
	healthy, rounds, notices int           // notices of a round
	pause                    time.Duration // from one notice to the next
	most                     float64       // of the ratio
}

// TestStalledReaderRatio measures what readers of GET streams pay for one among
// them that does not read: the 99th percentile of the time from a notice to its
// arrival, with and without it. Two servers are there all the time and are told
// something in turn, so that what else the machine does hits both alike. With
// MCP_LOAD_FULL set there are 500 readers and five rounds, and the ratio of the
// medians may be 1.1; otherwise few, with room for a machine that has other work.
func TestStalledReaderRatio(t *testing.T) {
	run := stalledRun{healthy: 40, rounds: 3, notices: 10, pause: 5 * time.Millisecond, most: 10}
	if os.Getenv("MCP_LOAD_FULL") != "" {
		run = stalledRun{healthy: 500, rounds: 5, notices: 100, pause: 15 * time.Millisecond, most: 1.1}
	}
	sides := []*audience{run.gather(t, false), run.gather(t, true)}
	for round := range run.rounds {
		for range run.notices {
			for i := range sides {
				side := sides[(round+i)%2] // which is first alternates, too
				now := strconv.FormatInt(time.Now().UnixNano(), 10)
				if err := side.Log(engine.LevelError, "", now+strings.Repeat(" ", 1<<10)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(run.pause)
			}
		}
	}
	var medians [2]time.Duration
	for i, side := range sides {
		side.reading.Wait()
		medians[i] = run.medianP99(t, side, []string{"without", "with"}[i])
	}
	checkStalled(t, sides[1], run.rounds*run.notices)
	ratio := float64(medians[1]) / float64(medians[0])
	t.Logf("%d healthy readers, %d rounds of %d notices: median p99 %v without, %v with a stalled reader; ratio %.3f",
		run.healthy, run.rounds, run.notices, medians[0], medians[1], ratio)
	if ratio > run.most {
		t.Errorf("p99 beside a stalled reader: got %.3f times that without, want at most %.2f", ratio, run.most)
	}
}

// audience is a server with its readers.
type audience struct {
	*web
	blocked  *raw // the stream that is not read, or nil
	reading  sync.WaitGroup
	arrivals [][]time.Duration // of each reader, in order
}

// gather makes a server with its readers, which read until they have all.
func (run *stalledRun) gather(t *testing.T, stalled bool) *audience {
	t.Helper()
	w := newWeb(t, &engine.Options{Limits: actors.Limits{SubscriptionMinInterval: 1}},
		&transport.HTTPOptions{WriteTimeout: 10 * time.Minute}) // the stalled one stays until the end
	side := &audience{web: w, arrivals: make([][]time.Duration, run.healthy)}
	if stalled {
		side.blocked = w.stall(t)
	}
	for i := range side.arrivals {
		stream := w.get(w.session("2025-06-18"))
		side.reading.Go(func() { side.arrivals[i] = readArrivals(t, stream.r, run.rounds*run.notices) })
	}
	return side
}

// medianP99 gives the median of the 99th percentiles of the rounds.
func (run *stalledRun) medianP99(t *testing.T, side *audience, name string) time.Duration {
	t.Helper()
	var rounds []time.Duration
	for round := range run.rounds {
		var all []time.Duration
		for i, took := range side.arrivals {
			if len(took) != run.rounds*run.notices {
				t.Fatalf("reader %d got %d notices, want %d", i, len(took), run.rounds*run.notices)
			}
			all = append(all, took[round*run.notices:][:run.notices]...)
		}
		slices.Sort(all)
		rounds = append(rounds, all[len(all)*99/100])
	}
	t.Logf("p99 of each round %s: %v", name, rounds)
	slices.Sort(rounds)
	return rounds[len(rounds)/2]
}

// readArrivals reads n notices, which say when they were sent.
func readArrivals(t *testing.T, r *bufio.Reader, n int) (took []time.Duration) {
	for len(took) < n {
		e, err := readEvent(r)
		if err != nil {
			t.Errorf("a healthy reader: %v after %d notices", err, len(took))
			return took
		}
		text := codec.Text(codec.Member([]byte(e.data), "params"), "data")
		if sent, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			took = append(took, time.Since(time.Unix(0, sent)))
		}
	}
	return took
}

// checkStalled checks that a stream was stalled: it lacks notices that the others
// got, and the server has counted them.
func checkStalled(t *testing.T, side *audience, sent int) {
	t.Helper()
	if dropped := side.handler.Stats().Refusals.NotRead; dropped == 0 {
		t.Error("messages that the stalled stream had no room for: got 0")
	}
	conn := side.blocked
	_ = conn.SetReadDeadline(time.Now().Add(300 * time.Millisecond)) // what is there is there at once
	got := 0
	for {
		e, err := readEvent(conn.r)
		if err != nil {
			break
		}
		if strings.Contains(e.data, `"notifications/message"`) {
			got++
		}
	}
	if got >= sent {
		t.Errorf("the stalled stream got %d of %d notices: it was not stalled", got, sent)
	}
}

// stall opens a GET stream that is not read, and sends on it alone what fills
// every buffer on the way.
func (w *web) stall(t *testing.T) *raw {
	t.Helper()
	const updates = 800
	uri := "a:" + strings.Repeat("a", 8<<10)
	err := w.AddResource(engine.Resource{URI: uri, Name: "a"},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	session := w.session("2025-06-18")
	if r := w.post(session, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"`+uri+`"}}`); r.code() != "" {
		t.Fatalf("subscribe: got %s", r.body)
	}
	conn := w.dial()
	_ = conn.Conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	if err := w.request(http.MethodGet, "", "Accept: text/event-stream", "Mcp-Session-Id: "+session).Write(conn); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream that stalls", func() bool { return w.handler.Stats().Streams == 1 })
	for range updates {
		w.ResourceUpdated(uri)
		time.Sleep(50 * time.Microsecond) // what is not taken at once coalesces
	}
	return conn
}
