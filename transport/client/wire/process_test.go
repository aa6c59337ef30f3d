//go:build unix

package wire

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/codec"
	"go.uber.org/goleak"
)

const childEnv = "WIRE_TEST_CHILD"

// TestMain turns the test binary into the child process of the tests below.
func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		child(mode)
		return
	}
	os.Exit(m.Run())
}

// child answers requests on its standard input. Its modes are named where they are used.
func child(mode string) {
	if mode == "stubborn" || mode == "deaf" {
		signal.Ignore(syscall.SIGTERM)
	}
	fmt.Println(`{"jsonrpc":"2.0","method":"ready"}`)
	if mode == "deaf" {
		time.Sleep(time.Hour)
	}
	var held []string
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m codec.Message
		if codec.Decode(in.Bytes(), &m) != nil || m.Kind != codec.KindRequest {
			continue
		}
		line := string(codec.AppendResult(nil, m.ID, []byte(`{"for":`+string(m.ID)+`}`))) + "\r\n"
		switch {
		case mode == "die":
			fmt.Fprintln(os.Stderr, "out of cheese")
			os.Exit(3)
		case mode == "pairs" && len(held) == 0:
			held = append(held, line)
			continue
		case mode == "pairs":
			line, held = line+held[0], nil
		case mode == "noisy":
			line = "starting up\n\n" + `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + line
		case mode == "silent":
			continue
		}
		fmt.Print(line)
	}
	if mode == "stubborn" || mode == "term" {
		time.Sleep(time.Hour)
	}
}

// startChild starts a child and waits until it is ready.
func startChild(t *testing.T, mode string, o *ProcessOptions) *Process {
	t.Helper()
	t.Setenv(childEnv, mode)
	if o == nil {
		o = &ProcessOptions{}
	}
	ready := make(chan struct{})
	hand := o.OnMessage
	o.OnMessage = func(p *Process, m *codec.Message) {
		if string(m.Method) == "ready" {
			close(ready)
		} else if hand != nil {
			hand(p, m)
		}
	}
	p, err := Start([]string{os.Args[0]}, o)
	if err != nil {
		t.Fatal(err)
	}
	<-ready
	return p
}

func callChild(p *Process, id int, wait time.Duration, rep *Reply) error {
	token := strconv.AppendInt(nil, int64(id), 10)
	return p.Call(token, codec.AppendRequest(nil, token, "x", nil), time.Now().Add(wait), rep)
}

// TestProcessCorrelates has calls in flight at once, each of which is answered after a later one.
func TestProcessCorrelates(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	p := startChild(t, "pairs", nil)
	var wg sync.WaitGroup
	for w := range 2 { // two, so that every pair holds one call of each
		wg.Go(func() {
			var rep Reply
			for i := range 100 {
				id := 1 + w + 2*i
				if err := callChild(p, id, 10*time.Second, &rep); err != nil {
					t.Errorf("call %d: %v", id, err)
					return
				}
				if want := fmt.Sprintf(`{"for":%d}`, id); string(rep.Message.Result) != want {
					t.Errorf("call %d = %s, want %s", id, rep.Message.Result, want)
				}
				if rep.Done.Before(rep.FirstByte) || rep.FirstByte.Before(rep.Sent) {
					t.Errorf("call %d: instants out of order", id)
				}
			}
		})
	}
	wg.Wait()
	if err := p.Close(); err != nil {
		t.Errorf("Close = %v, want nil: the child ends with its input", err)
	}
}

// TestProcessNoise passes over lines that are no message and hands over those that are no response.
func TestProcessNoise(t *testing.T) {
	var methods []string
	p := startChild(t, "noisy", &ProcessOptions{OnMessage: func(p *Process, m *codec.Message) {
		methods = append(methods, string(m.Method)+" "+string(m.ID))
		_ = p.Send(codec.AppendResult(nil, m.ID, []byte("{}")))
	}})
	var rep Reply
	if err := callChild(p, 1, 10*time.Second, &rep); err != nil || string(rep.Message.Result) != `{"for":1}` {
		t.Errorf("call = %s, %v", rep.Message.Result, err)
	}
	_ = p.Close()
	if got := strings.Join(methods, ","); got != "ping 1" {
		t.Errorf("messages handed over = %q, want the ping", got)
	}
}

// TestProcessEnds covers how calls fail and what ending a process takes.
func TestProcessEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, tt := range []struct{ mode, kind, call, close string }{
		{"die", "transport", "exit status 3), its last words: out of cheese", ""},
		{"silent", "timeout", "", ""},
		{"term", "", "", "SIGTERM ended it"},
		{"stubborn", "", "", "SIGKILL ended it"},
		{"deaf", "timeout", "", "SIGKILL ended it"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			grace := 200 * time.Millisecond
			if tt.close == "" {
				grace = 10 * time.Second // it ends by itself
			}
			p := startChild(t, tt.mode, &ProcessOptions{Grace: grace})
			var rep Reply
			wait := 10 * time.Second
			if tt.kind == "timeout" {
				wait = 100 * time.Millisecond
			}
			err := callChild(p, 1, wait, &rep)
			var we *Error
			kind := ""
			if errors.As(err, &we) {
				kind = we.Kind.String()
			}
			if kind != tt.kind || err != nil && !strings.Contains(err.Error(), tt.call) {
				t.Errorf("%s: call = %v (%s), want %s %q", tt.mode, err, kind, tt.kind, tt.call)
			}
			err = p.Close()
			if (err == nil) != (tt.close == "") || err != nil && !strings.Contains(err.Error(), tt.close) {
				t.Errorf("%s: Close = %v, want %q", tt.mode, err, tt.close)
			}
			if err := syscall.Kill(p.PID(), 0); err == nil {
				t.Errorf("%s: process %d is still there after Close", tt.mode, p.PID())
			}
			if err := callChild(p, 2, time.Second, &rep); err == nil {
				t.Errorf("%s: a call after Close succeeded", tt.mode)
			}
		})
	}
}

// TestProcessAbort ends the calls in flight at once.
func TestProcessAbort(t *testing.T) {
	p := startChild(t, "silent", nil)
	go func() {
		time.Sleep(50 * time.Millisecond)
		p.Abort()
	}()
	var rep Reply
	err := callChild(p, 1, 10*time.Second, &rep)
	if got := resultText(&rep, err); got != "aborted" {
		t.Errorf("call under Abort = %q (%v), want aborted", got, err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := Start([]string{"/no/such/command"}, nil); resultText(&rep, err) != "dial" {
		t.Errorf("Start of nothing = %v, want kind dial", err)
	}
}
