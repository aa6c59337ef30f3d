package scenario

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/mcpengine/mcpengine/bench"
)

// flows reads the flows.
func (r *reader) flows(n ast.Node, s *Scenario) error {
	names := map[string]bool{}
	err := r.list(n, "flows", func(i int, n ast.Node) error {
		f := bench.Flow{Name: fmt.Sprintf("flow %d", i+1), Weight: 1}
		var steps ast.Node
		err := r.object(n, "a flow", fields{
			"name":   parsed(r, &f.Name, "name", notEmpty),
			"weight": count(r, &f.Weight, "weight"),
			"steps":  func(n ast.Node) error { steps = n; return nil },
		})
		switch {
		case err != nil:
			return err
		case names[f.Name]:
			return r.wrong(n, "there is another flow of the name %q", f.Name)
		case steps == nil:
			return r.wrong(n, "the flow %q has no steps", f.Name)
		}
		names[f.Name] = true
		if err := r.steps(steps, &f, s.Data); err != nil {
			return err
		}
		s.Flows = append(s.Flows, f)
		return nil
	})
	if err == nil && len(s.Flows) == 0 {
		err = r.wrong(n, "the scenario has no flows")
	}
	return err
}

func notEmpty(s string) (string, error) {
	if strings.TrimSpace(s) == "" {
		return "", fmt.Errorf("it is empty")
	}
	return s, nil
}

// steps reads the steps of a flow. A variable may be used from the step on that follows the one that sets it.
func (r *reader) steps(n ast.Node, f *bench.Flow, data []bench.DataSet) error {
	variables := map[string]bool{"instance": true}
	for _, d := range data {
		for _, column := range d.Columns {
			variables[d.Name+"."+column] = true
		}
	}
	talks := false
	err := r.list(n, "steps", func(i int, n ast.Node) error {
		s := stepReader{reader: r, variables: variables}
		if err := s.read(n); err != nil {
			return err
		}
		s.step.Where = fmt.Sprintf("flow %q, step %d (line %d)", f.Name, i+1, tokenOf(n).Position.Line)
		talks = talks || s.step.Method != "" || s.step.Await != nil
		f.Steps = append(f.Steps, s.step)
		return nil
	})
	if err == nil && !talks {
		err = r.wrong(n, "the flow %q calls nothing and waits for nothing", f.Name)
	}
	return err
}
