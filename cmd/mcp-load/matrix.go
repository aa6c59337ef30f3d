package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
)

// loadMatrix runs the configuration with one protocol after another, prints a summary of each, and writes all of them
// into one JSON file. The exit code is the worst of them. Where a run cannot be made, those before it are reported and
// its error is the end.
func loadMatrix(ctx context.Context, c *bench.Config, protocols []string, outputs []output, live string, stdout, stderr io.Writer) error {
	stop, err := liveOutputs(c, outputs, func(text string) { fmt.Fprintf(stderr, "mcp-load: %s\n", text) })
	if err != nil {
		return err
	}
	defer stop()
	var runs []*bench.Result
	var end error
	for i, protocol := range protocols {
		run := *c
		run.Protocol = protocol
		if i > 0 {
			run.Seed = runs[0].Conditions.Seed // the same load for all
		}
		res, err := offer(ctx, &run, live, stderr)
		if err != nil {
			end = err
			break
		}
		runs = append(runs, res)
		if i > 0 {
			fmt.Fprintln(stdout)
		}
		if err := res.WriteSummary(stdout, isTerminal(stdout)); err != nil {
			return &exitError{exitRuntime, fmt.Sprintf("cannot print the summary: %v", err)}
		}
		if res.Interrupted {
			break
		}
	}
	if len(runs) == 0 {
		return end
	}
	written, err := writeMatrix(runs, protocols, outputs)
	listOutputs(written, stdout)
	if err != nil {
		return err
	}
	if end == nil {
		end = worstOf(runs)
	}
	return end
}

// writeMatrix writes the files and says which. Where a kind holds one run, each protocol has a file of its own, named in
// front of the extension. What cannot be written does not keep the others from being written.
func writeMatrix(runs []*bench.Result, protocols []string, outputs []output) (written []string, err error) {
	for _, o := range outputs {
		if o.kind.writeRuns == nil {
			ext := filepath.Ext(o.path)
			for i, res := range runs {
				own := output{o.kind, strings.TrimSuffix(o.path, ext) + "-" + protocols[i] + ext}
				paths, werr := writeOutputs(res, []output{own})
				written = append(written, paths...)
				err = cmp.Or(werr, err)
			}
			continue
		}
		if werr := bench.WriteFile(o.path, func(w io.Writer) error { return o.kind.writeRuns(w, runs) }); werr != nil {
			err = cannotWrite(o.path, werr)
			continue
		}
		written = append(written, o.path)
	}
	return written, err
}

// worstOf gives the end of the run that went worst: interrupted, ended early, not valid, a threshold crossed.
func worstOf(runs []*bench.Result) error {
	rank := map[int]int{exitThreshold: 1, exitInvalid: 2, exitRuntime: 3, exitInterrupted: 4}
	var worst *exitError
	for _, res := range runs {
		var e *exitError
		if errors.As(exitOf(res), &e) && (worst == nil || rank[e.code] > rank[worst.code]) {
			worst = e
		}
	}
	if worst == nil {
		return nil
	}
	return worst
}
