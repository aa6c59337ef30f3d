package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// fullEnv asks for tests in their full size, which takes minutes.
const fullEnv = "MCP_LOAD_FULL"

// size gives how much of something a test uses.
func size(short, full int) int {
	if os.Getenv(fullEnv) != "" {
		return full
	}
	return short
}

// legacyClient posts messages and knows no more than its session id.
type legacyClient struct {
	http    *http.Client
	url     string
	session string
}

// post sends a message. status is 0 where there was no response.
func (c *legacyClient) post(body string) (status int, text string, header http.Header) {
	r, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), nil
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return response.StatusCode, string(raw), response.Header
}

// open opens a session.
func (c *legacyClient) open(revision string) error {
	c.session = ""
	status, text, header := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + revision +
		`","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if status != http.StatusOK {
		return fmt.Errorf("initialize: %d %s", status, text)
	}
	c.session = header.Get("Mcp-Session-Id")
	if status, text, _ := c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		return fmt.Errorf("initialized: %d %s", status, text)
	}
	return nil
}

// echo calls the tool. answered tells that the answer is that of the call.
func (c *legacyClient) echo(word string) (status int, answered bool) {
	status, text, _ := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"` + word + `"}}}`)
	return status, strings.Contains(text, `"text":"`+word+`"`)
}

func newHTTPClient(t *testing.T) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 20 * time.Second}
}

// freeAddress gives an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// keyFile writes a file with a new key and gives its path.
func keyFile(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	path := filepath.Join(t.TempDir(), "keys")
	text := "# made for a test\n\n" + base64.StdEncoding.EncodeToString(key) + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRestartUnderLoad kills a server without warning while its sessions call,
// and starts another in its place. With keys every session goes on with its id;
// without, every one is told that it is gone. In either case only calls in
// flight at the kill are lost, and no call gets another's answer.
func TestRestartUnderLoad(t *testing.T) {
	sessions := size(200, 1000)
	for _, sealed := range []bool{true, false} {
		args := []string{"--http", freeAddress(t)}
		if sealed {
			args = append(args, "--session-keys", keyFile(t), "--store", "file:"+filepath.Join(t.TempDir(), "sessions.db"))
		}
		first := startServed(t, "", args...)
		url := first.endpoint(t)
		client := newHTTPClient(t)
		clients := make([]*legacyClient, sessions)
		revisions := []string{"2025-03-26", "2025-11-25"}
		for i := range clients {
			clients[i] = &legacyClient{http: client, url: url}
			if err := clients[i].open(revisions[i%2]); err != nil {
				t.Fatal(err)
			}
		}

		var ok, lost, wrong, killed atomic.Int64
		var phase atomic.Int32 // 1 from the kill on, 2 when the new server is ready
		restarted := make(chan struct{})
		verdicts := make([]int, sessions)
		var workers sync.WaitGroup
		const each = 20 // sessions of one worker
		for from := 0; from < sessions; from += each {
			workers.Go(func() {
				call := func(i int) (status int) {
					begun := phase.Load()
					status, answered := clients[i].echo(fmt.Sprint("word-", i))
					switch {
					case answered:
						ok.Add(1)
					case status == 200:
						wrong.Add(1)
					case status == 0 && begun == 0:
						killed.Add(1)
					case status == 0 && begun == 2:
						lost.Add(1)
					}
					return status
				}
				for phase.Load() == 0 {
					for i := from; i < min(from+each, sessions); i++ {
						if phase.Load() == 0 {
							call(i)
						}
					}
				}
				<-restarted
				for i := from; i < min(from+each, sessions); i++ {
					verdicts[i] = call(i)
				}
			})
		}
		time.Sleep(500 * time.Millisecond) // of load
		phase.Store(1)
		_ = first.cmd.Process.Kill()
		_ = first.cmd.Wait()
		second := startServed(t, "", args...)
		second.endpoint(t)
		phase.Store(2)
		close(restarted)
		workers.Wait()

		want, stranded := http.StatusOK, 0
		if !sealed {
			want = http.StatusNotFound
		}
		for _, got := range verdicts {
			if got != want {
				stranded++
			}
		}
		t.Logf("sealed %t: %d sessions, %d calls answered, %d in flight at the kill lost, %d lost later, %d not as they should be",
			sealed, sessions, ok.Load(), killed.Load(), lost.Load(), stranded)
		if stranded != 0 || lost.Load() != 0 || wrong.Load() != 0 || killed.Load() > int64(sessions/each) || ok.Load() < int64(sessions) {
			t.Errorf("sealed %t: %d sessions were not answered with %d, %d calls lost, %d answered wrongly",
				sealed, stranded, want, lost.Load(), wrong.Load())
		}
		if sealed {
			checkBatches(t, clients[0], clients[1])
		}
		_ = second.cmd.Process.Kill()
		_ = second.cmd.Wait()
	}
}

// checkBatches checks that each session still has the rules of its revision.
func checkBatches(t *testing.T, march, november *legacyClient) {
	t.Helper()
	batch := `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`
	if status, text, _ := march.post(batch); status != 200 || strings.Count(text, `"result"`) != 2 {
		t.Errorf("a batch in 2025-03-26: got %d %s, want two answers", status, text)
	}
	if status, text, _ := november.post(batch); status != 400 || !strings.Contains(text, "-32600") {
		t.Errorf("a batch in 2025-11-25: got %d %s, want 400 and -32600", status, text)
	}
}

// TestDeletedStaysDeletedOverRestart deletes a session, kills the server, and
// finds the session deleted by the next one, which has the same file.
func TestDeletedStaysDeletedOverRestart(t *testing.T) {
	args := []string{"--http", freeAddress(t), "--session-keys", keyFile(t), "--store", "file:" + filepath.Join(t.TempDir(), "db")}
	first := startServed(t, "", args...)
	c := &legacyClient{http: newHTTPClient(t), url: first.endpoint(t)}
	if err := c.open("2025-11-25"); err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequest(http.MethodDelete, c.url, nil)
	r.Header.Set("Mcp-Session-Id", c.session)
	response, err := c.http.Do(r)
	if err != nil || response.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %v %v", response, err)
	}
	_ = response.Body.Close()
	_ = first.cmd.Process.Kill()
	_ = first.cmd.Wait()
	second := startServed(t, "", args...)
	second.endpoint(t)
	if status, _ := c.echo("x"); status != http.StatusNotFound {
		t.Errorf("after the restart: got %d, want 404", status)
	}
}

// TestDrainWithManyCalls ends a server by SIGTERM while 200 calls are in flight:
// all are answered, new work is refused meanwhile, /readyz says so, and the exit
// code is 0.
func TestDrainWithManyCalls(t *testing.T) {
	const calls = 200
	admin := freeAddress(t)
	s := startServed(t, "", "--http", "127.0.0.1:0", "--drain", "8s", "--admin", admin)
	url := s.endpoint(t)
	client := newHTTPClient(t)
	client.Transport.(*http.Transport).MaxConnsPerHost = 0
	var answered, refused atomic.Int64
	var begun sync.WaitGroup
	var workers sync.WaitGroup
	for range calls {
		begun.Add(1)
		c := &legacyClient{http: client, url: url}
		workers.Go(func() {
			err := c.open("2025-11-25")
			begun.Done()
			if err != nil {
				t.Error(err)
				return
			}
			status, text, _ := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":1500}}}`)
			if status == 200 && strings.Contains(text, `"result"`) {
				answered.Add(1)
			} else {
				t.Errorf("a call in flight: got %d %s", status, text)
			}
		})
	}
	begun.Wait()
	get := func(path string) (status int, text string) {
		response, err := client.Get("http://" + admin + path)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		raw, _ := io.ReadAll(response.Body)
		return response.StatusCode, string(raw)
	}
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, text := get("/metrics"); strings.Contains(text, fmt.Sprintf("mcp_requests_in_flight %d\n", calls)) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the calls did not come to be in flight")
		}
	}
	if status, _ := get("/readyz"); status != 200 {
		t.Errorf("/readyz: got %d, want 200", status)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	for deadline := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		if status, _ := get("/readyz"); status == http.StatusServiceUnavailable {
			break
		}
		if time.Now().After(deadline) {
			t.Error("/readyz never said that the server drains")
			break
		}
	}
	if status, _ := get("/healthz"); status != 200 {
		t.Errorf("/healthz while draining: got %d, want 200", status)
	}
	late := &legacyClient{http: client, url: url}
	if status, _, header := late.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"late","version":"1"}}}`); status == http.StatusServiceUnavailable && header.Get("Retry-After") != "" {
		refused.Add(1)
	}
	workers.Wait()
	if answered.Load() != calls || refused.Load() != 1 {
		t.Errorf("answered %d of %d calls, refused %d of 1", answered.Load(), calls, refused.Load())
	}
	if code := s.end(t); code != 0 {
		t.Errorf("exit code: got %d, want 0; stderr %s", code, s.stderr())
	}
}
