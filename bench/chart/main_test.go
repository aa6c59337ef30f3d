package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

const sample = `{"conditions":{"time":"2026-11-30T18:00:00Z","go":"go1.26","peers":["example.com/x/mcp-go v1.2.1"]},"workloads":[
 {"workload":"stdio","servers":[
  {"server":"bare","rounds":[{"cpu":1e-6},{"cpu":3e-6},{"cpu":2e-6}]},
  {"server":"subject","rounds":[{"cpu":4e-6},{"cpu":6e-6}]},
  {"server":"mcpgo","rounds":[{"cpu":1}],"invalid":"a wrong answer"}]},
 {"workload":"sessions","servers":[{"server":"subject","rounds":[{"bytes":1234567}]}]}]}`

// TestDraw checks that a picture is well-formed and holds the medians of what is
// valid.
func TestDraw(t *testing.T) {
	var out bytes.Buffer
	if err := draw(&out, []byte(sample)); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, out.String())
		}
	}
	for _, want := range []string{">2.0<", ">5.0<", ">1,234,567<", "2026-11-30, go1.26, mcp-go"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("picture: got no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), ">mcp-go<") {
		t.Errorf("picture: got a bar for a server that gave a wrong answer\n%s", out.String())
	}
}

func TestDrawRefuses(t *testing.T) {
	for _, text := range []string{"", "{}", `{"workloads":[{"workload":"other"}]}`} {
		if err := draw(io.Discard, []byte(text)); err == nil {
			t.Errorf("draw(%q): got nil, want an error", text)
		}
	}
}

func TestNumber(t *testing.T) {
	for _, c := range []struct {
		v      float64
		digits int
		want   string
	}{
		{0, 0, "0"}, {999, 0, "999"}, {1000, 0, "1,000"}, {12.345, 1, "12.3"}, {1234567.8, 1, "1,234,567.8"},
	} {
		if got := number(c.v, c.digits); got != c.want {
			t.Errorf("number(%v, %d): got %q, want %q", c.v, c.digits, got, c.want)
		}
	}
}
