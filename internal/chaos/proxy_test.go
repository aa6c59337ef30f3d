package chaos_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/mcpengine/mcpengine/internal/chaos"
)

// TestPlan checks that a seed makes a plan, that another seed makes another one,
// and that each kind of fault has a place in it.
func TestPlan(t *testing.T) {
	const n = 1000
	plan, again, other := chaos.Plan{Seed: 1, Longest: time.Second}, chaos.Plan{Seed: 1, Longest: time.Second}, chaos.Plan{Seed: 2, Longest: time.Second}
	seen := map[chaos.Kind]int{}
	differ := 0
	for i := range n {
		f := plan.Of(i)
		if got := again.Of(i); got != f {
			t.Errorf("Of(%d): got %+v, then %+v", i, f, got)
		}
		if other.Of(i) != f {
			differ++
		}
		if f.For < 0 || f.For > time.Second || f.After < 0 || f.Portion < 1 {
			t.Errorf("Of(%d): got %+v", i, f)
		}
		seen[f.Kind]++
	}
	for k := chaos.None; k <= chaos.Delay; k++ {
		if seen[k] < n/50 {
			t.Errorf("%s: got %d of %d, want at least %d", k, seen[k], n, n/50)
		}
	}
	if differ < n/2 {
		t.Errorf("another seed differs in %d of %d faults", differ, n)
	}
}

// echoServer gives back what it gets, and closes when that has ended.
func echoServer(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// planWhere finds a plan by the fault of its first connection.
func planWhere(longest time.Duration, wanted func(chaos.Fault) bool) (chaos.Plan, chaos.Fault) {
	for p := (chaos.Plan{Longest: longest}); ; p.Seed++ {
		if f := p.Of(0); wanted(f) {
			return p, f
		}
	}
}

// through sends some bytes through a proxy to a server that gives them back, and
// gives what comes.
func through(p *chaos.Proxy, sent []byte) (got []byte, client string, err error) {
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return nil, "", err // Refuse may be as quick as that
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	go func() {
		_, _ = conn.Write(sent)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	got, err = io.ReadAll(conn)
	return got, conn.LocalAddr().String(), err
}

// TestFaults has each kind of fault happen to a connection.
func TestFaults(t *testing.T) {
	target := echoServer(t)
	sent := bytes.Repeat([]byte("0123456789"), 1000)
	const all, exactly, some = "all", "exactly so much", "some"
	for _, c := range []struct {
		kind     chaos.Kind
		toServer bool
		want     string // how much comes back
	}{
		{chaos.None, false, all},
		{chaos.Refuse, false, some},
		{chaos.Reset, false, some}, {chaos.Reset, true, some},
		{chaos.Cut, false, some}, {chaos.Cut, true, some},
		{chaos.HalfClose, false, exactly}, {chaos.HalfClose, true, exactly},
		{chaos.Stall, false, all}, {chaos.Stall, true, all},
		{chaos.Trickle, false, all}, {chaos.Trickle, true, all},
		{chaos.Delay, false, all}, {chaos.Delay, true, all},
	} {
		plan, f := planWhere(200*time.Millisecond, func(f chaos.Fault) bool {
			return f.Kind == c.kind && f.ToServer == c.toServer && f.After < len(sent)/2
		})
		p, err := chaos.Listen(target, plan)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		got, client, err := through(p, sent)
		took := time.Since(begun)
		least, most := len(sent), len(sent)
		switch c.want {
		case some:
			least, most = 0, f.After
		case exactly:
			least, most = f.After, f.After
		}
		if len(got) < least || len(got) > most || !bytes.HasPrefix(sent, got) || c.want != some && err != nil {
			t.Errorf("%+v: got %d bytes back, %v; want %s", f, len(got), err, c.want)
		}
		if c.kind == chaos.Stall && took < f.For {
			t.Errorf("%+v: took %v", f, took)
		}
		if since, hit := p.Hit(client); client != "" && hit != (c.kind != chaos.None) || hit && since.Before(begun) {
			t.Errorf("%+v: Hit: got %v, %t", f, since, hit)
		}
		p.Close()
		if counts, _ := p.Counts(); counts[chaos.None] != 1 || counts[c.kind] != 1 {
			t.Errorf("%+v: Counts: got %v", f, counts)
		}
	}
}

// TestCalm ends a stall of an hour, and leaves nothing behind.
func TestCalm(t *testing.T) {
	target := echoServer(t)
	sent := bytes.Repeat([]byte("x"), 10_000)
	goroutines := runtime.NumGoroutine()
	plan, _ := planWhere(time.Hour, func(f chaos.Fault) bool { return f.Kind == chaos.Stall && f.After < 1000 })
	p, err := chaos.Listen(target, plan)
	if err != nil {
		t.Fatal(err)
	}
	calm := time.AfterFunc(50*time.Millisecond, p.Calm)
	defer calm.Stop()
	for i := range 20 {
		if got, _, err := through(p, sent); !bytes.Equal(got, sent) || err != nil {
			t.Errorf("connection %d: got %d bytes back, %v", i, len(got), err)
		}
	}
	p.Close()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("goroutines: got %d, want at most %d", runtime.NumGoroutine(), goroutines)
		}
	}
}
