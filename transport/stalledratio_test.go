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
	healthy, rounds, notices int
	pause                    time.Duration // from one notice to the next
	most                     float64       // of the ratio
}

// TestStalledReaderRatio measures what readers of GET streams pay for one among
// them that does not read: the 99th percentile of the time from a notice to its
// arrival, with and without it, in rounds that alternate. With MCP_LOAD_FULL set
// there are 500 readers and five rounds, and the ratio of the medians may be 1.1;
// otherwise few, with room for a machine that has other work.
func TestStalledReaderRatio(t *testing.T) {
	run := stalledRun{healthy: 40, rounds: 2, notices: 10, pause: 10 * time.Millisecond, most: 20}
	if os.Getenv("MCP_LOAD_FULL") != "" {
		run = stalledRun{healthy: 500, rounds: 5, notices: 60, pause: 50 * time.Millisecond, most: 1.1}
	}
	var without, with []time.Duration
	for round := range run.rounds {
		pair := [2]time.Duration{}
		for i := range pair {
			stalled := (i + round%2) % 2 // which is first alternates, too
			pair[stalled] = run.measure(t, stalled == 1)
		}
		without, with = append(without, pair[0]), append(with, pair[1])
		t.Logf("round %d: p99 %v without, %v with a stalled reader", round+1, pair[0], pair[1])
	}
	slices.Sort(without)
	slices.Sort(with)
	ratio := float64(with[len(with)/2]) / float64(without[len(without)/2])
	t.Logf("%d healthy readers, %d notices a round: median p99 %v without, %v with; ratio %.3f",
		run.healthy, run.notices, without[len(without)/2], with[len(with)/2], ratio)
	if ratio > run.most {
		t.Errorf("p99 beside a stalled reader: got %.3f times that without, want at most %.2f", ratio, run.most)
	}
}

// measure gives the 99th percentile of one round.
func (run *stalledRun) measure(t *testing.T, stalled bool) time.Duration {
	const most = 2 * time.Minute // how long the stalled one stays: longer than the round
	w := newWeb(t, &engine.Options{Limits: actors.Limits{SubscriptionMinInterval: 1}},
		&transport.HTTPOptions{WriteTimeout: most})
	w.client.Transport.(*http.Transport).MaxConnsPerHost = 0
	var blocked *raw
	if stalled {
		blocked = w.stall(t)
	}
	arrivals := make([][]time.Duration, run.healthy)
	var reading sync.WaitGroup
	for i := range arrivals {
		stream := w.get(w.session("2025-06-18"))
		reading.Go(func() { arrivals[i] = readArrivals(t, stream.r, run.notices) })
	}
	for range run.notices {
		now := strconv.FormatInt(time.Now().UnixNano(), 10)
		if err := w.Log(engine.LevelError, "", now+strings.Repeat(" ", 1<<10)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(run.pause)
	}
	reading.Wait()
	all := slices.Concat(arrivals...)
	if len(all) != run.healthy*run.notices {
		t.Fatalf("arrivals: got %d, want %d", len(all), run.healthy*run.notices)
	}
	if stalled {
		checkStalled(t, blocked, run.notices)
	}
	slices.Sort(all)
	return all[len(all)*99/100]
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
// got.
func checkStalled(t *testing.T, conn *raw, sent int) {
	t.Helper()
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
