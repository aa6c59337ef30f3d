package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/compare"
	"github.com/spf13/cobra"
)

// compareFlags holds the flags of compare as they were typed.
type compareFlags struct {
	base, next []string
	metrics    []string
	maxChange  string
	maxErrors  string
	level      string
	any        bool
}

const compareLong = `Regression gate: holds results of a new state (run -o json) against results of an old one.

The change of each metric comes with its interval, from a test that knows that the calls of a server are correlated and
that keeps its level over all metrics together. A metric is a regression when it is worse by more than --max-change and
the difference is significant. Three or more results a side, made in turns (old, new, old, new, ...), also show how much
runs differ from each other: give them as one list with commas, or with --base and --new.

Exit codes: 0 no regression, 99 regression, 98 a result is INVALID, 2 the results cannot be compared.`

const compareExample = `  mcp-load compare old.json new.json
  mcp-load compare old1.json,old2.json,old3.json new1.json,new2.json,new3.json
  mcp-load compare old.json new.json --metric p99 --max-change 10%`

func newCompareCommand() *cobra.Command {
	f := &compareFlags{}
	cmd := &cobra.Command{
		Use:     "compare [flags] BASE[,BASE...] NEW[,NEW...]",
		Short:   "Regression gate: results of a new state against those of an old one",
		Long:    compareLong,
		Example: compareExample,
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.StringSliceVar(&f.base, "base", nil, "`file` of the old state, in place of BASE (repeatable)")
	p.StringSliceVar(&f.next, "new", nil, "`file` of the new state, in place of NEW (repeatable)")
	p.StringSliceVar(&f.metrics, "metric", nil, "what to compare: "+strings.Join(compare.Metrics, ", ")+
		" (repeatable); default p50, p99, errors, and in a closed loop rate")
	p.StringVar(&f.maxChange, "max-change", "5%", "a change for the worse up to this is tolerated, also when it is significant")
	p.StringVar(&f.maxErrors, "max-errors", "0.1%", "a rise of the share of errors up to this is tolerated, in points")
	p.StringVar(&f.level, "level", "1%", "chance of a false alarm, over all metrics and tools together")
	p.BoolVar(&f.any, "any-conditions", false, "compare results of different conditions, with a warning")
	return cmd
}

func (f *compareFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && len(f.base) > 0 && len(f.next) > 0:
	case len(args) == 2 && len(f.base) == 0 && len(f.next) == 0:
		f.base, f.next = strings.Split(args[0], ","), strings.Split(args[1], ",")
	default:
		return usageError("give two results, BASE and NEW, as run -o json writes them (several of one state: with commas between; see mcp-load compare --help)")
	}
	o := compare.Options{Metrics: f.metrics, AnyConditions: f.any}
	for _, s := range []struct {
		flag, text string
		into       *float64
		most       float64
	}{{"max-change", f.maxChange, &o.MaxChange, 100}, {"max-errors", f.maxErrors, &o.MaxErrors, 1}, {"level", f.level, &o.Level, 0.5}} {
		share, err := parseShare(s.text)
		if err != nil || share > s.most || s.flag == "level" && share == 0 {
			return usageError("--%s %q is not understood: write a share such as 5%% or 0.05", s.flag, s.text)
		}
		*s.into = share
	}
	base, err := readResults(f.base)
	if err != nil {
		return err
	}
	next, err := readResults(f.next)
	if err != nil {
		return err
	}
	report, err := compare.Results(base, next, o)
	if err != nil {
		var refused *compare.Error
		if errors.As(err, &refused) && refused.Invalid {
			return &exitError{exitInvalid, err.Error()}
		}
		return usageError("%v", err)
	}
	if err := report.WriteTable(cmd.OutOrStdout()); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot print the table: %v", err)}
	}
	if report.Regressed() {
		return &exitError{exitThreshold, ""}
	}
	return nil
}

// parseShare reads 5% or 0.05.
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil || !(share >= 0) {
		return 0, strconv.ErrSyntax
	}
	if percent {
		share /= 100
	}
	return share, nil
}

// readResults reads all results of some files.
func readResults(paths []string) ([]*bench.Result, error) {
	var out []*bench.Result
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return nil, usageError("cannot read %s: %v", path, errors.Unwrap(err))
		}
		results, err := bench.ReadResults(file)
		_ = file.Close() // it was only read
		if err != nil {
			return nil, usageError("%s: %v", path, err)
		}
		out = append(out, results...)
	}
	return out, nil
}
