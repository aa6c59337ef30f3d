package transport_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcpengine/mcpengine/transport"
)

// exchange serves an input to its end and gives the answers, sorted.
func exchange(t *testing.T, f *fixture, in io.Reader, o *transport.LineOptions) []string {
	t.Helper()
	out := newSink()
	if err := transport.ServeStdio(context.Background(), f.Engine, in, out, o); err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
	frames := out.frames()
	slices.Sort(frames)
	return frames
}

// padded is a ping of exactly n bytes.
func padded(id string, n int) string {
	frame := ping(id)
	return frame[:len(frame)-1] + strings.Repeat(" ", n-len(frame)) + "}"
}

func TestLineFraming(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	const limit = 1000
	plain := func(s string) io.Reader { return strings.NewReader(s) }
	one := func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) }
	for _, c := range []struct {
		name, input string
		reader      func(string) io.Reader
		want        []string
	}{
		{"one line", ping("1") + "\n", plain, []string{"1 ok"}},
		{"carriage returns", ping("1") + "\r\n" + ping("2") + "\r\n", plain, []string{"1 ok", "2 ok"}},
		{"byte order mark", "\xef\xbb\xbf" + ping("1") + "\n" + ping("2") + "\n", plain, []string{"1 ok", "2 ok"}},
		{"blank lines", "\n\r\n \t\r\n" + ping("1") + "\n\n\n" + ping("2") + "\n \n", plain, []string{"1 ok", "2 ok"}},
		{"white space around", " \t" + ping("1") + " \t\n", plain, []string{"1 ok"}},
		{"byte by byte", ping("1") + "\r\n\n" + ping("2") + "\n", one, []string{"1 ok", "2 ok"}},
		{"data together with the end", ping("1") + "\n" + ping("2") + "\n",
			func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) }, []string{"1 ok", "2 ok"}},
		{"no line end at the end", ping("1") + "\n" + ping("2"), plain, []string{"1 ok", "2 ok"}},
		{"half a line at the end", ping("1") + "\n" + ping("2")[:20], plain, []string{"- -32700", "1 ok"}},
		{"nothing at all", "", plain, nil},
		{"not JSON", "hello\n" + ping("1") + "\n", plain, []string{"- -32700", "1 ok"}},
		{"null bytes", "\x00\x00\n" + ping("1") + "\n", plain, []string{"- -32700", "1 ok"}},
		{"a batch in a revision without", handshake + "[" + ping("1") + "]\n", plain, []string{"\"init\" ok", "- -32600"}},
		{"at the limit", padded("1", limit) + "\n", plain, []string{"1 ok"}},
		{"over the limit", padded("1", limit+1) + "\n" + ping("2") + "\n", plain, []string{"- -32600", "2 ok"}},
		{"over the limit, byte by byte", padded("1", 3*limit) + "\n" + ping("2") + "\n", one, []string{"- -32600", "2 ok"}},
		{"over the limit by much", padded("1", 300<<10) + "\n" + ping("2") + "\n", plain, []string{"- -32600", "2 ok"}},
		{"over the limit, then the end", ping("2") + "\n" + padded("1", 300<<10), plain, []string{"- -32600", "2 ok"}},
		{"over the limit twice", padded("1", 2*limit) + "\n" + padded("2", 200<<10) + "\n" + ping("3") + "\n", one,
			[]string{"- -32600", "- -32600", "3 ok"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := exchange(t, f, c.reader(c.input), &transport.LineOptions{MaxMessageBytes: limit})
			if !slices.Equal(got, c.want) {
				t.Errorf("answers to %.80q: got %q, want %q", c.input, got, c.want)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	long := strings.Repeat("x", 1<<20)
	input := handshake + call("1", "echo", text(long)) + "\n" + call("2", "echo", text("short")) + "\n"
	want := []string{"\"init\" ok", "1 " + long, "2 short"}
	if got := exchange(t, f, strings.NewReader(input), nil); !slices.Equal(got, want) {
		t.Errorf("answers: got %d frames, %.40q, want %.40q", len(got), got, want)
	}
}

// TestManyLinesInOneRead also splits lines at every place that a read may.
func TestManyLinesInOneRead(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	var input bytes.Buffer
	var want []string
	input.WriteString(handshake)
	for i := range 2000 {
		name := strings.Repeat("n", i%100) + "."
		input.WriteString(call(quote(i), "echo", text(name)) + "\n")
		want = append(want, quote(i)+" "+name)
	}
	want = append(want, "\"init\" ok")
	slices.Sort(want)
	for name, in := range map[string]io.Reader{
		"one read":   bytes.NewReader(input.Bytes()),
		"half reads": iotest.HalfReader(bytes.NewReader(input.Bytes())),
	} {
		if got := exchange(t, f, in, nil); !slices.Equal(got, want) {
			t.Errorf("%s: got %d answers, want each of %d once", name, len(got), len(want))
		}
	}
}

// TestWritesAreBatched: answers to lines that came together leave together, and
// none waits for more input.
func TestWritesAreBatched(t *testing.T) {
	noLeaks(t)
	f := newFixture(t, nil)
	const lines = 500
	in, feed := io.Pipe()
	out := newSink()
	served := make(chan error, 1)
	go func() { served <- transport.ServeStdio(context.Background(), f.Engine, in, out) }()
	var input bytes.Buffer
	for i := range lines {
		input.WriteString(ping(quote(i)) + "\n")
	}
	if _, err := feed.Write(input.Bytes()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all answers", func() bool { return len(out.frames()) == lines })
	// A write for each 32 KiB, one at each pause of the input, and some where
	// the machine was slow and another goroutine took over.
	if n := out.count(); n > lines/10 {
		t.Errorf("writes for %d lines that came at once: got %d, want at most %d", lines, n, lines/10)
	}
	before := out.count()
	if _, err := io.WriteString(feed, ping("1")+"\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the answer to a single line", func() bool { return out.count() > before })
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; err != nil {
		t.Errorf("ServeStdio: got %v, want nil", err)
	}
}
