//go:build !race

package engine_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/mcpengine/mcpengine/actors"
	"github.com/mcpengine/mcpengine/codec"
	"github.com/mcpengine/mcpengine/engine"
)

// crowd is how many subscribers the budgets of updates are held with.
const crowd = 10_000

// updateBudget is how many allocations one update may cost: far fewer than there are
// subscribers, whose timers may need a goroutine or two.
const updateBudget = crowd / 100

// tally is the stream of many subscribers. It counts their frames, and the
// arrays which these are in.
type tally struct {
	mu     sync.Mutex
	frames int
	arrays map[*byte]bool
	last   string
}

func (s *tally) Send(frame []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	s.arrays[unsafe.SliceData(frame)] = true
	if s.last != string(frame) {
		s.last = string(frame)
	}
	return nil
}

func (*tally) Finish([]byte, int) {}
func (*tally) Flush()             {}

// take gives what was counted since the last time.
func (s *tally) take() (frames, arrays int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frames, arrays = s.frames, len(s.arrays)
	s.frames = 0
	clear(s.arrays)
	return frames, arrays
}

// crowded is an engine for as many subscribers to a:.
func crowded(t *testing.T) *engine.Engine {
	t.Helper()
	e, _ := newEngine(t, &engine.Options{Limits: actors.Limits{
		MaxSubscriptions: crowd, MaxListeners: crowd, SubscriptionMinInterval: time.Second,
	}})
	must(t, e.AddResource(engine.Resource{URI: "a:", Name: "a"},
		func(context.Context, *engine.Call, string) ([]engine.ResourceContents, error) { return nil, nil }))
	return e
}

// TestUpdateBudget has 10,000 sessions hear of updates to one resource. Each
// update is encoded once, for all of them, and costs them no allocation.
func TestUpdateBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := crowded(t)
		everybody := &tally{arrays: make(map[*byte]bool)}
		for i := range crowd {
			session, err := e.OpenSession(strconv.Itoa(i), nil)
			must(t, err)
			session.Attach(everybody)
			for _, frame := range []string{
				request("1", codec.MethodInitialize, `{"protocolVersion":"2025-11-25","capabilities":{}}`),
				request("2", codec.MethodResourcesSubscribe, `{"uri":"a:"}`),
			} {
				repeatedly(session, frame)()
			}
		}
		update := func() {
			e.ResourceUpdated("a:")
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		update()
		const want = `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:"}}`
		check(t, "the notification", everybody.last, want)
		_, _ = everybody.take()
		update()
		if frames, arrays := everybody.take(); frames != crowd || arrays != 1 {
			t.Errorf("an update: got %d frames in %d arrays, want %d in 1", frames, arrays, crowd)
		}
		if got := testing.AllocsPerRun(3, update); got > updateBudget {
			t.Errorf("an update to %d sessions: got %g allocations, want at most %d", crowd, got, updateBudget)
		}
	})
}

// TestListenBudget does so for subscriptions of the stateless era, whose frames
// differ in the subscription's id alone.
func TestListenBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := crowded(t)
		everybody := &tally{arrays: make(map[*byte]bool)}
		ctx, cancel := context.WithCancel(t.Context())
		frame := []byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:"]},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
		for range crowd {
			var m codec.Message
			must(t, codec.Decode(frame, &m))
			go e.ReceiveModern(ctx, nil, &m, nil, everybody)
		}
		synctest.Wait()
		if frames, _ := everybody.take(); frames != crowd {
			t.Fatalf("acknowledgements: got %d, want %d", frames, crowd)
		}
		update := func() {
			e.ResourceUpdated("a:")
			synctest.Wait()
		}
		update()
		check(t, "the notification", everybody.last, about("1", codec.NotifyResourceUpdated, `"uri":"a:"`))
		_, _ = everybody.take()
		update()
		if frames, _ := everybody.take(); frames != crowd {
			t.Errorf("an update: got %d frames, want %d", frames, crowd)
		}
		if got := testing.AllocsPerRun(3, update); got > updateBudget {
			t.Errorf("an update to %d listeners: got %g allocations, want at most %d", crowd, got, updateBudget)
		}
		cancel()
		synctest.Wait()
	})
}
