package bench

import (
	"encoding/json"
	"fmt"
	"io"
)

// ReadResults reads what Result.WriteJSON or WriteRunsJSON has written: one result, or the runs of a matrix.
func ReadResults(r io.Reader) ([]*Result, error) {
	var file struct {
		Result
		Runs []*Result `json:"runs"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return nil, fmt.Errorf("not a result of mcp-load (-o json=FILE): %w", err)
	}
	if file.Schema != Schema {
		return nil, fmt.Errorf("not a result of mcp-load (-o json=FILE): its schema is %q, not %q", file.Schema, Schema)
	}
	if len(file.Runs) > 0 {
		return file.Runs, nil
	}
	return []*Result{&file.Result}, nil
}
