//go:build !race

package transport_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// progressSteps is how many notifications a call of the tool steps sends.
const progressSteps = 200

func steps(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
	for i := range progressSteps {
		c.Progress(ctx, float64(i+1), progressSteps)
	}
	return append(out, `{"content":[]}`...), nil
}

// checkProgress holds a call with progress to what a call without it may cost:
// nothing is left for the notifications.
func checkProgress(t *testing.T, what string, budget float64, call func()) {
	t.Helper()
	call()
	if got := testing.AllocsPerRun(20, call); got > budget {
		t.Errorf("%s: a call with %d notifications: got %g allocations, want at most %g", what, progressSteps, got, budget)
	}
}

// TestPipeProgressBudget counts from one end of the in-memory pipe to the other.
func TestPipeProgressBudget(t *testing.T) {
	f := newFixture(t, nil)
	f.add(t, "steps", steps)
	conn, served := transport.Pipe(context.Background(), f.Engine)
	t.Cleanup(func() { _ = conn.Close(); <-served })
	buf := make([]byte, 64<<10)
	lines := func(n int) {
		for n > 0 {
			got, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range buf[:got] {
				if c == '\n' {
					n--
				}
			}
		}
	}
	send := func(frame []byte, answers int) {
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		lines(answers)
	}
	send([]byte(initialize+"\n"), 1)
	send([]byte(initialized+"\n"), 0)
	request := []byte(callWithToken(firstID, "steps", "", "7") + "\n")
	checkProgress(t, "pipe", 2, func() {
		nextID(request)
		send(request, progressSteps+1)
	})
}

// TestHTTPProgressBudget counts on a connection of loopback, with all that
// package http allocates for a request: none of that is for one notification.
func TestHTTPProgressBudget(t *testing.T) {
	w := newWeb(t, nil, nil)
	w.add(t, "steps", steps)
	conn := w.dial()
	body := callWithToken(firstID, "steps", "", "7")
	request := []byte(head(w.session("2025-11-25"), "Content-Length: "+strconv.Itoa(len(body))) + body)
	_ = conn.SetDeadline(time.Time{})
	const budget = progressSteps / 2
	checkProgress(t, "HTTP", budget, func() {
		nextID(request)
		if _, err := conn.Write(request); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(conn.r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, response.Body); err != nil || n < progressSteps*50 {
			t.Fatalf("the reply: got %d bytes and %v, want all events", n, err)
		}
	})
}
