package layers

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// discard is a stream that drops all.
type discard struct{}

func (discard) Send([]byte) error  { return nil }
func (discard) Finish([]byte, int) {}
func (discard) Flush()             {}

const echoSchema = `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"],"additionalProperties":false}`

// progressSteps is how many notifications a call of the tool progress sends.
const progressSteps = 100

// message is the arguments of a tool in its typed form.
type message struct {
	Message string `json:"message"`
}

// echoRaw answers its message, which holds no escapes here.
func echoRaw(_ context.Context, _ *engine.Call, args, out []byte) ([]byte, error) {
	token := codec.Member(args, "message")
	return engine.AppendTextResult(out, token[1:len(token)-1]), nil
}

func progress(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
	for i := range progressSteps {
		c.Progress(ctx, float64(i+1), progressSteps)
	}
	return append(out, `{"content":[]}`...), nil
}

// newEngine makes an engine with the tools and the resource of the benchmarks.
func newEngine(b *testing.B) *engine.Engine {
	b.Helper()
	e := engine.New(engine.Info{Name: "bench", Version: "1"}, &engine.Options{
		Logger: slog.New(slog.DiscardHandler),
		Limits: actors.Limits{SubscriptionMinInterval: time.Hour},
	})
	b.Cleanup(func() { _ = e.Shutdown(context.Background()) })
	for _, err := range []error{
		e.AddRawTool(engine.Tool{Name: "echo", InputSchema: json.RawMessage(echoSchema)}, echoRaw),
		e.AddRawTool(engine.Tool{Name: "progress"}, progress),
		engine.AddTool(e, engine.Tool{Name: "typed"},
			func(_ context.Context, _ *engine.Call, in message) (string, error) { return in.Message, nil }),
		e.AddResource(engine.Resource{URI: "a:", Name: "a"},
			func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil }),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return e
}

// receiver gives a function that hands one frame to a session, or to the
// stateless era where there is none.
func receiver(e *engine.Engine, s *engine.Session, frame string) func() {
	var m codec.Message
	data, ctx := []byte(frame), context.Background()
	return func() {
		fault := codec.Decode(data, &m)
		if s == nil {
			e.ReceiveModern(ctx, nil, &m, nil, discard{})
			return
		}
		s.Receive(ctx, &m, fault, discard{})
	}
}

func connect(b *testing.B, e *engine.Engine, key string) *engine.Session {
	b.Helper()
	s, err := e.OpenSession(key, nil)
	if err != nil {
		b.Fatal(err)
	}
	receiver(e, s, initializeFrame)()
	return s
}

// BenchmarkEngineRequest is one request from its bytes to those of its answer.
func BenchmarkEngineRequest(b *testing.B) {
	e := newEngine(b)
	session := connect(b, e, "a")
	for _, c := range []struct {
		name    string
		session *engine.Session
		frame   string
	}{
		{"ping", session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
		{"raw", session, callFrame},
		{"raw-modern", nil, modernFrame},
		{"typed", session, typedCallFrame},
		{"tools-list", session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`},
		{"unknown-tool", session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"none"}}`},
		{"100-progress", session, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","_meta":{"progressToken":7}}}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			handle := receiver(e, c.session, c.frame)
			b.ReportAllocs()
			for b.Loop() {
				handle()
			}
		})
	}
}

// BenchmarkEngineSession is a handshake and the end of the session.
func BenchmarkEngineSession(b *testing.B) {
	e := newEngine(b)
	b.ReportAllocs()
	for b.Loop() {
		s := connect(b, e, "a")
		s.Close()
		<-s.Done()
	}
}

// BenchmarkEngineUpdate tells 1,000 sessions that a resource was updated.
func BenchmarkEngineUpdate(b *testing.B) {
	e := newEngine(b)
	for i := range 1_000 {
		s := connect(b, e, strconv.Itoa(i))
		receiver(e, s, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:"}}`)()
	}
	b.ReportAllocs()
	for b.Loop() {
		e.ResourceUpdated("a:")
	}
}
