package scenario

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	_ "embed" // the schema

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/mcpengine/mcpengine/bench"
)

// Schema is the JSON Schema (2020-12) of the format, for editors.
//
//go:embed schema.json
var Schema []byte

// maxFile bounds a scenario.
const maxFile = 4 << 20

// Scenario is a file that has been read.
type Scenario struct {
	Name       string // of the file
	Load       Load
	Thresholds []string
	Flows      []bench.Flow
	Data       []bench.DataSet
}

// Load is the settings of a scenario that flags of the same names override. What is zero was not given.
type Load struct {
	Rate        float64
	Stages      []bench.Stage
	Users       int
	ThinkTime   bench.Think
	Concurrency int
	Sessions    int
	Duration    time.Duration
	Requests    int64
	Warmup      time.Duration
	Timeout     time.Duration
	Arrivals    bench.Arrivals
	MaxInFlight int
	Overflow    bench.Overflow
	Protocol    string
	Streams     bool
	Seed        uint64
}

// Read reads a scenario and the data files that it names, which are looked for beside it. The error is an *Error where
// the scenario itself is wrong.
func Read(path string) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, &Error{path, 1, 1, "the file is larger than 4 MiB; put rows of data into files of their own"}
	}
	return Parse(path, text, func(name string) (io.ReadCloser, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		return os.Open(name)
	})
}

// Parse reads the text of a scenario. name is what errors call it; open opens the data files that it names.
func Parse(name string, text []byte, open func(name string) (io.ReadCloser, error)) (*Scenario, error) {
	r := &reader{file: name, anchors: map[string]ast.Node{}}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		var ye yaml.Error
		if errors.As(err, &ye) {
			return nil, r.wrongAt(ye.GetToken(), "%s", ye.GetMessage())
		}
		return nil, &Error{name, 1, 1, err.Error()}
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			return nil, r.wrong(doc.Body, "a scenario is one document: leave out what follows ---")
		}
		root = doc.Body
	}
	if root == nil {
		return nil, &Error{name, 1, 1, "the file is empty: a scenario has at least flows"}
	}
	r.gather(root)
	s := &Scenario{Name: filepath.Base(name)}
	return s, r.scenario(root, s, open)
}

// scenario reads the whole document. Data is read before flows, which name its columns.
func (r *reader) scenario(root ast.Node, s *Scenario, open func(string) (io.ReadCloser, error)) error {
	var data, flows ast.Node
	err := r.object(root, "a scenario", fields{
		"load":       func(n ast.Node) error { return r.load(n, &s.Load) },
		"thresholds": func(n ast.Node) error { return r.thresholds(n, s) },
		"data":       func(n ast.Node) error { data = n; return nil },
		"flows":      func(n ast.Node) error { flows = n; return nil },
	})
	if err == nil && data != nil {
		err = r.data(data, s, open)
	}
	if err == nil && flows == nil {
		err = r.wrong(root, "the scenario has no flows")
	}
	if err == nil {
		err = r.flows(flows, s)
	}
	return err
}

// load reads the settings.
func (r *reader) load(n ast.Node, l *Load) error {
	return r.object(n, "load", fields{
		"rate":          parsed(r, &l.Rate, "rate", bench.ParseRate),
		"stages":        func(n ast.Node) error { return r.stages(n, l) },
		"users":         count(r, &l.Users, "users"),
		"think-time":    parsed(r, &l.ThinkTime, "think-time", bench.ParseThink),
		"concurrency":   count(r, &l.Concurrency, "concurrency"),
		"sessions":      count(r, &l.Sessions, "sessions"),
		"duration":      duration(r, &l.Duration, "duration"),
		"requests":      count(r, &l.Requests, "requests"),
		"warmup":        duration(r, &l.Warmup, "warmup"),
		"timeout":       duration(r, &l.Timeout, "timeout"),
		"arrivals":      oneOf(r, &l.Arrivals, "arrivals", string(bench.Constant), string(bench.Poisson)),
		"max-in-flight": count(r, &l.MaxInFlight, "max-in-flight"),
		"overflow":      oneOf(r, &l.Overflow, "overflow", string(bench.Wait), string(bench.Skip)),
		"protocol":      oneOf(r, &l.Protocol, "protocol", bench.Protocols...),
		"streams":       truth(r, &l.Streams, "streams"),
		"seed":          count(r, &l.Seed, "seed"),
	})
}

func (r *reader) stages(n ast.Node, l *Load) error {
	return r.list(n, "stages", func(_ int, n ast.Node) error {
		var s bench.Stage
		if err := parsed(r, &s, "stage", bench.ParseStage)(n); err != nil {
			return err
		}
		l.Stages = append(l.Stages, s)
		return nil
	})
}

func (r *reader) thresholds(n ast.Node, s *Scenario) error {
	return r.list(n, "thresholds", func(_ int, n ast.Node) error {
		expr := ""
		err := parsed(r, &expr, "threshold", func(s string) (string, error) { return s, bench.CheckThreshold(s) })(n)
		s.Thresholds = append(s.Thresholds, expr)
		return err
	})
}

// Apply puts the scenario into a configuration. given reports whether a flag of run was given, which then overrides
// what the scenario says: one of rate, stage, users and concurrency stands for the whole shape of the load, and one
// of duration and requests for both. Thresholds of flags are added.
func (s *Scenario) Apply(c *bench.Config, given func(flag string) bool) {
	l := &s.Load
	c.Scenario, c.Flows, c.Data = s.Name, s.Flows, s.Data
	c.Thresholds = append(s.Thresholds[:len(s.Thresholds):len(s.Thresholds)], c.Thresholds...)
	if !given("rate") && !given("stage") && !given("users") && !given("concurrency") {
		c.Rate, c.Stages, c.Users, c.Concurrency = l.Rate, l.Stages, l.Users, l.Concurrency
		override(given, "sessions", &c.Sessions, l.Sessions)
		override(given, "max-in-flight", &c.MaxInFlight, l.MaxInFlight)
	}
	if c.Users > 0 {
		override(given, "think-time", &c.ThinkTime, l.ThinkTime)
	}
	if !given("duration") && !given("time") && !given("requests") && len(c.Stages) == 0 {
		c.Duration, c.Requests = l.Duration, l.Requests
	}
	override(given, "warmup", &c.Warmup, l.Warmup)
	override(given, "timeout", &c.Timeout, l.Timeout)
	override(given, "arrivals", &c.Arrivals, l.Arrivals)
	override(given, "overflow", &c.Overflow, l.Overflow)
	override(given, "protocol", &c.Protocol, l.Protocol)
	override(given, "streams", &c.Streams, l.Streams)
	override(given, "seed", &c.Seed, l.Seed)
}

// override sets a field, unless its flag was given or the scenario does not say.
func override[T comparable](given func(string) bool, flag string, field *T, value T) {
	var zero T
	if !given(flag) && value != zero {
		*field = value
	}
}
