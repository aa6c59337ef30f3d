package selfcheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

const (
	impossibleRate = 1_000_000
	impossibleCap  = 256 // connections; without a cap it would be all descriptors of this machine
)

// impossible is oracle 3: a rate that cannot be offered is INVALID, because less was delivered than was asked for.
func (s *session) impossible(ctx context.Context) error {
	s.OnStep("oracle 3: an impossible rate")
	res, err := s.against(ctx, bench.Config{Rate: impossibleRate, Duration: 500 * time.Millisecond, MaxInFlight: impossibleCap})
	if err != nil {
		return err
	}
	v := &res.Verdict
	s.holds(3, "an impossible rate is INVALID (exit 98)", !v.Valid, excuse{})
	s.count(3, "delivered of 1,000 asked for", int64(1000*v.DeliveredRPS/v.AskedRPS), 0, 0, 989, excuse{})
	return nil
}

const (
	sessionBytes = 1 << 20
	sessionsFew  = 16
	sessionsMany = 80
	sessionsMost = 90
)

// sessions is oracle 6 in small: memory per session, the limit of sessions, and when idle ones expire.
func (s *session) sessions(ctx context.Context) error {
	s.OnStep("oracle 6: sessions")
	p, err := s.Start(ctx, "--bytes-per-session", fmt.Sprint(sessionBytes), "--max-sessions", fmt.Sprint(sessionsMost))
	if err != nil {
		return err
	}
	defer p.Stop()
	var resident [2]float64
	for i, n := range []int{sessionsFew, sessionsMany} {
		res, err := s.offer(ctx, p, bench.Config{Concurrency: 1, Sessions: n, Requests: 10, ServerPID: p.PID})
		switch {
		case err != nil:
			return err
		case res.Server == nil:
			return fmt.Errorf("the memory of process %d cannot be read", p.PID)
		}
		resident[i] = float64(res.Server.RSSEndBytes)
	}
	slope := (resident[1] - resident[0]) / (sessionsMany - sessionsFew)
	s.count(6, "KiB for each session", int64(slope/1024), 973, 1024, 1075, excuse{})
	full, err := s.offer(ctx, p, bench.Config{Concurrency: 1, Sessions: sessionsMost + 10, Requests: 1})
	if err != nil {
		return err
	}
	s.exact(6, "sessions at once", full.Sessions.Opened, sessionsMost)
	s.exact(6, "sessions refused of 10 too many", full.Sessions.Failed, 10)
	return s.expiry(ctx)
}

// expiry calls with pauses that are a fifth shorter, and a fifth longer, than a session lives without a call.
func (s *session) expiry(ctx context.Context) error {
	const calls = 3
	var lost [2]int64
	var errs [2]error
	machine := startProbe()
	var runs sync.WaitGroup
	for i, share := range []float64{0.8, 1.2} {
		runs.Go(func() {
			pause := time.Duration(share * float64(s.form.idle))
			res, err := s.against(ctx, bench.Config{Users: 1, ThinkTime: bench.Think{Mean: pause}, Requests: calls},
				"--idle-ttl", s.form.idle.String())
			if errs[i] = err; err == nil {
				lost[i] = res.Sessions.Lost
			}
		})
	}
	runs.Wait()
	busy := held(delay{machine.end().At(100), waits}, s.form.idle/5)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	s.count(6, fmt.Sprintf("lost with pauses of 80 %% of %s", s.form.idle), lost[0], 0, 0, 0, busy)
	s.count(6, "lost with pauses of 120 %", lost[1], calls-1, calls, calls, busy) // the first pause may be shorter
	return nil
}

const (
	events      = 20
	eventGap    = 20 * time.Millisecond
	eventFirst  = 50 * time.Millisecond
	streamCount = 10
	subscribers = 25
)

// streams is oracle 10: what the peer sends of its own accord is counted, what it leaves out is found, and a change
// reaches every subscriber.
func (s *session) streams(ctx context.Context) error {
	s.OnStep("oracle 10: streams")
	window := eventFirst + events*eventGap + 500*time.Millisecond
	machine := startProbe()
	res, err := s.against(ctx, bench.Config{Rate: 10, Sessions: streamCount, Streams: true, Duration: window},
		"--events", fmt.Sprint(events), "--gap", eventGap.String(), "--first", eventFirst.String(), "--drop", "7")
	noise := delay{machine.end().At(50), waits}
	if err != nil {
		return err
	}
	got := &res.Streams
	s.exact(10, "streams open at once", got.OpenPeak, streamCount)
	s.exact(10, "events, 1 of 20 dropped on 10 streams", got.Events, streamCount*(events-1))
	s.exact(10, "dropped events that were found", got.Lost, streamCount)
	s.exact(10, "events counted twice", got.Duplicated, 0)
	s.duration(10, "gap between events: p50", ofMicros(float64(got.Gap.P50US)), eventGap, 0.05, noise, invalid(res))
	return s.change(ctx)
}

// change makes one change while sessions that have subscribed to it are open.
func (s *session) change(ctx context.Context) error {
	p, err := s.Start(ctx)
	if err != nil {
		return err
	}
	defer p.Stop()
	var change error
	var once sync.Once
	var changing sync.WaitGroup
	res, err := s.offer(ctx, p, bench.Config{
		Rate: 10, Sessions: subscribers, Streams: true, Subscribe: []string{"mock://changing"}, Duration: 1500 * time.Millisecond,
		Tools: []bench.ToolChoice{{Name: "echo", Weight: 1}},
		OnProgress: func(at bench.Progress) {
			if at.Phase != bench.PhaseMeasuring {
				return
			}
			once.Do(func() {
				changing.Go(func() {
					_, change = s.offer(ctx, p, bench.Config{Concurrency: 1, Requests: 1, Tools: []bench.ToolChoice{{Name: "touch", Weight: 1}}})
				})
			})
		},
	})
	changing.Wait()
	if err != nil {
		return err
	}
	if change != nil {
		return change
	}
	s.exact(10, "changes heard of", res.Streams.Changes, 1)
	s.exact(10, "subscribers who heard of it", res.Streams.Events, subscribers)
	return nil
}

const (
	mergeWorkers = 7
	mergeSamples = 20_000
)

// merging is oracle 12, the half that a run depends on: samples that were recorded by several workers and merged equal
// one histogram of all, bit for bit.
func (s *session) merging(context.Context) error {
	s.OnStep("oracle 12: merging")
	rng := rand.New(rand.NewPCG(seed, 12))
	single := bench.NewHistogram()
	workers := make([]*bench.Histogram, mergeWorkers)
	for i := range workers {
		workers[i] = bench.NewHistogram()
	}
	for range mergeSamples {
		d := time.Duration(rng.ExpFloat64() * float64(20*time.Millisecond))
		single.Record(d, 1)
		workers[rng.IntN(mergeWorkers)].Record(d, 1)
	}
	sum := bench.NewHistogram()
	for _, w := range workers {
		sum.Merge(w)
	}
	got, want := sum.Dist(), single.Dist()
	s.exact(12, fmt.Sprintf("samples of %d workers", mergeWorkers), got.Count, mergeSamples)
	s.holds(12, "merged histogram equals that of all", got.HDR == want.HDR && got.P99US == want.P99US, excuse{})
	return nil
}
