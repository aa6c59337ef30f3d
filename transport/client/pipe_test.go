package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

func TestOutOfOrder(t *testing.T) {
	noLeaks(t)
	c, p := connectPipe(t, nil)
	const calls = 50
	go func() {
		var seen []frame
		for range calls {
			seen = append(seen, p.expect("echo"))
		}
		for i := len(seen) - 1; i >= 0; i-- {
			p.write(resultOf(seen[i], string(seen[i].Params)))
		}
	}()
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			want := fmt.Sprintf(`{"n":%d}`, i)
			got, err := c.Request(context.Background(), "echo", []byte(want), nil)
			if err != nil || string(got) != want {
				t.Errorf("Request %s: got %s, %v", want, got, err)
			}
		})
	}
	wg.Wait()
}

func TestAnswers(t *testing.T) {
	noLeaks(t)
	c, p := connectPipe(t, nil)
	const long = 100_000
	for _, test := range []struct {
		name, reply, want string
		is                error
	}{
		{"result", `{"jsonrpc":"2.0","id":%s,"result":{"a":1}}`, `{"a":1}`, nil},
		{"CRLF", "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":1}\r", `1`, nil},
		{"after an empty line", "\n  \n{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":1}", `1`, nil},
		{"after garbage", "Server started!\n{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":1}", `1`, nil},
		{"after an answer to nothing", "{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":3}\n{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":1}", `1`, nil},
		{"after an id as a string", "{\"jsonrpc\":\"2.0\",\"id\":\"%[1]s\",\"result\":3}\n{\"jsonrpc\":\"2.0\",\"id\":%[1]s,\"result\":1}", `1`, nil},
		{"after a notification with the id", "{\"jsonrpc\":\"1.0\",\"id\":%[1]s,\"method\":\"m\"}\n{\"jsonrpc\":\"2.0\",\"id\":%[1]s,\"result\":1}", `1`, nil},
		{"long line", `{"jsonrpc":"2.0","id":%s,"result":"` + strings.Repeat("x", long) + `"}`, `"` + strings.Repeat("x", long) + `"`, nil},
		{"error", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"gone","data":[1]}}`, ``, codec.NewError(-32002, "")},
		{"error without code", `{"jsonrpc":"2.0","id":%s,"error":{"message":"gone"}}`, ``, client.ErrMalformed},
		{"no version", `{"id":%s,"result":{}}`, ``, client.ErrMalformed},
		{"neither", `{"jsonrpc":"2.0","id":%s}`, ``, client.ErrMalformed},
	} {
		t.Run(test.name, func(t *testing.T) {
			go func() {
				f, _ := p.read()
				for f.Method != "m" { // the client refuses the request among the replies
					f, _ = p.read()
				}
				p.write(fmt.Sprintf(test.reply, f.ID))
			}()
			got, err := c.Request(context.Background(), "m", nil, nil)
			if string(got) != test.want || !errors.Is(err, test.is) {
				t.Errorf("Request: got %.80s, %v; want %.80s, %v", got, err, test.want, test.is)
			}
		})
	}
	go p.drain()
}

func TestCancel(t *testing.T) {
	noLeaks(t)
	c, p := connectPipe(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := c.Request(ctx, "slow", nil, nil)
		done <- err
	}()
	f := p.expect("slow")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Request: got %v, want context.Canceled", err)
	}
	note := p.expect("notifications/cancelled")
	if want := `{"requestId":` + string(f.ID) + `,"reason":"the caller gave up"}`; string(note.Params) != want {
		t.Errorf("cancelled: got %s, want %s", note.Params, want)
	}
	p.write(resultOf(f, `"late"`)) // is ignored

	// A call whose context has ended before sends nothing at all.
	if _, err := c.Request(ctx, "never", nil, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Request: got %v, want context.Canceled", err)
	}
	go func() { p.write(resultOf(p.expect("ping"), `{}`)) }()
	if err := c.Ping(context.Background()); err != nil {
		t.Errorf("Ping: %v", err)
	}
}

// TestTimeout runs in virtual time: three notifications move the limit, and the
// maximum holds however many there are.
func TestTimeout(t *testing.T) {
	for _, test := range []struct {
		name     string
		o        *client.CallOptions
		progress int           // notifications, one each 8 s
		want     time.Duration // when the call ends
	}{
		{"default", nil, 0, 10 * time.Second},
		{"of the call", &client.CallOptions{Timeout: 3 * time.Second}, 0, 3 * time.Second},
		{"extended", &client.CallOptions{OnProgress: func(client.Progress) {}}, 3, 34 * time.Second},
		{"at most", &client.CallOptions{OnProgress: func(client.Progress) {}}, 20, 60 * time.Second},
		{"longer than at most", &client.CallOptions{Timeout: 70 * time.Second}, 0, 70 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, p := connectPipe(t, &client.Options{MaxCallTimeout: time.Minute})
				go func() {
					f := p.expect("slow")
					go p.drain()
					for i := range test.progress {
						time.Sleep(8 * time.Second)
						p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, f.ID, i))
					}
				}()
				begun := time.Now()
				_, err := c.Request(t.Context(), "slow", nil, test.o)
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took != test.want {
					t.Errorf("Request: got %v after %v, want context.DeadlineExceeded after %v", err, took, test.want)
				}
				if test.progress > 3 {
					time.Sleep(3 * time.Minute) // the rest of the progress is for nobody
				}
			})
		})
	}
}

func TestNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connectPipe(t, &client.Options{CallTimeout: -1})
		go func() {
			f := p.expect("slow")
			time.Sleep(time.Hour)
			p.write(resultOf(f, `1`))
		}()
		if got, err := c.Request(t.Context(), "slow", nil, nil); string(got) != "1" {
			t.Errorf("Request: got %s, %v, want 1", got, err)
		}
	})
}

// TestTooLarge: a line over the limit is skipped, and the call that waits for
// it is told at its time limit. Nothing over the limit is sent.
func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connectPipe(t, &client.Options{MaxMessageBytes: 1000})
		go func() {
			p.write(resultOf(p.expect("big"), `"`+strings.Repeat("x", 50_000)+`"`))
			p.expect("notifications/cancelled")
			p.write(resultOf(p.expect("edge"), `"`+strings.Repeat("x", 1000-len(`{"jsonrpc":"2.0","id":3,"result":""}`))+`"`))
		}()
		_, err := c.Request(t.Context(), "big", nil, nil)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a line of more than 1000 bytes was skipped") {
			t.Errorf("Request: got %v, want a time limit that tells of the line", err)
		}
		if got, err := c.Request(t.Context(), "edge", nil, nil); err != nil {
			t.Errorf("Request of a line at the limit: got %d bytes, %v", len(got), err)
		}
		_, err = c.Request(t.Context(), "big", []byte(`{"a":"`+strings.Repeat("x", 1000)+`"}`), nil)
		if !errors.Is(err, client.ErrTooLarge) {
			t.Errorf("Request of large params: got %v, want ErrTooLarge", err)
		}
	})
}

func TestTooManyCalls(t *testing.T) {
	noLeaks(t)
	c, p := connectPipe(t, &client.Options{MaxPending: 1})
	done := make(chan error)
	go func() {
		_, err := c.Request(context.Background(), "slow", nil, nil)
		done <- err
	}()
	f := p.expect("slow")
	if _, err := c.Request(context.Background(), "more", nil, nil); !errors.Is(err, client.ErrTooManyCalls) {
		t.Errorf("Request: got %v, want ErrTooManyCalls", err)
	}
	p.write(resultOf(f, `1`))
	if err := <-done; err != nil {
		t.Errorf("Request: %v", err)
	}
}

func TestPeerGoesAway(t *testing.T) {
	noLeaks(t)
	c, p := connectPipe(t, nil)
	done := make(chan error)
	go func() {
		_, err := c.Request(context.Background(), "slow", nil, nil)
		done <- err
	}()
	p.expect("slow")
	_ = p.conn.Close()
	if err := <-done; !errors.Is(err, client.ErrDisconnected) {
		t.Errorf("Request: got %v, want ErrDisconnected", err)
	}
	<-c.Done()
	if err := c.Notify(context.Background(), "m", nil); !errors.Is(err, client.ErrDisconnected) {
		t.Errorf("Notify: got %v, want ErrDisconnected", err)
	}
}

// TestPeerDoesNotRead: neither a call nor Close waits for a peer that has
// stopped reading.
func TestPeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectPipe(t, nil)
		for range 100 { // more than the queue of the writer takes
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Request(ctx, "m", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Request: got %v, want context.DeadlineExceeded", err)
			}
			cancel()
		}
		begun := time.Now()
		if err := c.Notify(t.Context(), "m", nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 10*time.Second {
			t.Errorf("Notify: got %v after %v, want context.DeadlineExceeded after 10s", err, time.Since(begun))
		}
		begun = time.Now()
		closeClient(t, c)
		if took := time.Since(begun); took != 0 {
			t.Errorf("Close: took %v, want 0", took)
		}
		if _, err := c.Request(t.Context(), "m", nil, nil); !errors.Is(err, client.ErrClosed) {
			t.Errorf("Request: got %v, want ErrClosed", err)
		}
	})
}

func TestParams(t *testing.T) {
	noLeaks(t)
	c, p := connectPipe(t, nil)
	for _, test := range []struct {
		params   string // as given; "" for nil
		progress bool
		want     string // as sent, T for the id; "" for an error
	}{
		{``, false, `<nil>`},
		{`{"a":1}`, false, `{"a":1}`},
		{"{\r\n\t\"a\": 1\n}", false, "{  \t\"a\": 1 }"},
		{``, true, `{"_meta":{"progressToken":T}}`},
		{`{}`, true, `{"_meta":{"progressToken":T}}`},
		{` {"a":1,"b\"":[2]}`, true, `{"_meta":{"progressToken":T},"a":1,"b\"":[2]}`},
		{`{"a":1,"_meta":{"x":{},"progressToken":7}}`, true, `{"_meta":{"progressToken":T,"x":{}},"a":1}`},
		{`{"\u005fmeta":{"x":1}}`, true, `{"_meta":{"progressToken":T,"x":1}}`},
		{`[1]`, false, ``},
		{`{"a":}`, false, ``},
		{`{"a":"` + "\n" + `"}`, false, ``},
		{`{},"id":1`, false, ``},
	} {
		var o *client.CallOptions
		if test.progress {
			o = &client.CallOptions{OnProgress: func(client.Progress) {}}
		}
		var params []byte
		if test.params != "" {
			params = []byte(test.params)
		}
		if test.want == "" {
			if _, err := c.Request(context.Background(), "m", params, o); !errors.Is(err, client.ErrBadParams) {
				t.Errorf("Request(%s): got %v, want ErrBadParams", test.params, err)
			}
			continue
		}
		sent := make(chan string, 1)
		go func() {
			f := p.expect("m")
			got := "<nil>"
			if f.Params != nil {
				got = string(f.Params)
			}
			sent <- strings.Replace(got, `"progressToken":`+string(f.ID), `"progressToken":T`, 1)
			p.write(resultOf(f, `1`))
		}()
		if _, err := c.Request(context.Background(), "m", params, o); err != nil {
			t.Errorf("Request(%s): %v", test.params, err)
		}
		if got := <-sent; got != test.want {
			t.Errorf("Request(%s): sent %s, want %s", test.params, got, test.want)
		}
	}
}
