package client_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/mcpengine/mcpengine/transport/client"
)

// TestBatchAnswers: the requests of a batch are answered in one array, once the
// slowest of them is done.
func TestBatchAnswers(t *testing.T) {
	noLeaks(t)
	hold, entered := make(chan struct{}), make(chan struct{}, 1)
	_, p, _ := connectPipeAs(t, initResultOf("2025-03-26", `{}`), &client.Options{
		OnRequest: func(ctx context.Context, method string, _ []byte) ([]byte, error) {
			switch method {
			case "slow":
				entered <- struct{}{}
				<-hold
			case "cancelled":
				entered <- struct{}{}
				<-ctx.Done()
			}
			return []byte(`"` + method + `"`), nil
		},
	})
	raw := func(write, want string) {
		t.Helper()
		p.write(write)
		got, err := p.r.ReadString('\n')
		if got != want+"\n" {
			t.Errorf("answer to %s: got %s, %v, want %s", write, got, err, want)
		}
	}
	ping := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"ping"}` }
	pong := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

	raw(`[`+ping(`1`)+`]`, `[`+pong(`1`)+`]`)
	raw(`[`+ping(`1`)+`,{"jsonrpc":"2.0","method":"n"},`+ping(`"x"`)+`]`, `[`+pong(`1`)+`,`+pong(`"x"`)+`]`)
	raw(`[`+ping(`1`)+`,{"jsonrpc":"2.0","id":2,"method":"m","params":[]}]`,
		`[`+pong(`1`)+`,{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid params: params must be an object"}}]`)
	// Two with one id: both are answered.
	raw(`[`+ping(`1`)+`,`+ping(`1`)+`]`, `[`+pong(`1`)+`,`+pong(`1`)+`]`)
	// Nothing to answer: the next line is that of the ping.
	p.write(`[{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":99,"result":{}}]`)
	raw(ping(`5`), pong(`5`))
	raw(`[]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request: empty batch"}}`)

	p.write(`[` + ping(`1`) + `,{"jsonrpc":"2.0","id":2,"method":"slow"}]`)
	<-entered
	raw(ping(`3`), pong(`3`)) // not held up by the batch
	close(hold)
	if got, want := p.line(), `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":"slow"}]`; got != want+"\n" {
		t.Errorf("answer to a slow batch: got %s, want %s", got, want)
	}

	p.write(`[` + ping(`1`) + `,{"jsonrpc":"2.0","id":2,"method":"cancelled"}]`)
	<-entered
	raw(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`, `[`+pong(`1`)+`]`)
}

// TestBatchHTTP: over HTTP the answers to a batch are one POST.
func TestBatchHTTP(t *testing.T) {
	posted := make(chan string, 2)
	e := &endpoint{initResult: initResultOf("2025-03-26", `{}`), post: func(w http.ResponseWriter, _ *http.Request, f frame) {
		switch f.Method {
		case "m":
			writeSSE(w, event(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":"2","method":"ping"}]`),
				event(`[{"jsonrpc":"2.0","method":"n"},`+resultOf(f, `1`)+`]`))
		case "batch":
			posted <- string(f.Params)
		}
	}}
	c := connectHTTP(t, e, &client.Options{NoStream: true})
	if got, err := c.Request(context.Background(), "m", nil, nil); err != nil || string(got) != "1" {
		t.Errorf("Request: got %s, %v", got, err)
	}
	if got, want := <-posted, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":"2","result":{}}]`; got != want {
		t.Errorf("POST: got %s, want %s", got, want)
	}
}
