package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/codec"
)

// maxOffered bounds the resources and the prompts that are looked at.
const maxOffered = 1000

// Offer is what a server has, as far as a starter scenario needs it.
type Offer struct {
	Server    string // name and version that it gives
	Protocol  string // as negotiated
	Tools     []OfferedTool
	Resources []string // URIs
	Prompts   []OfferedPrompt
}

// OfferedTool is a tool, and arguments that its schema admits.
type OfferedTool struct {
	Name      string
	ReadOnly  bool // it declares readOnlyHint
	Arguments json.RawMessage
}

// OfferedPrompt is a prompt, and its required arguments with values of one letter.
type OfferedPrompt struct {
	Name      string
	Arguments json.RawMessage
}

// Discover opens one session on the target of c, lists what is there, and ends the session. It calls nothing. A list
// that the server refuses is empty. Errors are as those of Run.
func Discover(ctx context.Context, c Config) (*Offer, error) {
	c.Sessions, c.Concurrency, c.Streams = 1, 1, false
	cfg, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.peer == nil {
		if cfg.peer, err = newPeer(&cfg); err != nil {
			return nil, err
		}
	}
	r := &run{cfg: cfg, set: newSessionSet(&cfg)}
	r.stop, r.cancel = context.WithCancel(ctx)
	defer r.cancel()
	stopAborting := r.abortAfter(ctx)
	defer sync.OnceFunc(func() {
		stopAborting() // the session is ended in good order, also after an interrupt
		r.finish()
	})()
	caller := r.set.newCaller()
	defer r.set.release(caller)
	if err := r.set.openOne(r.set.places[0], caller); err != nil {
		return nil, r.connectError(err)
	}
	_, sess := r.set.pick(0, true)
	return r.offer(sess, caller)
}

// offer lists what a session can see.
func (r *run) offer(sess session, c *caller) (*Offer, error) {
	info := sess.info()
	o := &Offer{Server: clip([]byte(info.server)), Protocol: info.protocol}
	listed, err := listTools(sess, c, r.cfg.Timeout)
	if refused(err) {
		listed, err = nil, nil
	}
	if err != nil {
		return nil, r.connectError(err)
	}
	if _, ok := sess.(*statelessSession); ok {
		listed = callable(listed, r.cfg.OnWarning)
	}
	for _, t := range listed {
		o.Tools = append(o.Tools, OfferedTool{t.name, t.readOnly, argumentsFor(t.schema)})
	}
	for _, list := range []struct {
		method, member string
		take           func(v []byte) bool
	}{
		{codec.MethodResourcesList, "resources", func(v []byte) bool {
			o.Resources = append(o.Resources, codec.Text(v, "uri"))
			return len(o.Resources) < maxOffered
		}},
		{codec.MethodPromptsList, "prompts", func(v []byte) bool {
			o.Prompts = append(o.Prompts, OfferedPrompt{codec.Text(v, "name"), promptArguments(v)})
			return len(o.Prompts) < maxOffered
		}},
	} {
		err := listPages(sess, c, list.method, list.member, r.cfg.Timeout, list.take)
		if err != nil && !refused(err) {
			return nil, r.connectError(err)
		}
	}
	return o, nil
}

// promptArguments gives every required argument of a prompt a value.
func promptArguments(prompt []byte) json.RawMessage {
	args := []byte("{")
	codec.EachElement(codec.Member(prompt, "arguments"), func(v []byte) bool {
		if codec.Bool(v, "required") {
			if len(args) > 1 {
				args = append(args, ',')
			}
			args = append(codec.AppendString(args, codec.Text(v, "name")), `:"x"`...)
		}
		return true
	})
	return append(args, '}')
}

// refusal is a JSON-RPC error in answer to the request for a list.
type refusal struct{ text string }

func (e *refusal) Error() string { return e.text }

func refused(err error) bool {
	_, ok := err.(*refusal)
	return ok
}

// listPages reads all pages of a list, until take returns false.
func listPages(s session, c *caller, method, member string, timeout time.Duration, take func(v []byte) bool) error {
	var cursor []byte
	for range maxPages {
		params := []byte("{}")
		if cursor != nil {
			params = append(append([]byte(`{"cursor":`), cursor...), '}')
		}
		q, err := s.query(method, "", params, nil)
		if err != nil {
			return err
		}
		if err := s.request(c, q, time.Now().Add(timeout)); err != nil {
			if o, _ := verdictOf(err, &c.reply, c.id); o == outcomeRPCError {
				return &refusal{method + " failed: " + describe(err, &c.reply)}
			}
			return fmt.Errorf("%s failed: %w", method, err)
		}
		m := &c.reply.Message
		if m.Kind == codec.KindError {
			return &refusal{method + " failed: " + describe(nil, &c.reply)}
		}
		more := codec.EachElement(codec.Member(m.Result, member), take)
		cursor = bytes.Clone(codec.Member(m.Result, "nextCursor"))
		if !more || len(cursor) < 2 || cursor[0] != '"' {
			return nil
		}
	}
	return nil
}
