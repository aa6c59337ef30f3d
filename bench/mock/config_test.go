package mock

import (
	"strings"
	"testing"
	"time"
)

func TestParseService(t *testing.T) {
	for text, want := range map[string]Service{
		"0": {}, "1ms": {Mean: time.Millisecond}, "exp:5ms": {Mean: 5 * time.Millisecond, Exponential: true},
	} {
		if got, err := ParseService(text); err != nil || got != want {
			t.Errorf("ParseService(%q): got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "-1ms", "exp:", "exp:0s", "normal:5ms", "exp:-1s"} {
		if got, err := ParseService(text); err == nil {
			t.Errorf("ParseService(%q): got %v, want an error", text, got)
		}
	}
}

func TestParseUSL(t *testing.T) {
	if got, err := ParseUSL("50,0.05,1e-3"); err != nil || got != (USL{50, 0.05, 0.001}) {
		t.Errorf("ParseUSL: got %v, %v", got, err)
	}
	for _, text := range []string{"", "50", "50,0.1", "0,0.1,0.1", "50,-1,0", "50,x,0", "NaN,0,0", "50,0,0,0", "Inf,0,0"} {
		if got, err := ParseUSL(text); err == nil {
			t.Errorf("ParseUSL(%q): got %v, want an error", text, got)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{"300": 300, "300/s": 300, "6000/m": 100, "0.5/s": 0.5} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q): got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1/s", "max", "300/h", "NaN", "1e300"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q): got %v, want an error", text, got)
		}
	}
}

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "4096": 4096, "1MiB": 1 << 20, "1.5KiB": 1536, "1MB": 1e6, "7B": 7, "1GiB": 1 << 30} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("ParseBytes(%q): got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1TiB", "1e40", "x"} {
		if got, err := ParseBytes(text); err == nil {
			t.Errorf("ParseBytes(%q): got %v, want an error", text, got)
		}
	}
}

// TestCheck: every configuration that cannot be meant is refused in one line that names its flag.
func TestCheck(t *testing.T) {
	law, service := USL{50, 0.1, 0.1}, Service{Mean: time.Millisecond}
	for want, c := range map[string]Config{
		"--usl is the whole":              {Model: Model{USL: law, Servers: 2}},
		"--servers cannot be negative":    {Model: Model{Service: service, Servers: -1}},
		"--servers needs a --service":     {Model: Model{Servers: 2}},
		"--servers can be at most":        {Model: Model{Service: service, Servers: 2 << 20}},
		"--stall-at and --stall-for":      {Model: Model{StallFor: -1}},
		"--stall-at needs --stall-for":    {Model: Model{StallAt: 1}},
		"cannot be negative":              {Sessions: Sessions{Max: -1}},
		"--bytes-per-session can be":      {Sessions: Sessions{Bytes: 2 << 30}},
		"--events, --gap and --first":     {Stream: Stream{Events: -1}},
		"--gap, --first and --drop need":  {Stream: Stream{Gap: 1}},
		"--drop 7: the events have":       {Stream: Stream{Events: 6, Drop: []int{7}}},
		"--drop 0: the events have the n": {Stream: Stream{Events: 6, Drop: []int{0}}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("New(%+v): got %v, want one line with %q", c, err, want)
		}
	}
	const url = "http://127.0.0.1:1/mcp"
	for want, c := range map[string]ProxyConfig{
		"give one of the two":                  {Upstream: url, Route: Random, Replicas: []string{url}},
		`--route "x": use random or sticky`:    {Route: "x", Replicas: []string{url}},
		"--route needs at least one --replica": {Route: Sticky},
		"--replica needs --route":              {Replicas: []string{url}},
		"are of a proxy: give --proxy":         {Delay: 1},
		"--delay cannot be negative":           {Upstream: url, Delay: -1},
		"--fan-out must lie between":           {Upstream: url, FanOut: 1001},
		"is no http:// or https:// URL":        {Upstream: "127.0.0.1:80"},
	} {
		if _, err := NewProxy(c); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("NewProxy(%+v): got %v, want one line with %q", c, err, want)
		}
	}
}
