package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// readAll gives what a reader makes of a stream, one line for each event: type,
// data and the last event id after it.
func readAll(r *client.SSEReader) (events []string, err error) {
	for {
		e, err := r.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return append(events, fmt.Sprintf("end %q", r.LastEventID())), err
		}
		events = append(events, fmt.Sprintf("%s %q %q", e.Type, e.Data, r.LastEventID()))
	}
}

func TestSSE(t *testing.T) {
	for _, test := range []struct {
		name, stream string
		want         []string // without the end
		last         string
	}{
		{"one", "data: a\n\n", []string{`message "a" ""`}, ""},
		{"several lines", "data: a\ndata:b\ndata:  c\ndata\n\n", []string{`message "a\nb\n c\n" ""`}, ""},
		{"type and id", "event: x\nid: 7\ndata: a\n\ndata: b\n\n", []string{`x "a" "7"`, `message "b" "7"`}, "7"},
		{"comment", ":\n: data: x\ndata: a\n:\n\n", []string{`message "a" ""`}, ""},
		{"primer", "id: p\ndata:\n\n", []string{`message "" "p"`}, "p"},
		{"id alone", "id: p\n\n", nil, "p"},
		{"id of half an event", "id: p\n\nid: q\ndata: x\n", nil, "p"},
		{"id with NUL", "id: p\n\nid: q\x00\n\n", nil, "p"},
		{"id emptied", "id: p\n\nid\ndata: x\n\n", []string{`message "x" ""`}, ""},
		{"type without data", "event: x\n\ndata: a\n\n", []string{`message "a" ""`}, ""},
		{"no such field", "Data: a\n data: b\ndatas: c\n\n", nil, ""},
		{"mark", "\uFEFFdata: a\n\n", []string{`message "a" ""`}, ""},
		{"a second mark", "\uFEFF\uFEFFdata: a\n\n", nil, ""},
		{"a later mark", "\n\uFEFFdata: a\n\n", nil, ""},
		{"mixed ends", "data: a\rdata: b\r\ndata: c\n\r\ndata: d\r\r", []string{`message "a\nb\nc" ""`, `message "d" ""`}, ""},
		{"empty lines", "\n\r\r\n\ndata: a\n\n\n\n", []string{`message "a" ""`}, ""},
		{"half an event", "data: a\n\ndata: b\n", []string{`message "a" ""`}, ""},
		{"half a line", "data: a\n\ndata: b", []string{`message "a" ""`}, ""},
	} {
		want := append(test.want, fmt.Sprintf("end %q", test.last))
		for name, r := range map[string]io.Reader{
			"at once":     strings.NewReader(test.stream),
			"by the byte": iotest.OneByteReader(strings.NewReader(test.stream)),
		} {
			got, err := readAll(client.NewSSEReader(r, 1000))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got %q, %v, want %q", test.name, name, got, err, want)
			}
		}
	}
}

func TestSSERetry(t *testing.T) {
	for _, test := range []struct {
		stream string
		want   time.Duration
		ok     bool
	}{
		{"data: x\n\n", 0, false},
		{"retry: 1500\n\n", 1500 * time.Millisecond, true},
		{"retry: 0\n\n", 0, true},
		{"retry: 10\nretry: -5\nretry: 1.5\nretry:\nretry\nretry: x\n\n", 10 * time.Millisecond, true},
		{"retry: 99999999999999999999999\n\n", 24 * time.Hour, true},
		{"retry: 9223372036854775807\n\n", 24 * time.Hour, true},
	} {
		r := client.NewSSEReader(strings.NewReader(test.stream), 1000)
		if _, err := readAll(r); err != nil {
			t.Errorf("%q: %v", test.stream, err)
		}
		if got, ok := r.Retry(); got != test.want || ok != test.ok {
			t.Errorf("Retry after %q: got %v, %v, want %v, %v", test.stream, got, ok, test.want, test.ok)
		}
	}
}

func TestSSELimit(t *testing.T) {
	for _, test := range []struct {
		name, stream string
		large        bool
	}{
		{"at the limit", "data: " + strings.Repeat("x", 100) + "\n\n", false},
		{"over the limit", "data: " + strings.Repeat("x", 101) + "\n\n", true},
		{"over the limit in a line without an end", "data: " + strings.Repeat("x", 101), true},
		{"over the limit in several lines", strings.Repeat("data: x\n", 101) + "\n", true},
		{"endless comment", ":" + strings.Repeat("x", 200), true},
		{"many events", strings.Repeat("data: x\n\n", 1000), false},
	} {
		_, err := readAll(client.NewSSEReader(strings.NewReader(test.stream), 100))
		if errors.Is(err, client.ErrTooLarge) != test.large || (err != nil) != test.large {
			t.Errorf("%s: got %v, want ErrTooLarge: %v", test.name, err, test.large)
		}
	}
}

// TestSSEPrompt: an event is given before anything follows it, even where its
// last line ends with CR and an LF could still come.
func TestSSEPrompt(t *testing.T) {
	for _, end := range []string{"\n", "\r", "\r\n"} {
		in, out := io.Pipe()
		go func() {
			_, _ = io.WriteString(out, "data: a"+end+end) // and then silence
		}()
		if e, err := client.NewSSEReader(in, 100).Next(); err != nil || string(e.Data) != "a" {
			t.Errorf("Next with line end %q: got %q, %v", end, e.Data, err)
		}
		_ = in.Close()
	}
}

// reference reads a whole stream step by step as the standard words it.
func reference(stream string) (events []string) {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data, kind, id, last string
	for _, line := range lines[:len(lines)-1] { // the last one has no end
		name, value, colon := strings.Cut(line, ":")
		if colon {
			value = strings.TrimPrefix(value, " ")
		}
		switch {
		case line == "":
			if last = id; data != "" {
				if kind == "" {
					kind = "message"
				}
				events = append(events, fmt.Sprintf("%s %q %q", kind, strings.TrimSuffix(data, "\n"), last))
			}
			data, kind = "", ""
		case name == "data":
			data += value + "\n"
		case name == "event":
			kind = value
		case name == "id" && !strings.Contains(value, "\x00"):
			id = value
		}
	}
	return append(events, fmt.Sprintf("end %q", last))
}

// FuzzSSE holds the reader to the reference, whole and in pieces.
func FuzzSSE(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "event: x\r\nid: 7\r\ndata: a\r\n\r\n", ": c\rdata\rdata:\r\r", "\uFEFFdata: a\n\n", "id: a\x00\n\nretry: 5\n\n", "data: a",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint8) {
		want := reference(string(stream))
		got, err := readAll(client.NewSSEReader(bytes.NewReader(stream), 1<<20))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, %v, want %q", stream, got, err, want)
		}
		pieces := iotest.OneByteReader(bytes.NewReader(stream))
		if size > 1 {
			pieces = &chunks{stream, int(size)}
		}
		got, err = readAll(client.NewSSEReader(pieces, 1<<20))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q by %d: got %q, %v, want %q", stream, size, got, err, want)
		}
		if _, err := readAll(client.NewSSEReader(bytes.NewReader(stream), 10)); err != nil && !errors.Is(err, client.ErrTooLarge) {
			t.Errorf("%q with a limit: got %v", stream, err)
		}
	})
}

// chunks is a reader that gives size bytes at a time.
type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), c.size)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
