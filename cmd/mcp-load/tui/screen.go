// Package tui shows a run on a terminal while it is under way: a full screen that is repainted a few times a second, and
// that leaves the terminal as it was.
package tui

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/mcpengine/mcpengine/bench"
)

const (
	repaintEvery = 200 * time.Millisecond
	framesPerS   = 10
	endWithin    = 2 * time.Second // that the terminal gets to take the last frame
)

// Header is what the screen says about the run from its beginning.
type Header struct {
	Target   string
	Load     string  // such as "open loop, 500/s constant"
	Details  string  // sessions, protocol, tools
	RateRPS  float64 // asked for; 0 in a closed loop
	Duration time.Duration
}

// Screen shows one run. Its methods may be called from any goroutine, and none of them waits for the terminal but End.
type Screen struct {
	feed    *feed
	program *tea.Program
	done    chan struct{}
	err     error // valid when done is closed
}

// Start takes over the terminal: in is where keys come from, out is where the screen is drawn. interrupt is called once
// when q or Ctrl-C is pressed, and asks the run to end; pressed a second time, the terminal is given back and abandon is
// called. Neither may block.
func Start(in, out *os.File, h Header, interrupt, abandon func()) *Screen {
	f := &feed{}
	m := &model{header: h, feed: f, interrupt: interrupt, width: 80, height: 24}
	s := &Screen{feed: f, done: make(chan struct{})}
	s.program = tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler(), tea.WithFPS(framesPerS))
	go func() {
		defer close(s.done)
		_, s.err = s.program.Run() // a panic in it is caught, and the terminal restored
		if m.abandoned {
			abandon()
		}
	}()
	return s
}

// Progress takes a look at the run; the screen shows the newest.
func (s *Screen) Progress(p bench.Progress) { s.feed.progress(p) }

// Warning keeps a line that the screen shows, and that End repeats.
func (s *Screen) Warning(text string) { s.feed.warning(text) }

// End gives the terminal back as it was, and returns the warnings, which have gone with the screen. The error says that the
// screen itself has failed, which a run survives.
func (s *Screen) End() (warnings []string, err error) {
	s.program.Quit()
	select {
	case <-s.done:
	case <-time.After(endWithin):
		s.program.Kill() // restores the terminal as well
		<-s.done
	}
	if s.err != nil && !errors.Is(s.err, tea.ErrProgramKilled) {
		err = fmt.Errorf("the live view has failed: %w", s.err)
	}
	return s.feed.allWarnings(), err
}

// feed is what the run tells and the screen reads.
type feed struct {
	mu       sync.Mutex
	newest   bench.Progress // guarded by mu
	any      bool           // guarded by mu: newest is one
	spark    history        // guarded by mu
	warnings []string       // guarded by mu
}

const mostWarnings = 20

func (f *feed) progress(p bench.Progress) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.any || p.Phase != f.newest.Phase && p.Phase == bench.PhaseWarmup {
		f.spark = history{}
	}
	if p.Phase == bench.PhaseClosing && f.any { // it knows of nothing but sessions
		old := f.newest
		old.Phase, old.Elapsed, old.Total, old.Sessions, old.Wanted = p.Phase, p.Elapsed, p.Total, p.Sessions, p.Wanted
		old.InFlight = 0
		f.newest = old
		return
	}
	f.newest, f.any = p, true
	if p.Phase == bench.PhaseMeasuring {
		f.spark.add(p)
	}
}

func (f *feed) warning(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.warnings) < mostWarnings {
		f.warnings = append(f.warnings, text)
	}
}

func (f *feed) allWarnings() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.warnings
}

// look copies what there is to see.
func (f *feed) look() (p bench.Progress, spark history, warnings []string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest, f.spark.clone(), f.warnings, f.any
}
