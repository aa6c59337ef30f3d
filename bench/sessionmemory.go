package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

const (
	settleEvery  = 50 * time.Millisecond
	settleStable = 3     // readings in a row that hardly differ
	settleShare  = 0.001 // of the memory
	settleBytes  = 64 << 10
	settleMost   = 6 // times the settling time

	refusals      = 3 // in a row, of a server that is full
	refusalPause  = 200 * time.Millisecond
	stepsAtOnce   = 16
	defaultSteps  = 24
	defaultSettle = 300 * time.Millisecond
)

// memoryOf gives the function that reads the memory of the server, and what to call it; nil where it is not known.
func memoryOf(c *SessionsConfig) (read func() (uint64, error), name string, err error) {
	switch {
	case c.memory != nil:
		return c.memory, "test", nil
	case c.Cgroup != "":
		read = func() (uint64, error) { return cgroupMemory(c.Cgroup) }
		name = "cgroup " + c.Cgroup
	case c.ServerPID != 0:
		p, err := process.NewProcess(int32(c.ServerPID))
		if err != nil {
			return nil, "", usage("there is no process %d (--server-pid)", c.ServerPID)
		}
		read = func() (uint64, error) {
			m, err := p.MemoryInfo()
			if err != nil {
				return 0, err
			}
			return m.RSS, nil
		}
		name = fmt.Sprintf("process %d", c.ServerPID)
	default:
		return nil, "", nil
	}
	if _, err := read(); err != nil {
		return nil, "", usage("the memory of %s cannot be read: %v", name, err)
	}
	return read, name, nil
}

// cgroupMemory reads the working set of a cgroup of the second version: what is charged to it, without the file cache that
// the kernel would give up first. Kubernetes counts the same.
func cgroupMemory(folder string) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(folder, "memory.current"))
	if err != nil {
		return 0, err
	}
	all, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
	if err != nil {
		return 0, err
	}
	stat, err := os.ReadFile(filepath.Join(folder, "memory.stat"))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(stat) {
		if value, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("inactive_file ")); ok {
			cache, err := strconv.ParseUint(string(value), 10, 64)
			return all - min(cache, all), err
		}
	}
	return all, nil
}

// settled waits until the memory of the server stays the same, for a while at most, and gives the middle of the last
// readings.
func (m *sessionsRun) settled() (uint64, error) {
	if m.read == nil {
		pauseFor(m.ctx, m.cfg.Settle/3)
		return 0, nil
	}
	pauseFor(m.ctx, m.cfg.Settle)
	var last []uint64
	for until := time.Now().Add(settleMost * m.cfg.Settle); m.ctx.Err() == nil; pauseFor(m.ctx, settleEvery) {
		now, err := m.read()
		if err != nil {
			return 0, fmt.Errorf("the memory of the server's %s cannot be read any more: %w", m.found.MemoryOf, err)
		}
		last = append(last, now)
		if n := len(last); n >= settleStable {
			last = last[n-settleStable:]
			spread := slices.Max(last) - slices.Min(last)
			if float64(spread) <= max(settleShare*float64(now), settleBytes) || time.Now().After(until) {
				break
			}
		}
	}
	if len(last) == 0 {
		return 0, m.ctx.Err()
	}
	slices.Sort(last)
	return last[len(last)/2], nil
}

// ramp opens sessions step by step, up to the first refusal or the highest number that was asked for, and fits a line to
// the memory.
func (m *sessionsRun) ramp() error {
	step := max(1, (m.cfg.Max+m.cfg.Steps-1)/m.cfg.Steps)
	refusal := m.hold.open(step)
	m.hold.end(m.hold.take(step)) // what the first sessions of all cost is not what one more costs
	if refusal != nil && !refusedBy(refusal) {
		return m.noRefusal(refusal)
	}
	if err := m.point(); err != nil {
		return err
	}
	refusal = nil
	for refusal == nil && m.ctx.Err() == nil && m.hold.size() < m.cfg.Max {
		refusal = m.hold.open(min(step, m.cfg.Max-m.hold.size()))
		m.found.Tried = max(m.found.Tried, m.hold.size())
		m.phase(fmt.Sprintf("%s open", plural(int64(m.hold.size()), "session")))
		if refusal != nil {
			if err := m.limit(refusal); err != nil {
				return err
			}
		}
		if err := m.point(); err != nil {
			return err
		}
	}
	m.line()
	return nil
}

// point notes the memory at the number of sessions that are open.
func (m *sessionsRun) point() error {
	memory, err := m.settled()
	if err != nil || m.read == nil || m.ctx.Err() != nil {
		return err
	}
	p := MemoryPoint{Sessions: m.hold.size(), Bytes: memory}
	if n := len(m.found.Points); n > 0 && m.found.Points[n-1].Sessions == p.Sessions {
		return nil // the limit was reached with the last step
	}
	m.found.Points = append(m.found.Points, p)
	return nil
}

// line fits the slope.
func (m *sessionsRun) line() {
	var x, y []float64
	for _, p := range m.found.Points {
		x, y = append(x, float64(p.Sessions)), append(y, float64(p.Bytes))
	}
	base, slope := fitLine(x, y)
	m.found.BaseBytes, m.found.BytesPerSession = round(base, 0), round(slope.value, 1)
	if slope.known {
		m.found.BytesPerSessionCI95 = &[2]float64{round(slope.low, 1), round(slope.high, 1)}
	}
}

// limit finds the exact number at which the server refuses: it opens one by one until several are refused in a row. Then
// it ends one session, and exactly one more has to fit.
func (m *sessionsRun) limit(refusal error) error {
	if !refusedBy(refusal) {
		return m.noRefusal(refusal)
	}
	c := m.hold.set.newCaller()
	defer m.hold.set.release(c)
	for refused := 0; refused < refusals && m.hold.size() < m.cfg.Max; {
		if !pauseFor(m.ctx, time.Duration(refused)*refusalPause) {
			return nil
		}
		switch _, err := m.hold.add(c); {
		case err == nil:
			refused = 0
		case refusedBy(err):
			refused++
			refusal = err
		default:
			return m.noRefusal(err)
		}
	}
	m.found.Tried = max(m.found.Tried, m.hold.size())
	m.found.Refusal = describe(refusal, &c.reply)
	if m.hold.size() >= m.cfg.Max {
		return nil // what it refused was something else
	}
	m.found.MaxSessions = m.hold.size()
	if m.hold.end(m.hold.take(1)) != 1 {
		return nil
	}
	_, first := m.hold.add(c)
	_, second := m.hold.add(c)
	m.found.Confirmed = first == nil && second != nil && refusedBy(second)
	return nil
}

// noRefusal tells what an error means that did not come from the server.
func (m *sessionsRun) noRefusal(err error) error {
	if m.ctx.Err() != nil {
		return nil
	}
	if exhausted(err) {
		m.reasons = append(m.reasons, fmt.Sprintf(
			"this machine has no descriptor or port left with %d sessions open: raise ulimit -n", m.hold.size()))
		return nil
	}
	return errors.New("with " + plural(int64(m.hold.size()),
		"session") + " open the server does not answer any more: " + describe(err, nil))
}
