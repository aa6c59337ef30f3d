package bench

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/transport/client/wire"
)

// instanceVariable names the number of the flow's instance.
const instanceVariable = "instance"

// script is the flows of a run, ready to be run.
type script struct {
	flows  []scriptFlow
	data   []dataTurn
	picker *picker
}

// dataTurn is rows and whose turn it is.
type dataTurn struct {
	DataSet
	turn atomic.Uint64
}

// row gives the row of the next instance.
func (d *dataTurn) row(rng *rand.Rand) []json.RawMessage {
	if d.Random {
		return d.Rows[rng.IntN(len(d.Rows))]
	}
	return d.Rows[(d.turn.Add(1)-1)%uint64(len(d.Rows))]
}

// scriptFlow is a flow ready to be run. Its variables have slots: number 0 is the instance, then come the columns of
// the data sets that it uses, then what its steps extract.
type scriptFlow struct {
	name   string
	weight int
	steps  []scriptStep
	slots  map[string]int
	uses   []dataUse
	wants  []string // notifications
	series int      // of the whole flow's time

	begun, completed, failed atomic.Int64 // instances due in the measured window

	mu       sync.Mutex
	firstWhy string // guarded by mu: of the first failure
}

// dataUse is a data set of a flow: column c of its row goes into slot first+c.
type dataUse struct{ set, first int }

// scriptStep is a step ready to be run.
type scriptStep struct {
	*Step
	where    string
	series   int
	params   template
	named    template // what Mcp-Name repeats: the tool, the prompt or the URI
	args     template // of tools/call, for the headers that mirror them
	mirrors  []wire.Mirror
	query    *query // the request, where it is always the same
	contains []template
	uri      template // of Await
	extract  []extraction
}

type extraction struct {
	slot int
	name string
	path []string
}

// newScript prepares flows; the series of their calls, and then those that stand aside, are added to list.
func newScript(c *Config, list *seriesList) (*script, error) {
	s := &script{data: make([]dataTurn, len(c.Data)), picker: &picker{}}
	names := map[string]bool{}
	for i, d := range c.Data {
		s.data[i].DataSet = d
		if len(d.Rows) == 0 {
			return nil, usage("the data set %q has no rows", d.Name)
		}
	}
	s.flows = make([]scriptFlow, len(c.Flows))
	for i := range c.Flows {
		f := &c.Flows[i]
		if f.Name == "" || names[f.Name] || f.Weight < 1 {
			return nil, usage("flow %q needs a name of its own and a weight of at least 1", f.Name)
		}
		names[f.Name] = true
		if err := s.flows[i].compile(f, c, list); err != nil {
			return nil, err
		}
		s.picker.add(f.Weight)
	}
	for i := range s.flows {
		f := &s.flows[i]
		for k := range f.steps {
			if w := f.steps[k].Await; w != nil {
				f.steps[k].series = list.aside(series{method: w.Method})
			}
		}
		f.series = list.aside(series{method: flowSeries, tool: f.name})
	}
	return s, nil
}

// prepareFlows prepares the flows of a run with its first session.
func (r *run) prepareFlows(sess session, c *caller) (err error) {
	var list seriesList
	if r.script, err = newScript(&r.cfg, &list); err != nil {
		return err
	}
	r.series, r.calls, r.picker = list.all, list.calls, r.script.picker
	var listed []listedTool
	if slices.ContainsFunc(r.series, func(s series) bool { return s.method == codec.MethodToolsCall }) {
		if listed, err = r.listTools(sess, c); err != nil {
			return err
		}
	}
	for i := range r.script.flows {
		f := &r.script.flows[i]
		for k := range f.steps {
			if err := f.steps[k].prepare(&r.cfg, sess, listed); err != nil {
				return err
			}
		}
	}
	return nil
}

// sessionMethods are what the stateless era does not have.
var sessionMethods = []string{codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe, codec.MethodPing}

// prepare holds a step against what the server offers, and makes its request where that is always the same.
func (s *scriptStep) prepare(c *Config, sess session, listed []listedTool) (err error) {
	if sess.notices() == nil && (s.Await != nil || slices.Contains(sessionMethods, s.Method)) {
		return usage("%s: protocol %s has neither ping nor subscriptions nor notifications of a session: "+
			"leave the step out, or choose another --protocol",
			s.where, Stateless)
	}
	if s.Method == codec.MethodToolsCall {
		i := slices.IndexFunc(listed, func(t listedTool) bool { return t.name == s.Tool })
		switch {
		case i >= 0:
			s.mirrors, _ = wire.Mirrors(listed[i].schema) // tools with bad ones are not listed where it matters
		case !c.AnyTool:
			return usage("%s: the server does not list a tool %q: choose one of %s, or give --any-tool to call it all the same",
				s.where, s.Tool, names(listed))
		}
	}
	_, fixed := s.params.fixed()
	if s.Method == "" || !fixed {
		return nil
	}
	s.query, err = s.request(sess, &agent{})
	return err
}

// compile prepares one flow.
func (f *scriptFlow) compile(from *Flow, c *Config, list *seriesList) error {
	f.name, f.weight, f.slots = from.Name, from.Weight, map[string]int{instanceVariable: 0}
	if !slices.ContainsFunc(from.Steps, func(s Step) bool { return s.talks() }) {
		return usage("flow %q has no step that calls or waits", f.name)
	}
	f.steps = make([]scriptStep, len(from.Steps))
	for i := range from.Steps {
		s := &f.steps[i]
		s.Step, s.where = &from.Steps[i], from.Steps[i].Where
		if s.where == "" {
			s.where = fmt.Sprintf("flow %q, step %d", f.name, i+1)
		}
		if err := s.compile(f, c); err != nil {
			return usage("%s: %v", s.where, err)
		}
		if s.Method != "" {
			s.series = list.call(series{s.Method, s.Tool})
		}
	}
	return nil
}

// variable finds the slot of a variable. A data set whose column is named gets slots for all its columns.
func (f *scriptFlow) variable(c *Config) scope {
	return func(name string) (int, error) {
		if slot, ok := f.slots[name]; ok {
			return slot, nil
		}
		set, column, _ := strings.Cut(name, ".")
		i := slices.IndexFunc(c.Data, func(d DataSet) bool { return d.Name == set })
		if i < 0 || !slices.Contains(c.Data[i].Columns, column) {
			return 0, fmt.Errorf("there is no variable %q here", name)
		}
		f.uses = append(f.uses, dataUse{i, len(f.slots)})
		for _, column := range c.Data[i].Columns {
			f.slots[set+"."+column] = len(f.slots)
		}
		return f.slots[name], nil
	}
}

// compile prepares one step.
func (s *scriptStep) compile(f *scriptFlow, c *Config) error {
	names := f.variable(c)
	if s.Await != nil {
		if s.Method != "" || s.Await.Method == "" {
			return fmt.Errorf("a step either sends a request or waits for a notification, which it names")
		}
		if !slices.Contains(f.wants, s.Await.Method) {
			f.wants = append(f.wants, s.Await.Method)
		}
		return s.uri.add(s.Await.URI, asText, names)
	}
	switch {
	case s.CancelAfter < 0, s.CancelAfter >= c.Timeout:
		return fmt.Errorf("a call is cancelled after a time between 0 and the timeout, which is %s", c.Timeout)
	case s.Think.Mean < 0:
		return fmt.Errorf("a think time cannot be negative")
	}
	if s.Method != "" && !slices.Contains(StepMethods, s.Method) {
		return fmt.Errorf("method %q is not one that a step can send: choose one of %s",
			s.Method, strings.Join(StepMethods, ", "))
	}
	if err := s.compileParams(names); err != nil {
		return err
	}
	for _, text := range s.Expect.Contains {
		var t template
		if err := t.add(text, asText, names); err != nil {
			return err
		}
		s.contains = append(s.contains, t)
	}
	for _, e := range s.Extract {
		path, err := ParsePath(e.Path)
		if err != nil {
			return err
		}
		slot, known := f.slots[e.Name]
		if e.Name == "" || known && slot == 0 || strings.Contains(e.Name, ".") {
			return fmt.Errorf("a variable cannot be called %q", e.Name)
		}
		if !known {
			slot = len(f.slots)
			f.slots[e.Name] = slot
		}
		s.extract = append(s.extract, extraction{slot, e.Name, path})
	}
	return nil
}

// compileParams prepares the params of the request.
func (s *scriptStep) compileParams(names scope) error {
	args := s.Arguments
	if args == nil {
		args = json.RawMessage("{}")
	}
	if !codec.Valid(args) || firstByte(args) != '{' {
		return fmt.Errorf("the arguments are not a JSON object: %s", clip(args))
	}
	p := &s.params
	switch s.Method {
	case codec.MethodToolsCall, codec.MethodPromptsGet:
		name := s.Tool + s.Prompt
		s.named.text(name)
		p.text(string(codec.AppendString([]byte(`{"name":`), name)) + `,"arguments":`)
		if err := s.args.addJSON(args, names); err != nil {
			return err
		}
		p.parts = append(p.parts, s.args.parts...)
		p.text("}")
		return nil
	case codec.MethodResourcesRead, codec.MethodResourcesSubscribe, codec.MethodResourcesUnsubscribe:
		if err := s.named.add(s.URI, asText, names); err != nil {
			return err
		}
		return p.member("uri", s.URI, names)
	}
	if s.Cursor != "" {
		return p.member("cursor", s.Cursor, names)
	}
	p.text("{}")
	return nil
}

// member makes params of one member, a string.
func (t *template) member(name, value string, names scope) error {
	t.text(`{"` + name + `":"`)
	if err := t.add(value, asInside, names); err != nil {
		return err
	}
	t.text(`"}`)
	return nil
}

// seriesList gives every kind of call a number. What stands aside, which is no call, comes after the calls.
type seriesList struct {
	all   []series
	calls int
}

// flowSeries is the method of the series that hold the time of whole flows.
const flowSeries = "flow"

func (l *seriesList) call(s series) int {
	if i := slices.Index(l.all[:l.calls], s); i >= 0 {
		return i
	}
	l.all = append(l.all, s)
	l.calls++
	return l.calls - 1
}

func (l *seriesList) aside(s series) int {
	if i := slices.Index(l.all[l.calls:], s); i >= 0 {
		return l.calls + i
	}
	l.all = append(l.all, s)
	return len(l.all) - 1
}
