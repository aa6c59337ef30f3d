package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

const (
	maxPages = 1000 // of tools/list, against a server whose cursors never end
	maxTools = 10_000
)

// listedTool is what a run needs of a tool that the server offers.
type listedTool struct {
	name     string
	readOnly bool
	schema   []byte // inputSchema
}

// tool is one that the run calls.
type tool struct {
	name    string
	weight  int
	rows    []toolRow
	queries []*query // the calls, once the era is known: one for each row
}

// toolRow is one set of arguments.
type toolRow struct {
	params  []byte      // of tools/call, but for what the era adds
	mirrors wire.Header // what x-mcp-header members of the tool's schema ask for
}

// prepare makes the calls.
func (t *tool) prepare(s session) error {
	t.queries = make([]*query, len(t.rows))
	for i, row := range t.rows {
		q, err := s.query(codec.MethodToolsCall, t.name, row.params, row.mirrors)
		if err != nil {
			return err
		}
		t.queries[i] = q
	}
	t.rows = nil
	return nil
}

// next gives the call whose turn it is. Only where there are several rows of arguments do the workers share a counter.
func (t *tool) next(turn *atomic.Uint64) *query {
	if len(t.queries) == 1 {
		return t.queries[0]
	}
	return t.queries[(turn.Add(1)-1)%uint64(len(t.queries))]
}

// listTools reads all pages of tools/list.
func listTools(s session, c *caller, timeout time.Duration) ([]listedTool, error) {
	var tools []listedTool
	err := listPages(s, c, codec.MethodToolsList, "tools", timeout, func(v []byte) bool {
		tools = append(tools, listedTool{
			name:     codec.Text(v, "name"),
			readOnly: codec.Bool(v, "annotations", "readOnlyHint"),
			schema:   bytes.Clone(codec.Member(v, "inputSchema")),
		})
		return len(tools) < maxTools
	})
	return tools, err
}

// chooseTools decides what the run calls. Without a choice of the user it is the first tool that declares readOnlyHint: a
// load tool that calls whatever a server lists can delete somebody's records.
func chooseTools(c *Config, listed []listedTool) ([]tool, error) {
	if len(c.Tools) == 0 {
		for _, t := range listed {
			if t.readOnly || c.AnyTool {
				return []tool{newTool(t.name, 1, c.arguments(), t.schema)}, nil
			}
		}
		if len(listed) == 0 {
			return nil, usage("the server lists no tools, so there is nothing to call")
		}
		return nil, usage("no tool declares readOnlyHint, and calling others can change data: name one with --tool, or give --any-tool to call the first (the server lists: %s)", names(listed))
	}
	var out []tool
	for _, choice := range c.Tools {
		i := slices.IndexFunc(listed, func(t listedTool) bool { return t.name == choice.Name })
		switch {
		case i >= 0:
			out = append(out, newTool(choice.Name, choice.Weight, c.arguments(), listed[i].schema))
		case c.arguments() != nil:
			c.OnWarning(fmt.Sprintf("the server does not list a tool %q; it is called all the same, because its arguments were given", choice.Name))
			out = append(out, newTool(choice.Name, choice.Weight, c.arguments(), nil))
		default:
			return nil, usage("the server does not list a tool %q: choose one of %s, or give --args to call it all the same", choice.Name, names(listed))
		}
	}
	return out, nil
}

// newTool prepares the params of every call. Without rows of arguments they are made from the schema.
func newTool(name string, weight int, rows []json.RawMessage, schema []byte) tool {
	t := tool{name: name, weight: weight}
	mirrors, _ := wire.Mirrors(schema) // tools with bad ones are not listed where it matters
	if rows == nil {
		rows = []json.RawMessage{argumentsFor(schema)}
	}
	for _, args := range rows {
		var compact bytes.Buffer
		if err := json.Compact(&compact, args); err != nil { // a line break would end a stdio frame
			compact.Reset()
			compact.WriteString("{}")
		}
		t.rows = append(t.rows, toolRow{callParams(name, compact.Bytes()), mirrorHeaders(mirrors, compact.Bytes())})
	}
	return t
}

// callParams are the params of tools/call.
func callParams(name string, args []byte) []byte {
	p := append(make([]byte, 0, len(name)+len(args)+32), `{"name":`...)
	p = codec.AppendString(p, name)
	p = append(p, `,"arguments":`...)
	p = append(p, args...)
	return append(p, '}')
}

// mirrorHeaders repeats arguments in headers, as the tool's schema asks.
func mirrorHeaders(mirrors []wire.Mirror, args []byte) wire.Header {
	h := wire.Header{}
	for i := range mirrors {
		if value, ok := mirrors[i].Value(args); ok {
			h[mirrors[i].Header] = []string{value}
		}
	}
	return h
}

// callable leaves out the tools that a client of the stateless era must not call over HTTP.
func callable(listed []listedTool, warn func(string)) []listedTool {
	kept := listed[:0]
	for _, t := range listed {
		if _, err := wire.Mirrors(t.schema); err != nil {
			warn(fmt.Sprintf("the tool %q is left out: %v", clip([]byte(t.name)), err))
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// names lists at most 20 tools for a message.
func names(listed []listedTool) string {
	var out []string
	for i, t := range listed {
		if i == 20 {
			out = append(out, fmt.Sprintf("and %d more", len(listed)-i))
			break
		}
		out = append(out, clip([]byte(t.name)))
	}
	return strings.Join(out, ", ")
}

// picker chooses among tools, or flows, by weight.
type picker struct {
	upTo  []int // running sum of the weights
	total int
}

// add adds a choice.
func (p *picker) add(weight int) {
	p.total += weight
	p.upTo = append(p.upTo, p.total)
}

// pick gives the index of a choice; intn gives a random number below its argument.
func (p *picker) pick(intn func(int) int) int {
	if len(p.upTo) == 1 {
		return 0
	}
	n := intn(p.total)
	for i, sum := range p.upTo {
		if n < sum {
			return i
		}
	}
	return len(p.upTo) - 1
}
