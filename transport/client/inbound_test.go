package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

func TestServerRequests(t *testing.T) {
	noLeaks(t)
	onRequest := func(_ context.Context, method string, params []byte) ([]byte, error) {
		switch method {
		case "good":
			return params, nil
		case "empty":
			return nil, nil
		case "refuse":
			return nil, fmt.Errorf("wrapped: %w", codec.NewError(-1, "user rejected"))
		case "fail":
			return nil, errors.New("secret/path")
		case "invalid":
			return []byte(`{"a":`), nil
		}
		panic("secret")
	}
	internal := `"error":{"code":-32603,"message":"Internal error"}`
	c, p := connectPipe(t, &client.Options{OnRequest: onRequest})
	for _, test := range []struct{ request, want string }{
		{`"id":"p","method":"ping"`, `"id":"p","result":{}`},
		{`"id":1.0e2,"method":"ping"`, `"error":{"code":-32600,"message":"Invalid Request: id must be a string or an integer"}`},
		{`"id":12345678901234567890,"method":"good","params":{"x":[1]}`, `"id":12345678901234567890,"result":{"x":[1]}`},
		{`"id":2,"method":"empty"`, `"id":2,"result":{}`},
		{`"id":3,"method":"refuse"`, `"id":3,"error":{"code":-1,"message":"user rejected"}`},
		{`"id":4,"method":"fail"`, `"id":4,` + internal},
		{`"id":5,"method":"invalid"`, `"id":5,` + internal},
		{`"id":6,"method":"panics"`, `"id":6,` + internal},
		{`"id":7,"method":"good","params":[]`, `"id":7,"error":{"code":-32602,"message":"Invalid params: params must be an object"}`},
	} {
		p.write(`{"jsonrpc":"2.0",` + test.request + `}`)
		got, err := p.r.ReadString('\n')
		if want := `{"jsonrpc":"2.0",` + test.want + "}\n"; got != want || err != nil {
			t.Errorf("answer to %s: got %s, want %s", test.request, got, want)
		}
	}
	closeClient(t, c)
}

func TestServerRequestWithoutHandler(t *testing.T) {
	noLeaks(t)
	_, p := connectPipe(t, nil)
	p.write(`{"jsonrpc":"2.0","id":"a","method":"roots/list"}`)
	got, err := p.r.ReadString('\n')
	if want := `{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"Method not found"}}` + "\n"; got != want {
		t.Errorf("answer: got %s (%v), want %s", got, err, want)
	}
}

// TestServerRequestLimits: one handler waits, a second request is refused, a
// request with the id of the first one too, ping is answered all the same, and
// the server's cancellation ends the first one without an answer.
func TestServerRequestLimits(t *testing.T) {
	noLeaks(t)
	entered, ended := make(chan struct{}), make(chan error, 1)
	_, p := connectPipe(t, &client.Options{
		MaxServerRequests: 1,
		OnRequest: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			close(entered)
			<-ctx.Done()
			ended <- ctx.Err()
			return []byte("1"), nil
		},
	})
	p.write(`{"jsonrpc":"2.0","id":1,"method":"slow"}`)
	<-entered
	for _, test := range []struct{ write, want string }{
		{`{"jsonrpc":"2.0","id":2,"method":"slow"}`, `"id":2,"error":{"code":-31900,`},
		{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, `"id":3,"result":{}`},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}` + "\n" + `{"jsonrpc":"2.0","id":4,"method":"ping"}`, `"id":4,"result":{}`},
	} {
		p.write(test.write)
		if got, err := p.r.ReadString('\n'); err != nil || !strings.Contains(got, test.want) {
			t.Errorf("answer to %s: got %s (%v), want %s", test.write, got, err, test.want)
		}
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler's context: got %v, want context.Canceled", err)
	}
}

func TestDuplicateServerRequest(t *testing.T) {
	noLeaks(t)
	release := make(chan struct{})
	_, p := connectPipe(t, &client.Options{OnRequest: func(context.Context, string, []byte) ([]byte, error) {
		<-release
		return []byte(`"first"`), nil
	}})
	p.write(`{"jsonrpc":"2.0","id":"x","method":"m"}`, `{"jsonrpc":"2.0","id":"x","method":"m"}`)
	for i, want := range []string{`"error":{"code":-32600,`, `"result":"first"`} {
		if i == 1 {
			close(release)
		}
		if got, err := p.r.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("answer %d: got %s (%v), want %s", i, got, err, want)
		}
	}
}

func TestNotificationsAndProgress(t *testing.T) {
	noLeaks(t)
	var notes []string
	c, p := connectPipe(t, &client.Options{OnNotification: func(method string, params []byte) {
		notes = append(notes, method+string(params))
		if method == "panics" {
			panic("in a callback")
		}
	}})
	go func() {
		f := p.expect("tools/call")
		progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`
		p.write(
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}`,
			`{"jsonrpc":"2.0","method":"panics"}`,
			progress+string(f.ID)+`,"progress":0.5,"total":2,"message":"a"}}`,
			progress+string(f.ID)+`,"progress":1}}`,
			progress+`"foreign","progress":9}}`,
			progress+`4711,"progress":9}}`,
			resultOf(f, `{"content":[]}`),
			progress+string(f.ID)+`,"progress":7}}`, // after the response it is not for the call
		)
		p.write(resultOf(p.expect("ping"), `{}`))
	}()
	var got []client.Progress
	_, err := c.CallTool(context.Background(), "t", nil, &client.CallOptions{OnProgress: func(p client.Progress) { got = append(got, p) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(got), `[{0.5 2 true a} {1 0 false }]`; got != want {
		t.Errorf("OnProgress: got %s, want %s", got, want)
	}
	want := `[notifications/message{"data":"x"} panics ` +
		`notifications/progress{"progressToken":"foreign","progress":9} ` +
		`notifications/progress{"progressToken":4711,"progress":9} ` +
		`notifications/progress{"progressToken":2,"progress":7}]`
	if got := fmt.Sprint(notes); got != want {
		t.Errorf("OnNotification: got %s, want %s", got, want)
	}
}

// TestBatch: only revision 2025-03-26 has batches.
func TestBatch(t *testing.T) {
	for _, test := range []struct {
		revision string
		want     string
	}{
		{"2025-03-26", "batched"},
		{"2025-06-18", "single"},
	} {
		t.Run(test.revision, func(t *testing.T) {
			noLeaks(t)
			ours, theirs := net.Pipe()
			p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
			go func() {
				p.write(resultOf(p.expect("initialize"), strings.Replace(initResult, "2025-11-25", test.revision, 1)))
				p.expect("notifications/initialized")
				f := p.expect("m")
				p.write(`[{"jsonrpc":"2.0","method":"n"},`+resultOf(f, `"batched"`)+`]`, `[]`, resultOf(f, `"single"`))
			}()
			c, err := client.ConnectPipe(context.Background(), ours, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer closeClient(t, c)
			got, err := c.Request(context.Background(), "m", nil, nil)
			if string(got) != `"`+test.want+`"` {
				t.Errorf("Request: got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestFlood: a peer that asks without end and never reads neither stops the
// reader nor makes the client grow, and Close is prompt.
func TestFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c, p := connectPipe(t, &client.Options{
			Logger:    slog.New(slog.NewTextHandler(&log, nil)),
			OnRequest: func(context.Context, string, []byte) ([]byte, error) { return nil, nil },
		})
		for i := range 1000 {
			p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i), fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"m"}`, i))
		}
		synctest.Wait()
		begun := time.Now()
		closeClient(t, c)
		if took := time.Since(begun); took != 0 {
			t.Errorf("Close: took %v, want 0", took)
		}
		if !strings.Contains(log.String(), "the server does not take messages") {
			t.Errorf("log: got %s, want a line on dropped messages", log.String())
		}
	})
}

// TestCloseWithStubbornCallback: Close ends a second after its context where a
// callback of the user's does not.
func TestCloseWithStubbornCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		entered, release := make(chan struct{}), make(chan struct{})
		c, p := connectPipe(t, &client.Options{OnRequest: func(context.Context, string, []byte) ([]byte, error) {
			close(entered)
			<-release
			return nil, nil
		}})
		p.write(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begun := time.Now()
		if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 6*time.Second {
			t.Errorf("Close: got %v after %v, want context.DeadlineExceeded after 6s", err, time.Since(begun))
		}
		close(release)
	})
}
