package chaos_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/engine"
	"github.com/mcpengine/mcpengine/engine/store/bolt"
)

// childEnv makes the test's own program a server: its value is the settings, and
// without an address in them standard input and output are served.
const childEnv = "MCPENGINE_CHAOS_CHILD"

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := childMain(text); err != nil {
			fmt.Fprintln(os.Stderr, "chaos child:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// childMain is the server process.
func childMain(text string) error {
	var set settings
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		return err
	}
	var store engine.SessionStore
	if set.Store != "" {
		file, err := bolt.Open(set.Store, nil)
		if err != nil {
			return err
		}
		store = file
	}
	s, err := newSite(set, store)
	if err != nil {
		return err
	}
	if set.Addr == "" {
		return errors.Join(s.serveLines(os.Stdin, os.Stdout), s.close())
	}
	l, err := net.Listen("tcp", set.Addr)
	if err != nil {
		return err
	}
	s.serve(l)
	mux := http.NewServeMux()
	mux.HandleFunc("/report", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.report()) })
	mux.HandleFunc("/settled", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.books.settled()) })
	mux.HandleFunc("/jump", func(_ http.ResponseWriter, r *http.Request) {
		ahead, _ := strconv.ParseInt(r.URL.Query().Get("to"), 10, 64)
		s.ahead.Store(ahead)
	})
	return http.ListenAndServe(set.Control, mux)
}

// child is a server process, which can be killed and started again.
type child struct {
	settings settings
	control  *http.Client

	mu     sync.Mutex // guards what follows
	cmd    *exec.Cmd
	stderr *tail
}

// freeAddress gives a loopback address that nobody listens on and that no
// outgoing connection gets by chance, since those have higher ports.
func freeAddress() (string, error) {
	for range 200 {
		addr := "127.0.0.1:" + strconv.Itoa(15000+rand.IntN(15000))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			return addr, l.Close()
		}
	}
	return "", errors.New("found no free port")
}

// start starts the process and waits until it answers. It gives what it holds
// while it is idle.
func (c *child) start() (report, error) {
	c.mu.Lock()
	text, _ := json.Marshal(c.settings)
	c.stderr = &tail{}
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c.cmd.Stderr = c.stderr
	err := c.cmd.Start()
	c.mu.Unlock()
	if err != nil {
		return report{}, err
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		r, err := c.report()
		if err == nil {
			return r, nil
		}
		if time.Now().After(deadline) {
			return r, fmt.Errorf("the server process did not answer: %w; its stderr: %s", err, c.stderr)
		}
	}
}

// kill ends the process without warning.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// ask asks the process on its control address.
func (c *child) ask(path string, answer any) error {
	response, err := c.control.Get("http://" + c.settings.Control + path)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if answer == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

func (c *child) report() (r report, err error) {
	err = c.ask("/report", &r)
	return r, err
}

func (c *child) settled() (violations []string, err error) {
	err = c.ask("/settled", &violations)
	return violations, err
}

// jump moves the clock, also that of the processes to come.
func (c *child) jump(to time.Duration) error {
	c.mu.Lock()
	c.settings.Ahead = to
	c.mu.Unlock()
	return c.ask("/jump?to="+strconv.FormatInt(int64(to), 10), nil)
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if over := len(t.text) - 4<<10; over > 0 {
		t.text = t.text[over:]
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
