package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcpengine/mcpengine/codec"
)

const (
	maxArgsLine  = 4 << 20
	maxArgsBytes = 256 << 20 // of all lines, since they are kept
)

// ReadArgs reads arguments for Config.ArgsRows: one JSON object on each line. Empty lines are passed over; anything
// else is an error that names the line.
func ReadArgs(r io.Reader) ([]json.RawMessage, error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxArgsLine)
	var rows []json.RawMessage
	line, total := 0, 0
	for in.Scan() {
		line++
		if firstByte(in.Bytes()) == 0 {
			continue
		}
		if !codec.Valid(in.Bytes()) || firstByte(in.Bytes()) != '{' {
			return nil, fmt.Errorf("line %d is not a JSON object: %s", line, clip(in.Bytes()))
		}
		if total += len(in.Bytes()); total > maxArgsBytes {
			return nil, fmt.Errorf("line %d: more than %s of arguments", line, bytesText(maxArgsBytes))
		}
		rows = append(rows, append(json.RawMessage(nil), in.Bytes()...))
	}
	switch err := in.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("line %d is longer than %s", line+1, bytesText(maxArgsLine))
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, errors.New("it holds no line with arguments")
	}
	return rows, nil
}

// arguments gives the arguments that the user has chosen, nil where he has not.
func (c *Config) arguments() []json.RawMessage {
	if c.Args != nil {
		return []json.RawMessage{c.Args}
	}
	return c.ArgsRows
}
