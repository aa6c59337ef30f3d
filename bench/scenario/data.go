package scenario

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/codec"
)

const (
	maxRows     = 1_000_000
	maxRowBytes = 4 << 20
	maxData     = 256 << 20 // of one file
	maxColumns  = 1000
)

// data reads the data files: a name for each, and the file, or an object with file and order.
func (r *reader) data(n ast.Node, s *Scenario, open func(string) (io.ReadCloser, error)) error {
	pairs, err := r.pairs(n, "data")
	for _, pair := range pairs {
		set := bench.DataSet{Name: pair.Key.GetToken().Value}
		if !variableForm.MatchString(set.Name) {
			return r.wrong(pair.Key, "data cannot be called %q: write letters, digits, - and _", set.Name)
		}
		var v ast.Node
		if v, err = r.value(pair.Value); err != nil {
			return err
		}
		file := ""
		read := parsed(r, &file, "file", notEmpty)
		if kindOf(v) == "an object" {
			order := ""
			err = r.object(v, "data", fields{"file": read, "order": oneOf(r, &order, "order", "in-turn", "random")})
			set.Random = order == "random"
		} else {
			err = read(v)
		}
		if err == nil && file == "" {
			err = r.wrong(v, "data %q names no file", set.Name)
		}
		if err != nil {
			return err
		}
		if err = readRows(&set, file, open); err != nil {
			return r.wrong(v, "data file %s: %v", file, err)
		}
		s.Data = append(s.Data, set)
	}
	return err
}

// readRows reads a data file, in the format that its name says.
func readRows(set *bench.DataSet, name string, open func(string) (io.ReadCloser, error)) error {
	format := readCSV
	switch ext := strings.ToLower(path.Ext(name)); ext {
	case ".csv":
	case ".ndjson", ".jsonl":
		format = readNDJSON
	default:
		return fmt.Errorf("its name ends in %q, which is neither .csv nor .ndjson", ext)
	}
	f, err := open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	in := &limited{r: f, left: maxData}
	if err := format(set, in); err != nil {
		return err
	}
	if len(set.Rows) == 0 {
		return errors.New("it has no rows")
	}
	return nil
}

// limited refuses to read more than a number of bytes.
type limited struct {
	r    io.Reader
	left int
}

// Read reads, until the limit is reached.
func (l *limited) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if l.left -= n; l.left < 0 {
		return 0, fmt.Errorf("it is larger than %d MiB", maxData>>20)
	}
	return n, err
}

var errRows = fmt.Errorf("it has more than %d rows", maxRows)

// readCSV reads a header with the names of the columns, and rows of as many fields. All values are texts.
func readCSV(set *bench.DataSet, f io.Reader) error {
	in := csv.NewReader(f)
	in.ReuseRecord = true
	header, err := in.Read()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty: the first line names the columns")
		}
		return err
	}
	set.Columns = slices.Clone(header)
	set.Columns[0] = strings.TrimPrefix(set.Columns[0], "\ufeff") // which spreadsheets put in front
	for {
		fields, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(set.Rows) == maxRows:
			return errRows
		}
		row := make([]json.RawMessage, len(fields))
		for i, text := range fields {
			row[i] = codec.AppendString(nil, strings.ToValidUTF8(text, "\ufffd"))
		}
		set.Rows = append(set.Rows, row)
	}
}

// readNDJSON reads an object on each line. The columns are the members of all of them.
func readNDJSON(set *bench.DataSet, f io.Reader) error {
	in := bufio.NewScanner(f)
	in.Buffer(nil, maxRowBytes)
	index := map[string]int{}
	for line := 1; in.Scan(); line++ {
		text := slices.Clone(in.Bytes())
		if len(strings.TrimSpace(string(text))) == 0 {
			continue
		}
		if !codec.Valid(text) || !codec.IsObject(text) {
			return fmt.Errorf("line %d is not a JSON object", line)
		}
		if len(set.Rows) == maxRows {
			return errRows
		}
		row := make([]json.RawMessage, len(set.Columns))
		codec.EachMember(text, func(name, value []byte) bool {
			i, known := index[string(name)]
			if !known {
				i = len(set.Columns)
				index[string(name)] = i
				set.Columns, row = append(set.Columns, string(name)), append(row, nil)
			}
			row[i] = value
			return true
		})
		if len(set.Columns) > maxColumns {
			return fmt.Errorf("line %d: more than %d members in all", line, maxColumns)
		}
		set.Rows = append(set.Rows, row)
	}
	for i, row := range set.Rows { // rows that came before a column was seen
		set.Rows[i] = append(row, make([]json.RawMessage, len(set.Columns)-len(row))...)
	}
	return in.Err()
}
