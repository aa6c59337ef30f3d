package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

// TestDetectHTTP: what a server makes of server/discover decides which era the client speaks.
func TestDetectHTTP(t *testing.T) {
	const once = "POST server/discover"
	const session = once + ", POST initialize, POST notifications/initialized"
	for _, test := range []struct {
		name, discover string
		protocol       string // in force, or "" where there is no connection
		seen           string
	}{
		{"modern", resultOf(frame{ID: []byte("%ID")}, discoverResult), "2026-07-28", once},
		{"both eras", `{"jsonrpc":"2.0","id":%ID,"result":{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{}}}`, "2026-07-28", once},
		{"modern without discover", "404 " + errorOf(-32601, ""), "2026-07-28", once},
		{"legacy by its own account", "400 " + errorOf(-32022, `{"supported":["2025-06-18"],"requested":"2026-07-28"}`), "2025-11-25", session},
		{"legacy in the list", `{"jsonrpc":"2.0","id":%ID,"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}}`, "2025-11-25", session},
		{"only what nobody knows", "400 " + errorOf(-32022, `{"supported":["2099-01-01"],"requested":"2026-07-28"}`), "", once},
		{"a version and its refusal", "400 " + errorOf(-32022, `{"supported":["2026-07-28"],"requested":"x"}`), "", once + ", " + once},
		{"headers are wrong", "400 " + errorOf(-32020, ""), "", once},
		{"capability is missing", "400 " + errorOf(-32021, `{"requiredCapabilities":{"roots":{}}}`), "", once},
		{"no session", "400 " + errorOf(-32000, ""), "2025-11-25", session},
		{"plain 400", "400 Bad Request", "2025-11-25", session},
		{"empty 400", "400 ", "2025-11-25", session},
		{"406", "406 ", "2025-11-25", session},
		{"404", "404 not here", "2025-11-25", session},
		{"405", "405 ", "2025-11-25", session},
		{"500", "500 oops", "2025-11-25", session},
		{"accepted", "202 ", "2025-11-25", session},
		{"unknown method", errorOf(-32601, ""), "2025-11-25", session},
		{"bad params", errorOf(-32602, ""), "2025-11-25", session},
		{"a result of everything", `{"jsonrpc":"2.0","id":%ID,"result":{}}`, "2025-11-25", session},
		{"a page", "<html>", "2025-11-25", session},
		{"no rights", "401 ", "", once},
		{"forbidden", "403 ", "", once},
		{"busy", "503 ", "", once},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &modernServer{discover: test.discover}
			s.answer = func(f frame, _ http.Header) string {
				if f.Method == "initialize" {
					return resultOf(f, initResult)
				}
				return "202 "
			}
			c, err := connectModern(t, s, client.Options{Protocol: client.ProtocolAuto, NoStream: true, NoFallback: true})
			got := ""
			if err == nil {
				got = c.Server().Protocol
			}
			if got != test.protocol {
				t.Errorf("got protocol %q (%v), want %q", got, err, test.protocol)
			}
			if got := s.log(); got != test.seen {
				t.Errorf("requests: got %s, want %s", got, test.seen)
			}
		})
	}
}

// TestExplicitStateless does not fall back, and says why.
func TestExplicitStateless(t *testing.T) {
	s := &modernServer{discover: "400 Bad Request: no session"}
	s.answer = func(frame, http.Header) string { return "500 " }
	_, err := connectModern(t, s, client.Options{})
	var status *client.HTTPError
	if !errors.As(err, &status) || status.Status != 400 || s.log() != "POST server/discover" {
		t.Errorf("got %v after %s, want the status 400 after one request", err, s.log())
	}
}

// TestRetriesSupportedVersion: a server may refuse the very version that it names, once.
func TestRetriesSupportedVersion(t *testing.T) {
	refused := false
	s := &modernServer{}
	s.answer = func(f frame, _ http.Header) string {
		if !refused {
			refused = true
			return "400 " + errorOf(-32022, `{"supported":["2026-07-28"],"requested":"x"}`)
		}
		return resultOf(f, `{"content":[]}`)
	}
	c := mustConnectModern(t, s, client.Options{})
	if _, err := c.CallTool(t.Context(), "x", nil, nil); err != nil {
		t.Errorf("CallTool: %v", err)
	}
	if want := "POST server/discover, POST tools/call, POST tools/call"; s.log() != want {
		t.Errorf("requests: got %s, want %s", s.log(), want)
	}
}

// TestDetectPipe is the same on a pipe, where silence is an answer too.
func TestDetectPipe(t *testing.T) {
	for _, test := range []struct {
		name, reply string // to server/discover; %s is the id
		want        string
	}{
		{"modern", `{"jsonrpc":"2.0","id":%s,"result":` + discoverResult + `}`, "2026-07-28"},
		{"unknown method", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"m"}}`, "2025-11-25"},
		{"bad params", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"m"}}`, "2025-11-25"},
		{"legacy by its own account", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"m","data":{"supported":["2025-11-25"]}}}`, "2025-11-25"},
		{"unknown version", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"m","data":{"supported":["2099-01-01"]}}}`, ""},
		{"silence", "", "2025-11-25"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				p := &peer{t: t, conn: theirs, r: bufio.NewReader(theirs)}
				done := make(chan struct{})
				go func() {
					defer close(done)
					f := p.expect("server/discover")
					if test.reply != "" {
						p.write(fmt.Sprintf(test.reply, f.ID))
					}
					if test.want == "2025-11-25" {
						p.write(resultOf(p.expect("initialize"), initResult))
						p.expect("notifications/initialized")
					}
				}()
				begun := time.Now()
				c, err := client.ConnectPipe(t.Context(), ours, &client.Options{Protocol: client.ProtocolAuto})
				got := ""
				if err == nil {
					got = c.Server().Protocol
					closeClient(t, c)
				}
				<-done
				if got != test.want {
					t.Errorf("got %q (%v), want %q", got, err, test.want)
				}
				if took := time.Since(begun); test.name == "silence" && took != 3*time.Second {
					t.Errorf("gave the probe %v, want 3s", took)
				}
			})
		})
	}
}

// TestDetectSpawn: a server that ends at the first thing that is not initialize is started again.
func TestDetectSpawn(t *testing.T) {
	noLeaks(t)
	for _, kind := range []string{"usual", "dies of discover"} {
		c, err := client.Spawn(t.Context(), []string{os.Args[0]}, &client.Options{
			Protocol: client.ProtocolAuto, ProbeTimeout: 500 * time.Millisecond, Env: append(os.Environ(), childVar+"="+kind),
		})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if got := c.Server().Protocol; got != "2025-11-25" {
			t.Errorf("%s: got %s, want 2025-11-25", kind, got)
		}
		if err := c.Close(context.Background()); err != nil {
			t.Errorf("%s: Close: %v", kind, err)
		}
	}
}
