package transport_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/transport"
)

// fuzzLimit is the longest message that the fuzz tests' transports take.
const fuzzLimit = 2 << 10

// checkFrame fails the test unless a frame is a message of JSON-RPC, or a batch
// of them.
func checkFrame(t *testing.T, frame []byte) {
	t.Helper()
	check := func(frame []byte) {
		var m codec.Message
		if err := codec.Decode(frame, &m); err != nil {
			t.Errorf("the server sent %q: %v", frame, err)
		}
	}
	if !codec.IsBatch(frame) {
		check(frame)
		return
	}
	if err := codec.SplitBatch(frame, 1000, check); err != nil {
		t.Errorf("the server sent the batch %q: %v", frame, err)
	}
}

// fuzzFixture is a fixture without the tools that take as long, or answer as
// much, as they are told.
func fuzzFixture(f *testing.F) *fixture {
	f.Helper()
	fix := newFixture(f, nil)
	for _, name := range []string{"gate", "wait", "big", "progress"} {
		fix.RemoveTool(name)
	}
	fix.add(f, "progress", func(ctx context.Context, c *engine.Call, _, out []byte) ([]byte, error) {
		c.Progress(ctx, 1, 2)
		c.Progress(ctx, 2, 2)
		return quick(ctx, c, nil, out)
	})
	return fix
}

// FuzzLines feeds arbitrary bytes, split into reads of size bytes, and then a
// ping. Every line of the output is a message, and the ping is answered.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"", handshake, handshake + call("1", "echo", text("a")) + "\n", "\n\r\n\xef\xbb\xbf" + ping("1") + "\n",
		initializeAs("2025-03-26") + "\n[" + ping("1") + "," + call("2", "echo", text("b")) + "]\n[]\n[1]\n",
		handshake + callWithToken("1", "progress", `"n":2,`+text("a"), "1") + "\n" + cancelOf("1") + "\n",
		padded("1", fuzzLimit+1) + "\n", "{\"jsonrpc\":\"2.0\",\"id\":\"\\u000a\",\"method\":\"ping\"}\n", ping("\"a\x00\"") + "\n",
	} {
		f.Add([]byte(seed), uint16(7))
	}
	fix := fuzzFixture(f)
	f.Fuzz(func(t *testing.T, input []byte, size uint16) {
		out := newSink()
		in := &pieces{data: slices.Concat(input, []byte("\n"+ping(`"the last"`)+"\n")), size: int(size) + 1}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := transport.ServeStdio(ctx, fix.Engine, in, out, &transport.LineOptions{MaxMessageBytes: fuzzLimit}); err != nil {
			t.Fatalf("ServeStdio: got %v, want nil", err)
		}
		answered := false
		for line := range bytes.Lines(out.data) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			checkFrame(t, line)
			answered = answered || brief(line) == `"the last" ok`
		}
		if !answered {
			t.Errorf("the ping at the end: got %q, want it among the answers", out.data)
		}
	})
}

// pieces is a reader that gives at most size bytes at once.
type pieces struct {
	data []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data[:min(len(p.data), p.size)])
	p.data = p.data[n:]
	return n, nil
}

// FuzzHTTPPost posts arbitrary bytes under arbitrary header values. There is
// always a status, and every body is a message or a stream of messages.
func FuzzHTTPPost(f *testing.F) {
	fix := fuzzFixture(f)
	h := transport.NewHTTPHandler(fix.Engine, &transport.HTTPOptions{MaxMessageBytes: fuzzLimit})
	post := func(body []byte, kind, accept, session, version string) *httptest.ResponseRecorder {
		// A subscription of the stateless era goes on until its client leaves.
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", bytes.NewReader(body))
		for name, value := range map[string]string{
			"Content-Type": kind, "Accept": accept, "Mcp-Session-Id": session, "Mcp-Protocol-Version": version,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const kind, both = "application/json", "application/json, text/event-stream"
	for _, c := range []struct{ body, kind, accept, version string }{
		{ping("1"), kind, both, ""}, {call("1", "echo", text("a")), kind, both, "2025-11-25"},
		{callWithToken("1", "progress", `"n":2,`+text("a"), `"t"`), kind, "text/event-stream", "2025-06-18"},
		{initialize, kind, "*/*", ""}, {initialized, kind, "", ""}, {"[" + ping("1") + "," + initialized + "]", kind, both, "2025-03-26"},
		{"{", "text/plain", "application/json;q=0", "nonsense"}, {padded("1", fuzzLimit+1), kind, "text/*;q=0, */*", "2026-07-28"},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, kind, both, "2026-07-28"},
	} {
		for choice := range uint8(4) {
			f.Add([]byte(c.body), c.kind, c.accept, c.version, choice)
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, kind, accept, version string, choice uint8) {
		key := []string{"", "unknown", "2025-03-26", "2025-11-25"}[choice%4]
		if strings.HasPrefix(key, "2") {
			key = post([]byte(initializeAs(key)), "application/json", "", "", "").Header().Get("Mcp-Session-Id")
			defer fix.Session(key).Close()
		}
		got := post(body, kind, accept, key, version)
		if opened := got.Header().Get("Mcp-Session-Id"); opened != "" {
			defer fix.Session(opened).Close()
		}
		if got.Code < 200 || got.Code > 599 {
			t.Errorf("status: got %d, want one from 200 to 599", got.Code)
		}
		checkBody(t, got)
	})
}
