package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

func TestHandshake(t *testing.T) {
	noLeaks(t)
	ours, theirs := net.Pipe()
	p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
	go func() {
		f := p.expect("initialize")
		want := `{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"n","title":"t","version":"v"}}`
		if string(f.Params) != want {
			t.Errorf("initialize params: got %s, want %s", f.Params, want)
		}
		p.write(resultOf(f, initResult))
		if f := p.expect("notifications/initialized"); f.ID != nil || f.Params != nil {
			t.Errorf("initialized: got %+v, want neither id nor params", f)
		}
	}()
	c, err := client.ConnectPipe(context.Background(), ours, &client.Options{
		Info:         client.Implementation{Name: "n", Title: "t", Version: "v"},
		Protocol:     "2025-06-18",
		Capabilities: []byte(`{"roots":{}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Server()
	got := fmt.Sprint(s.Name, s.Title, s.Version, s.Protocol, string(s.Capabilities), s.Instructions, c.SessionID(), c.PID())
	if want := `fakeFake12025-11-25{"tools":{},"resources":{"subscribe":true}}be kind0`; got != want {
		t.Errorf("Server, SessionID, PID: got %s, want %s", got, want)
	}
	closeClient(t, c)
	if err := c.Err(); !errors.Is(err, client.ErrClosed) {
		t.Errorf("Err: got %v, want ErrClosed", err)
	}
}

func TestHandshakeFails(t *testing.T) {
	for _, test := range []struct {
		name, reply string // %s is the id
		want        func(error) bool
	}{
		{"refused", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no","data":{"supported":["x"]}}}`, func(err error) bool {
			var e *codec.Error
			return errors.As(err, &e) && e.Code == -32602 && string(e.Data) == `{"supported":["x"]}`
		}},
		{"another revision", `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2099-01-01","capabilities":{}}}`, func(err error) bool {
			var e *client.VersionError
			return errors.As(err, &e) && e.Asked == "2025-11-25" && e.Answered == "2099-01-01"
		}},
		{"no revision", `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{}}}`, func(err error) bool { return errors.Is(err, client.ErrMalformed) }},
		{"no object", `{"jsonrpc":"2.0","id":%s,"result":7}`, func(err error) bool { return errors.Is(err, client.ErrMalformed) }},
		{"name in another case", `{"jsonrpc":"2.0","id":%s,"result":{"ProtocolVersion":"2025-11-25","capabilities":{}}}`,
			func(err error) bool { return errors.Is(err, client.ErrMalformed) }},
		{"result and error", `{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":""}}`,
			func(err error) bool { return errors.Is(err, client.ErrMalformed) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			noLeaks(t)
			ours, theirs := net.Pipe()
			p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
			go func() {
				p.write(fmt.Sprintf(test.reply, p.expect("initialize").ID))
				if f, ok := p.read(); ok {
					t.Errorf("after a failed handshake the client sent %+v", f)
				}
			}()
			if _, err := client.ConnectPipe(context.Background(), ours, nil); !test.want(err) {
				t.Errorf("ConnectPipe: got %v", err)
			}
		})
	}
}

// TestHandshakeCancelled: the protocol forbids to cancel initialize.
func TestHandshakeCancelled(t *testing.T) {
	noLeaks(t)
	ours, theirs := net.Pipe()
	p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
	ctx, cancel := context.WithCancel(context.Background())
	seen := make(chan string)
	go func() {
		p.expect("initialize")
		cancel()
		f, _ := p.read()
		seen <- f.Method
	}()
	if _, err := client.ConnectPipe(ctx, ours, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ConnectPipe: got %v, want context.Canceled", err)
	}
	if got := <-seen; got != "" {
		t.Errorf("after the context ended the client sent %q, want nothing", got)
	}
}
