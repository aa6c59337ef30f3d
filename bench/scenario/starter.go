package scenario

import (
	"fmt"
	"io"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/codec"
)

// How much of what a server offers goes into a starter scenario; the rest is listed as comments.
const (
	maxTools     = 100
	maxResources = 20
	maxPrompts   = 50
)

// WriteStarter writes a scenario that calls the tools of an offer which declare readOnlyHint, reads its resources and
// gets its prompts. What is left out is listed in comments, with the reason. anyTool takes in tools without
// readOnlyHint too.
func WriteStarter(w io.Writer, o *bench.Offer, anyTool bool) error {
	s := &starter{}
	for _, t := range o.Tools {
		switch {
		case !t.ReadOnly && !anyTool:
			s.leave("tool", t.Name, "it does not declare readOnlyHint, so calling it may change data")
		case strings.Contains(t.Name, "${"):
			s.leave("tool", t.Name, "its name looks like a variable, which the name of a tool cannot hold")
		case s.tools == maxTools:
			s.leave("tool", t.Name, fmt.Sprintf("a starter has at most %d tools", maxTools))
		default:
			s.tools++
			s.flow("call "+t.Name, "call: "+quoted(t.Name), t.Arguments)
		}
	}
	s.resources(o.Resources)
	for i, p := range o.Prompts {
		if i >= maxPrompts {
			s.leave("prompt", p.Name, fmt.Sprintf("a starter has at most %d prompts", maxPrompts))
			continue
		}
		s.flow("get "+p.Name, "get: "+quoted(p.Name), p.Arguments)
	}
	if s.flows.Len() == 0 {
		s.flow("list", "list: tools", nil)
	}
	head := fmt.Sprintf(`# Scenario for %s, written by mcp-load init.
# Run it:     mcp-load run THIS-FILE URL      (flags override what load says)
# Its format: mcp-load run --print-schema
# Arguments are the simplest that each schema admits: put in what your users send.
load:
  concurrency: 2
  duration: 10s
flows:
`, orElse(comment(o.Server), "an MCP server"))
	_, err := io.WriteString(w, head+s.flows.String()+s.left.String())
	return err
}

// starter gathers the parts of a starter scenario.
type starter struct {
	flows, left strings.Builder
	names       map[string]bool
	tools       int
}

// flow writes a flow of one step.
func (s *starter) flow(name, step string, args []byte) {
	s.begin(name)
	fmt.Fprintf(&s.flows, "      - %s\n", step)
	if len(args) > 0 && string(args) != "{}" {
		fmt.Fprintf(&s.flows, "        arguments: %s\n", literal(args))
	}
}

// begin writes the head of a flow, whose name is made unique.
func (s *starter) begin(name string) {
	if s.names == nil {
		s.names = map[string]bool{}
	}
	unique := name
	for n := 2; s.names[unique]; n++ {
		unique = fmt.Sprintf("%s (%d)", name, n)
	}
	s.names[unique] = true
	fmt.Fprintf(&s.flows, "  - name: %s\n    weight: 1\n    steps:\n", codec.AppendString(nil, unique))
}

// resources writes one flow that lists and reads resources.
func (s *starter) resources(uris []string) {
	for i, uri := range uris {
		switch {
		case i >= maxResources:
			s.leave("resource", uri, fmt.Sprintf("a starter has at most %d resources", maxResources))
			continue
		case i == 0:
			s.begin("read resources")
			s.flows.WriteString("      - list: resources\n")
		}
		fmt.Fprintf(&s.flows, "      - read: %s\n", literal(codec.AppendString(nil, uri)))
	}
}

// leave notes what is left out.
func (s *starter) leave(kind, name, why string) {
	if s.left.Len() == 0 {
		s.left.WriteString("# Left out:\n")
	}
	fmt.Fprintf(&s.left, "#   %s %s: %s\n", kind, comment(name), why)
}

// quoted writes a name, which is no template.
func quoted(name string) string { return string(codec.AppendString(nil, name)) }

// literal keeps what a server says from being read as a variable.
func literal(value []byte) string { return strings.ReplaceAll(string(value), "${", "$${") }

// comment keeps a text on its line.
func comment(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
