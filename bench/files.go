package bench

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
)

// WriteJSON writes the result in the schema mcp-load/v1.
func (r *Result) WriteJSON(w io.Writer) error { return writeJSON(w, r) }

// WriteRunsJSON writes several results in the schema mcp-load/v1, as a matrix of protocols gives them: an object with the
// members schema and runs.
func WriteRunsJSON(w io.Writer, runs []*Result) error {
	return writeJSON(w, struct {
		Schema string    `json:"schema"`
		Runs   []*Result `json:"runs"`
	}{Schema, runs})
}

func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// WriteFile lets write fill a file that appears under its name only when it is complete: it is written beside it and
// renamed. Folders that are missing are made. A symbolic link stays one, and what is no plain file, such as /dev/stdout or
// a pipe, is written to and not replaced.
func WriteFile(path string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return writeInto(path, write)
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that matters is the first one
		}
	}()
	buf := bufio.NewWriter(f)
	if err = write(buf); err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// writeInto fills what is there already.
func writeInto(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(f)
	if err = write(buf); err == nil {
		err = buf.Flush()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
