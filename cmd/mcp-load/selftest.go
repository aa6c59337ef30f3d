package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/selfcheck"
	"github.com/spf13/cobra"
)

const selftestHelp = `Hold the generator to answers that are known beforehand, on this machine, against mcp-load mock in processes of
their own: what the machine adds to every time, the highest rates at which a run is VALID, and short forms of the
oracles, a line each with the expected and the measured value.

   1  an open loop counts from the intended start: the tail of a stall follows P(T > x) = (stall - x) / window
   2  percentiles and their intervals: the queue M/M/1
   3  it knows when it was the bottleneck: an impossible rate is INVALID
   6  sessions: memory, limit, idle expiry
  10  streams: all events, the dropped one, a change and its subscribers
  12  merging: the histograms of workers make that of all samples, bit for bit

Exit codes: 0 all pass; 1 an oracle fails; 98 nothing fails, but this machine was too busy to tell of some.`

// selftestFlags are the flags of selftest.
type selftestFlags struct {
	quick, full bool
	oracles     []int
	outputs     []string
}

func newSelftestCommand() *cobra.Command {
	var f selftestFlags
	cmd := &cobra.Command{
		Use:   "selftest [--quick | --full] [--oracle 1,2]",
		Short: "Hold the generator to known answers, on this machine",
		Long:  selftestHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runSelftest(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.BoolVar(&f.quick, "quick", false, "20 seconds instead of 90, with fewer samples")
	p.BoolVar(&f.full, "full", false, "oracles 1 and 2 in full length: about six minutes")
	p.IntSliceVar(&f.oracles, "oracle", nil, "`numbers` of the oracles to try, such as 1,2; default all, and the highest rates")
	p.StringArrayVarP(&f.outputs, "output", "o", nil, "write json=FILE")
	return cmd
}

// options turns the flags into what is to be done.
func (f *selftestFlags) options() (o selfcheck.Options, files []string, err error) {
	o = selfcheck.Options{Start: startPeer, Form: selfcheck.Short, Oracles: f.oracles, Version: version}
	switch {
	case f.quick && f.full:
		return o, nil, usageError("--quick and --full exclude each other: give one of them")
	case f.quick:
		o.Form = selfcheck.Quick
	case f.full:
		o.Form = selfcheck.Full
	}
	for _, n := range f.oracles {
		if !slices.Contains(selfcheck.Oracles, n) {
			known := strings.Trim(strings.ReplaceAll(fmt.Sprint(selfcheck.Oracles), " ", ", "), "[]")
			return o, nil, usageError("--oracle %d: there are %s", n, known)
		}
	}
	for _, spec := range f.outputs {
		path, ok := strings.CutPrefix(spec, "json=")
		if !ok || path == "" {
			return o, nil, usageError("output %q is not understood: write -o json=FILE", spec)
		}
		if err := writable(path); err != nil {
			return o, nil, usageError("cannot write %s: %v", path, err)
		}
		files = append(files, path)
	}
	return o, files, nil
}

func runSelftest(ctx context.Context, f *selftestFlags, stdout, stderr io.Writer) error {
	o, files, err := f.options()
	if err != nil {
		return err
	}
	o.OnStep = func(what string) { fmt.Fprintln(stderr, what) }
	report, err := selfcheck.Run(ctx, o)
	switch {
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, "interrupted: the self-test says nothing"}
	case err != nil:
		return &exitError{exitRuntime, err.Error()}
	}
	for _, path := range files {
		if err := bench.WriteFile(path, func(w io.Writer) error { return writeSelftest(w, report) }); err != nil {
			return &exitError{exitRuntime, fmt.Sprintf("cannot write %s: %v", path, err)}
		}
	}
	if err := report.WriteTable(stdout); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot print the table: %v", err)}
	}
	switch {
	case report.Failed > 0:
		return &exitError{exitRuntime, ""}
	case report.TooBusy > 0:
		return &exitError{exitInvalid, ""}
	}
	return nil
}

func writeSelftest(w io.Writer, report *selfcheck.Report) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
