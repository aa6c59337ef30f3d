package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/report"
)

// outputKind is one word that -o understands. A kind that writes a file after the run has write; a kind that is there
// while the run lasts has serve.
type outputKind struct {
	name  string
	write func(*bench.Result, io.Writer) error
	// writeRuns writes the runs of a matrix into one file; where it is nil each run has a file of its own.
	writeRuns func(io.Writer, []*bench.Result) error
	// serve begins to offer what a run finds at an address.
	serve func(addr string) (live *liveOutput, err error)
}

// liveOutput is an output that lives for the time of a run.
type liveOutput struct {
	where string // for people
	slot  func(bench.Slot)
	stop  func(context.Context) error
}

// outputKinds lists what -o understands.
var outputKinds = []outputKind{
	{name: "json", write: (*bench.Result).WriteJSON, writeRuns: bench.WriteRunsJSON},
	{name: "hdr", write: (*bench.Result).WriteHistogramLog},
	{name: "html", write: writePage, writeRuns: writePages},
	{name: "csv", write: (*bench.Result).WriteCSV},
	{name: "junit", write: (*bench.Result).WriteJUnit},
	{name: "md", write: (*bench.Result).WriteMarkdown},
	{name: "prometheus", serve: servePrometheus},
}

// writePage and writePages draw results as an HTML page.
func writePage(res *bench.Result, w io.Writer) error { return report.Write(w, res) }

func writePages(w io.Writer, runs []*bench.Result) error { return report.Write(w, runs...) }

// kindsNamed gives some of the kinds, for commands whose results have no other form.
func kindsNamed(names ...string) []outputKind {
	var out []outputKind
	for _, k := range outputKinds {
		if slices.Contains(names, k.name) {
			out = append(out, k)
		}
	}
	return out
}

// outputsHelp names kinds in one line.
func outputsHelp(kinds []outputKind) string {
	var out []string
	for _, k := range kinds {
		if k.serve != nil {
			out = append(out, k.name+"=ADDR")
			continue
		}
		out = append(out, k.name+"=FILE")
	}
	return strings.Join(out[:len(out)-1], ", ") + " or " + out[len(out)-1]
}

// output is one thing to write or to offer.
type output struct {
	kind *outputKind
	path string // of the file, or the address
}

// parseOutputs reads KIND=FILE for what a run can write.
func parseOutputs(specs []string) ([]output, error) { return parseKinds(specs, outputKinds) }

// parseKinds reads KIND=FILE, and finds out before the run whether the files can be written.
func parseKinds(specs []string, kinds []outputKind) ([]output, error) {
	var out []output
	for _, spec := range specs {
		name, path, ok := strings.Cut(spec, "=")
		at := slices.IndexFunc(kinds, func(k outputKind) bool { return k.name == name })
		if !ok || path == "" || at < 0 {
			return nil, usageError("output %q is not understood: write -o %s", spec, outputsHelp(kinds))
		}
		o := output{&kinds[at], path}
		if o.kind.serve == nil {
			if err := writable(path); err != nil {
				return nil, usageError("cannot write %s: %v", path, err)
			}
		}
		if slices.ContainsFunc(out, func(other output) bool { return other.path == path }) {
			return nil, usageError("two outputs are to be written to %s: give each a name of its own", path)
		}
		out = append(out, o)
	}
	return out, nil
}

// writable tries the folder of a file that will be written at the end of the run.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil {
		if info.IsDir() {
			return fmt.Errorf("it is a folder")
		}
		if !info.Mode().IsRegular() {
			return nil // a pipe or a device: it is written to as it is
		}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".mcp-load.*")
	if err != nil {
		return err
	}
	_ = f.Close() // nothing was written
	return os.Remove(f.Name())
}

// writeOutputs writes the files of one run and lists their names. What cannot be written does not keep the others from
// being written.
func writeOutputs(res *bench.Result, outputs []output) (written []string, err error) {
	for _, o := range outputs {
		if o.kind.write == nil {
			continue
		}
		if werr := bench.WriteFile(o.path, func(w io.Writer) error { return o.kind.write(res, w) }); werr != nil {
			err = cannotWrite(o.path, werr)
			continue
		}
		written = append(written, o.path)
	}
	return written, err
}

func cannotWrite(path string, err error) error {
	return &exitError{exitRuntime, fmt.Sprintf("cannot write %s: %v", path, err)}
}

// listOutputs names the files that were written.
func listOutputs(paths []string, stdout io.Writer) {
	for i, path := range paths {
		label := ""
		if i == 0 {
			label = "written"
		}
		fmt.Fprintf(stdout, "  %-14s %s\n", label, path)
	}
}

// liveOutputs begins the outputs that live for the time of a run and leads the slots to them. The function that it gives
// ends them.
func liveOutputs(c *bench.Config, outputs []output, tell func(string)) (stop func(), err error) {
	var live []*liveOutput
	stop = func() {
		ctx, cancel := context.WithTimeout(context.Background(), liveStopTime)
		defer cancel()
		for _, l := range live {
			if err := l.stop(ctx); err != nil {
				tell(fmt.Sprintf("%s did not end in good order: %v", l.where, err))
			}
		}
	}
	for _, o := range outputs {
		if o.kind.serve == nil {
			continue
		}
		l, err := o.kind.serve(o.path)
		if err != nil {
			stop()
			return nil, usageError("cannot serve %s on %s: %v", o.kind.name, o.path, err)
		}
		live = append(live, l)
		tell("serving " + l.where)
	}
	if len(live) == 0 {
		return stop, nil
	}
	c.OnSlot = func(s bench.Slot) {
		for _, l := range live {
			l.slot(s)
		}
	}
	return stop, nil
}
