package engine_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// addGoldenFixture registers what the transcripts are about.
func addGoldenFixture(t *testing.T, e *engine.Engine) {
	t.Helper()
	type sum struct {
		Sum int `json:"sum"`
	}
	must(t, engine.AddTool(e, engine.Tool{Name: "add", Title: "Add", Description: "adds two integers", Icons: icons, Annotations: &engine.ToolAnnotations{ReadOnlyHint: engine.Hint(true)}},
		func(_ context.Context, _ *engine.Call, in struct {
			X int `json:"x" jsonschema:"left operand"`
			Y int `json:"y" jsonschema:"right operand"`
		}) (sum, error) {
			return sum{in.X + in.Y}, nil
		}))
	tool := func(name string, h func(ctx context.Context, c *engine.Call) (string, error)) {
		must(t, addTool(e, engine.Tool{Name: name, Description: "for the transcript"}, h))
	}
	tool("count", func(ctx context.Context, c *engine.Call) (string, error) {
		for i := range 3 {
			time.Sleep(time.Second)
			c.ProgressMessage(ctx, float64(i+1), 3, "step")
		}
		return "counted", nil
	})
	tool("wait", func(ctx context.Context, _ *engine.Call) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(2 * time.Second):
			return "waited", nil
		}
	})
	tool("fail", func(context.Context, *engine.Call) (string, error) { return "", errors.New("no luck") })
	tool("ask", func(ctx context.Context, c *engine.Call) (string, error) {
		r, err := c.Sample(ctx, &engine.SampleRequest{Key: "poem", MaxTokens: 50,
			Messages: []engine.SampleMessage{{Role: "user", Content: []engine.Content{engine.Text{Text: "a poem"}}}}})
		if err != nil {
			return "", err
		}
		return "the model says: " + r.Text(), nil
	})
	must(t, e.AddResource(engine.Resource{URI: "file:///a", Name: "a", Title: "A", MIMEType: "text/plain", Annotations: annotations},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) {
			return []engine.ResourceContents{{Text: "contents"}}, nil
		}))
	must(t, e.AddResourceTemplate(engine.ResourceTemplate{URITemplate: "note:{id}", Name: "note"},
		func(context.Context, *engine.Call, string, map[string]string) ([]engine.ResourceContents, error) {
			return nil, engine.ErrResourceNotFound
		}))
	must(t, e.AddPrompt(engine.Prompt{Name: "greet", Title: "Greet", Arguments: []engine.PromptArgument{{Name: "who", Required: true}}},
		func(_ context.Context, _ *engine.Call, args map[string]string) (*engine.PromptResult, error) {
			return &engine.PromptResult{Messages: []engine.PromptMessage{{Role: "user", Content: engine.Text{Text: "Greet " + args["who"]}}}}, nil
		}))
}

// wire is a client's end of a transport, in a bubble.
type wire interface {
	// send sends a frame. What comes for it goes to a stream of the player's.
	send(frame string)
	// leave ends what waits for the request with an id, as the transport does it.
	leave(id string)
	// log tells what there was beside the frames, one line each.
	log() []string
	close()
}

// player plays a script and notes the frames of both sides, in order. Those that
// come on several streams between two steps stand stream by stream.
type player struct {
	t       *testing.T
	rev     engine.Revision
	e       *engine.Engine
	wire    wire
	streams []*lines
	sent    []string
	got     []string
	methods map[string]string
	states  map[string]string // placeholders, by state
	state   string            // the last one
	asked   string            // the id of the server's last request
}

// stream gives a place for the frames of a stream.
func (p *player) stream() *lines {
	l := new(lines)
	p.streams = append(p.streams, l)
	return l
}

// say sends a frame and waits until nothing more happens by itself.
func (p *player) say(frame string) {
	p.t.Helper()
	var m codec.Message
	if err := codec.Decode([]byte(frame), &m); err != nil {
		p.t.Errorf("the client's %s: %v", frame, err)
	}
	if m.Kind == codec.KindRequest {
		p.methods[string(m.ID)] = string(m.Method)
	}
	p.sent = append(p.sent, p.mask(frame))
	p.wire.send(frame)
	p.settle()
}

// ask sends a request of a legacy revision.
func (p *player) ask(id, method, params string) {
	p.t.Helper()
	p.say(request(id, method, params))
}

// answer answers the server's last request.
func (p *player) answer(result string) {
	p.t.Helper()
	if p.asked == "" {
		p.t.Fatal("the server has asked nothing")
	}
	p.say(`{"jsonrpc":"2.0","id":` + p.asked + `,"result":` + result + `}`)
}

// pass lets time pass.
func (p *player) pass(d time.Duration) {
	time.Sleep(d)
	p.settle()
}

// settle takes what has come.
func (p *player) settle() {
	p.t.Helper()
	synctest.Wait()
	for _, stream := range p.streams {
		for _, frame := range stream.take() {
			if err := judge(p.rev, p.methods, []byte(frame)); err != nil {
				p.t.Errorf("%v: %s: %v", p.rev, frame, err)
			}
			if codec.Text([]byte(frame), "method") != "" && codec.Member([]byte(frame), "id") != nil {
				p.asked = string(codec.Member([]byte(frame), "id"))
			}
			if state := codec.Text([]byte(frame), "result", "requestState"); state != "" {
				p.state = state
				p.states[state] = "STATE-" + string(rune('1'+len(p.states)))
			}
			p.got = append(p.got, p.mask(frame))
		}
	}
}

// mask puts placeholders in the place of what differs from run to run.
func (p *player) mask(frame string) string {
	for state, name := range p.states {
		frame = strings.ReplaceAll(frame, state, name)
	}
	return frame
}

// playLegacy is the script of a revision with a handshake.
func playLegacy(p *player) {
	p.ask(`0`, "initialize", `{"protocolVersion":"`+p.rev.String()+`","capabilities":{"sampling":{},"roots":{}},"clientInfo":{"name":"golden","version":"1"}}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i, method := range []string{"tools/list", "resources/list", "resources/templates/list", "prompts/list"} {
		p.ask(string(rune('1'+i)), method, "")
	}
	p.ask(`"call"`, "tools/call", `{"name":"add","arguments":{"x":1,"y":2}}`)
	p.ask(`"count"`, "tools/call", `{"name":"count","_meta":{"progressToken":"p"}}`)
	p.pass(5 * time.Second)
	p.ask(`"cancelled"`, "tools/call", `{"name":"wait"}`)
	p.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"cancelled","reason":"enough"}}`)
	p.pass(5 * time.Second)
	p.ask(`10`, "tools/call", `{"name":"fail"}`)
	p.ask(`11`, "tools/call", `{"name":"add","arguments":{"x":"one"}}`)
	p.ask(`12`, "tools/call", `{"name":"no such tool"}`)
	p.ask(`13`, "resources/read", `{"uri":"note:7"}`)
	p.ask(`14`, "no/such", ``)
	p.ask(`15`, "prompts/get", `{"name":"greet","arguments":{"who":"Ann"}}`)
	p.ask(`16`, "resources/subscribe", `{"uri":"file:///a"}`)
	p.e.ResourceUpdated("file:///a")
	p.e.NotifyListChanged("tools")
	p.settle()
	p.ask(`"ask"`, "tools/call", `{"name":"ask"}`)
	p.answer(`{"role":"assistant","content":{"type":"text","text":"roses are red"},"model":"m","stopReason":"endTurn"}`)
	p.ask(`17`, "ping", ``)
	p.shutdown(request(`"last"`, "tools/call", `{"name":"wait"}`), request(`18`, "tools/list", ``))
}

// shutdown ends the engine while a call runs, and sends a request meanwhile.
func (p *player) shutdown(slow, meanwhile string) {
	p.say(slow)
	over := make(chan error, 1)
	go func() { over <- p.e.Shutdown(p.t.Context()) }()
	p.settle()
	p.say(meanwhile)
	p.pass(5 * time.Second)
	if err := <-over; err != nil {
		p.t.Errorf("Shutdown: %v", err)
	}
}

// playModern is the script of the stateless era.
func playModern(p *player) {
	c := newModern(p.t, p.e).with(`{"sampling":{}}`)
	ask := func(id, method, params string) { p.t.Helper(); p.say(c.frame(id, method, params)) }
	ask(`1`, "server/discover", ``)
	ask(`2`, "tools/list", ``)
	ask(`"call"`, "tools/call", `{"name":"add","arguments":{"x":1,"y":2}}`)
	p.say(c.asking(`"progressToken":"p","io.modelcontextprotocol/logLevel":"info"`).frame(`"count"`, "tools/call", `{"name":"count"}`))
	p.pass(5 * time.Second)
	ask(`"cancelled"`, "tools/call", `{"name":"wait"}`)
	p.wire.leave(`"cancelled"`)
	p.pass(5 * time.Second)
	ask(`3`, "tools/call", `{"name":"fail"}`)
	ask(`4`, "tools/call", `{"name":"no such tool"}`)
	ask(`5`, "resources/read", `{"uri":"note:7"}`)
	ask(`6`, "resources/read", `{"uri":"file:///a"}`)
	ask(`7`, "ping", ``)
	p.say(request(`8`, "tools/list", metaOf(`"2099-01-01"`, "{}", "")))
	p.say(newModern(p.t, p.e).frame(`9`, "tools/call", `{"name":"ask"}`))
	ask(`"round 1"`, "tools/call", `{"name":"ask"}`)
	ask(`"round 2"`, "tools/call", retry(`{"name":"ask"}`, `{"poem":{"role":"assistant","content":{"type":"text","text":"roses are red"},"model":"m"}}`, p.state))
	ask(`"listen"`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}}`)
	p.e.NotifyListChanged("tools")
	p.e.NotifyListChanged("prompts")
	p.settle()
	p.e.ResourceUpdated("file:///a")
	p.settle()
	p.wire.leave(`"listen"`)
	p.settle()
	ask(`"again"`, "subscriptions/listen", `{"notifications":{"promptsListChanged":true}}`)
	p.shutdown(c.frame(`"last"`, "tools/call", `{"name":"wait"}`), c.frame(`10`, "tools/list", ``))
}

// TestGolden plays a script in each revision and over both transports, in
// virtual time, and compares what both sides wrote with the transcript.
func TestGolden(t *testing.T) {
	for rev := engine.Rev20241105; rev <= engine.Rev20260728; rev++ {
		for name, dial := range map[string]func(p *player) wire{"stdio": dialPipe, "http": dialHTTP} {
			t.Run(rev.String()+"-"+name, func(t *testing.T) {
				var got *txtar.Archive
				synctest.Test(t, func(t *testing.T) {
					e, _ := newEngine(t, &engine.Options{Instructions: "be kind"})
					addGoldenFixture(t, e)
					time.Sleep(time.Minute) // past the interval that the registrations began
					p := &player{t: t, rev: rev, e: e, methods: make(map[string]string), states: make(map[string]string)}
					p.wire = dial(p)
					if rev.IsModern() {
						playModern(p)
					} else {
						playLegacy(p)
					}
					p.settle()
					got = p.archive("A whole session in revision " + rev.String() + " over " + name + ": what each side writes, in order.\n")
					p.wire.close()
					time.Sleep(2 * time.Second) // for the actor library's timer of dead letters
				})
				compareGolden(t, filepath.Join("testdata", "golden", rev.String()+"-"+name+".txtar"), got)
			})
		}
	}
}

// archive makes a transcript of what was played.
func (p *player) archive(why string) *txtar.Archive {
	file := func(name string, lines []string) txtar.File {
		return txtar.File{Name: name, Data: []byte(strings.Join(lines, "\n") + "\n")}
	}
	a := &txtar.Archive{Comment: []byte(why), Files: []txtar.File{file("client", p.sent), file("server", p.got)}}
	if log := p.wire.log(); log != nil {
		a.Files = append(a.Files, file("http", log))
	}
	return a
}

func compareGolden(t *testing.T, name string, got *txtar.Archive) {
	t.Helper()
	if *update {
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, txtar.Format(got), 0o644))
		return
	}
	want, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if len(want.Files) != len(got.Files) {
		t.Fatalf("%s: got %d files, want %d", name, len(got.Files), len(want.Files))
	}
	for i, file := range got.Files {
		gotLines, wantLines := strings.Split(string(file.Data), "\n"), strings.Split(string(want.Files[i].Data), "\n")
		for n := range max(len(gotLines), len(wantLines)) {
			g, w := "(none)", "(none)"
			if n < len(gotLines) {
				g = gotLines[n]
			}
			if n < len(wantLines) {
				w = wantLines[n]
			}
			if g != w {
				t.Errorf("%s, %s, line %d:\n got %s\nwant %s", name, file.Name, n+1, g, w)
				break
			}
		}
	}
}
