package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client"
)

const oneField = `{"type":"object","properties":{"n":{"type":"integer","default":3},"s":{"type":"string"}}}`

func TestElicitForm(t *testing.T) {
	noLeaks(t)
	type answer struct {
		action  client.ElicitAction
		content any
	}
	const internal = `"error":{"code":-32603,"message":"Internal error"}`
	for _, test := range []struct {
		answer answer
		keep   bool // NoElicitDefaults
		want   string
	}{
		{answer{client.ElicitAccept, nil}, false, `"result":{"action":"accept","content":{"n":3}}`},
		{answer{client.ElicitAccept, nil}, true, `"result":{"action":"accept","content":{}}`},
		{answer{client.ElicitAccept, []byte(` {"s":"x"} `)}, false, `"result":{"action":"accept","content":{"s":"x","n":3}}`},
		{answer{client.ElicitAccept, map[string]any{"n": 4}}, false, `"result":{"action":"accept","content":{"n":4}}`},
		{answer{client.ElicitDecline, []byte(`{"s":"x"}`)}, false, `"result":{"action":"decline"}`},
		{answer{client.ElicitCancel, nil}, false, `"result":{"action":"cancel"}`},
		{answer{client.ElicitAccept, []byte(`{"n":"x"}`)}, false, internal},
		{answer{client.ElicitAccept, []byte(`{"n":`)}, false, internal},
		{answer{client.ElicitAccept, []byte(`[]`)}, false, internal},
		{answer{client.ElicitAccept, func() {}}, false, internal},
		{answer{"maybe", nil}, false, internal},
	} {
		var got *client.ElicitRequest
		_, p := connectPipe(t, &client.Options{
			NoElicitDefaults: test.keep,
			OnElicit: func(_ context.Context, r *client.ElicitRequest) (*client.ElicitResult, error) {
				got = r
				return &client.ElicitResult{Action: test.answer.action, Content: test.answer.content}, nil
			},
		})
		line := p.ask(`"id":1,"method":"elicitation/create","params":{"mode":"form","message":"why","requestedSchema":` + oneField + `}`)
		if line != `"id":1,`+test.want {
			t.Errorf("OnElicit returns %v: got %s, want %s", test.answer, line, test.want)
		}
		if got.Message != "why" || string(got.Schema) != oneField || got.URL != "" || len(got.Raw) == 0 {
			t.Errorf("request: got %+v", got)
		}
		if result, ok := strings.CutPrefix(test.want, `"result":`); ok {
			validate(t, "2025-11-25", "ElicitResult", result)
		}
	}
}

func TestElicitRefused(t *testing.T) {
	noLeaks(t)
	_, p := connectPipe(t, &client.Options{OnElicit: onElicit, ElicitModes: client.ElicitForm | client.ElicitURL})
	for _, params := range []string{
		`{"message":"m"}`,
		`{"message":"m","requestedSchema":{"type":"object"}}`,
		`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"object"}}}}`,
		`{"mode":"voice","message":"m"}`,
		`{"mode":null,"message":"m"}`,
		`{"mode":"url","message":"m","url":"https://x"}`,
		`{"mode":"url","message":"m","elicitationId":"e"}`,
		`{"mode":"url","message":"m","elicitationId":"e","url":"/path"}`,
		`{"mode":"url","message":"m","elicitationId":"e","url":"javascript:alert(1)"}`,
		`{"mode":"url","message":"m","elicitationId":"e","url":"file:///etc/passwd"}`,
		`{"mode":"url","message":"m","elicitationId":"e","url":"https://[x"}`,
	} {
		if got := p.ask(`"id":1,"method":"elicitation/create","params":` + params); !strings.Contains(got, `"code":-32602,`) {
			t.Errorf("params %s: got %s, want -32602", params, got)
		}
	}
}

// TestElicitURL: accept has no content, and only what was asked for is reported
// complete, once.
func TestElicitURL(t *testing.T) {
	noLeaks(t)
	var completed, others []string
	c, p := connectPipe(t, &client.Options{
		ElicitModes: client.ElicitURL,
		OnElicit: func(_ context.Context, r *client.ElicitRequest) (*client.ElicitResult, error) {
			if r.URL != "https://x/y?z" || r.ElicitationID != "e1" || r.Schema != nil {
				t.Errorf("request: got %+v", r)
			}
			return &client.ElicitResult{Action: client.ElicitAccept, Content: []byte(`{"a":1}`)}, nil
		},
		OnElicitationComplete: func(id string) { completed = append(completed, id) },
		OnNotification:        func(method string, _ []byte) { others = append(others, method) },
	})
	got := p.ask(`"id":1,"method":"elicitation/create","params":{"mode":"url","message":"m","url":"https://x/y?z","elicitationId":"e1"}`)
	if want := `"id":1,"result":{"action":"accept"}`; got != want {
		t.Errorf("answer: got %s, want %s", got, want)
	}
	complete := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"` + id + `"}}`
	}
	go func() {
		f := p.expect("tools/call")
		p.write(complete("e2"), complete("e1"), complete("e1"),
			`{"jsonrpc":"2.0","id":`+string(f.ID)+`,"error":{"code":-32042,"message":"first this","data":{"elicitations":[`+
				`{"mode":"url","elicitationId":"e3","url":"https://x/3","message":"a"},{"mode":"url","elicitationId":"e4","url":"http://x/4","message":"b"}]}}}`)
		f = p.expect("ping")
		p.write(complete("e4"), resultOf(f, `{}`))
	}()
	_, err := c.CallTool(context.Background(), "t", nil, nil)
	var needed *client.URLElicitationError
	var rpc *codec.Error
	if !errors.As(err, &needed) || !errors.As(err, &rpc) || rpc.Code != -32042 || err.Error() != rpc.Error() ||
		len(needed.Elicitations) != 2 || needed.Elicitations[1] != (client.URLElicitation{ElicitationID: "e4", URL: "http://x/4", Message: "b"}) {
		t.Errorf("CallTool: got %v, %+v", err, needed)
	}
	if err := c.Ping(context.Background()); err != nil {
		t.Error(err)
	}
	if got := strings.Join(completed, " "); got != "e1 e4" || others != nil {
		t.Errorf("complete: got %s and others %q, want e1 e4", got, others)
	}
}

// TestNoURLElicitation: what is no valid error -32042 stays an ordinary one.
func TestNoURLElicitation(t *testing.T) {
	noLeaks(t)
	for _, test := range []struct{ revision, data string }{
		{"2025-06-18", `{"elicitations":[{"mode":"url","elicitationId":"e","url":"https://x/","message":"m"}]}`},
		{"2025-11-25", `{"elicitations":[]}`},
		{"2025-11-25", `{"elicitations":[{"mode":"form","elicitationId":"e","url":"https://x/","message":"m"}]}`},
		{"2025-11-25", `{"elicitations":[{"mode":"url","elicitationId":"e","url":"ssh://x/","message":"m"}]}`},
		{"2025-11-25", `1`},
	} {
		c, p, _ := connectPipeAs(t, initResultOf(test.revision, `{}`), nil)
		go func() {
			f := p.expect("m")
			p.write(`{"jsonrpc":"2.0","id":` + string(f.ID) + `,"error":{"code":-32042,"message":"x","data":` + test.data + `}}`)
		}()
		_, err := c.Request(context.Background(), "m", nil, nil)
		var needed *client.URLElicitationError
		if errors.As(err, &needed) || !errors.Is(err, codec.NewError(-32042, "")) {
			t.Errorf("%s in %s: got %v, want a plain error -32042", test.data, test.revision, err)
		}
	}
}
