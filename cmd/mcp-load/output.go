package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
)

// output is one file to write.
type output struct {
	kind string // "json" or "hdr"
	path string
}

// parseOutputs reads KIND=FILE, and finds out before the run whether the files can be written.
func parseOutputs(specs []string) ([]output, error) {
	var out []output
	for _, spec := range specs {
		kind, path, ok := strings.Cut(spec, "=")
		if !ok || path == "" || kind != "json" && kind != "hdr" {
			return nil, usageError("output %q is not understood: write -o json=FILE or -o hdr=FILE", spec)
		}
		if err := writable(path); err != nil {
			return nil, usageError("cannot write %s: %v", path, err)
		}
		out = append(out, output{kind, path})
	}
	return out, nil
}

// writable tries the folder of a file that will be written at the end of the run.
func writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("it is a folder")
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

// write puts the result into the file.
func (o *output) write(res *bench.Result) error {
	return bench.WriteFile(o.path, func(w io.Writer) error {
		if o.kind == "hdr" {
			return res.WriteHistogramLog(w)
		}
		return res.WriteJSON(w)
	})
}
