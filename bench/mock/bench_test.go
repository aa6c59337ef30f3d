package mock_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/mock"
)

// serve starts a server and gives the URL of its endpoint.
func serve(t *testing.T, c mock.Config) (*mock.Server, string) {
	t.Helper()
	s, err := mock.New(c)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mock.Serve(ctx, listener, s.Handler()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
		s.Close()
	})
	return s, "http://" + listener.Addr().String() + mock.Path
}

// TestRunAgainstMock: the load generator and the server agree on every count, in both eras, and no call is faster than
// its service time.
func TestRunAgainstMock(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2024-11-05", bench.Stateless, bench.Auto} {
		s, url := serve(t, mock.Config{Model: mock.Model{Service: mock.Service{Mean: 2 * time.Millisecond}}})
		res, err := bench.Run(context.Background(), bench.Config{
			URL: url, Protocol: protocol, Concurrency: 4, Sessions: 6, Requests: 200, Streams: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		st := s.Stats()
		got := fmt.Sprintf("%d ok, %d calls, discover %d, opened %d, initialized %d, deleted %d, open %d, streams %d",
			res.Requests.OK, st.Requests["tools/call"], st.Requests["server/discover"], st.Sessions.Opened,
			st.Requests["notifications/initialized"], st.Sessions.Deleted, st.Sessions.Open, st.Streams.Peak)
		want := "200 ok, 200 calls, discover 0, opened 6, initialized 6, deleted 6, open 0, streams 6"
		if protocol == bench.Stateless || protocol == bench.Auto {
			want = "200 ok, 200 calls, discover 6, opened 0, initialized 0, deleted 0, open 0, streams 0"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", protocol, got, want)
		}
		for _, l := range res.Latency {
			if l.Tool == "echo" && l.Service.P50US < 2000 {
				t.Errorf("%s: p50 of the service time: got %v µs, want at least 2000", protocol, l.Service.P50US)
			}
		}
	}
}

// TestRunFindsTheBucket: an open loop that asks for more gets what the bucket lets through.
func TestRunFindsTheBucket(t *testing.T) {
	_, url := serve(t, mock.Config{Model: mock.Model{TokenBucket: 100}})
	start := time.Now()
	res, err := bench.Run(context.Background(), bench.Config{URL: url, Rate: 200, Requests: 150})
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); res.Requests.OK != 150 || took < 1490*time.Millisecond {
		t.Errorf("150 calls through a bucket of 100/s: got %d ok in %v, want 150 in at least 1.49 s", res.Requests.OK, took)
	}
}
