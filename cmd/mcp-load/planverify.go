package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/plan"
	"github.com/mcpengine/mcpengine/bench/replica"
)

// mostVerified bounds the replicas that --verify starts on this machine.
const mostVerified = 64

// try starts the planned replicas and offers them the target; then it does the same with one less. The plan is verified
// when the first meets the objectives and the second does not.
func (f *planFlags) try(ctx context.Context, res *bench.Result, stderr io.Writer) error {
	p := res.Plan
	if p.Replicas > mostVerified {
		return usageError("--verify starts at most %d replicas on one machine, and the plan has %d: verify a smaller target", mostVerified, p.Replicas)
	}
	replicas, err := replica.Start(ctx, f.command, p.Replicas)
	switch {
	case errors.Is(err, replica.ErrNoPlaceholder):
		return usageError("%v", err)
	case err != nil:
		return &exitError{exitRuntime, fmt.Sprintf("--verify: %v", err)}
	}
	defer func() { replica.Stop(replicas) }()
	v := &plan.Verification{OfferedRPS: p.Target.RateRPS, Users: p.Target.Users}
	enough, err := f.offer(ctx, res, replicas, stderr)
	if err != nil {
		return err
	}
	v.Enough = *enough
	p.Verification = v
	if n := len(replicas); n > 1 {
		replica.Stop(replicas[n-1:])
		replicas = replicas[:n-1]
		if v.OneLess, err = f.offer(ctx, res, replicas, stderr); err != nil {
			p.Verification = nil
			return err
		}
	}
	err = conclude(v)
	p.Answer += " " + v.Text
	return err
}

// conclude says what the trials have shown, and gives the exit code: 98 where the generator was at fault, 99 where the
// plan is not what it says.
func conclude(v *plan.Verification) error {
	k := v.Enough.Replicas
	switch less := v.OneLess; {
	case !v.Enough.OK && !v.Enough.Valid:
		v.Text = "Not verified: the generator was at fault."
		return &exitError{exitInvalid, ""}
	case !v.Enough.OK:
		v.Text = fmt.Sprintf("The plan does not hold: %d are not enough.", k)
		return &exitError{exitThreshold, ""}
	case less == nil:
		v.OK, v.Text = true, "Verified: one is enough, and there is no smaller number."
	case less.OK:
		v.Text = fmt.Sprintf("%d are enough, but %d were as well: a replica holds more than was measured.", k, less.Replicas)
		return &exitError{exitThreshold, ""}
	case !less.Valid:
		v.Text = fmt.Sprintf("%d are enough; with %d the generator was at fault, so that is not known.", k, less.Replicas)
		return &exitError{exitInvalid, ""}
	default:
		v.OK, v.Text = true, fmt.Sprintf("Verified: %d are enough, and %d are not.", k, less.Replicas)
	}
	return nil
}

// offer puts a router before the replicas and offers the target through it.
func (f *planFlags) offer(ctx context.Context, res *bench.Result, replicas []*replica.Process, stderr io.Writer) (*plan.Trial, error) {
	var addresses []string
	for _, r := range replicas {
		addresses = append(addresses, r.Address)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, &exitError{exitRuntime, fmt.Sprintf("the router cannot listen: %v", err)}
	}
	router := &http.Server{Handler: replica.NewRouter(addresses), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		_ = router.Serve(listener) // until it is closed
		close(served)
	}()
	defer func() {
		_ = router.Close() // the sessions have ended
		<-served
	}()
	c := f.load(res, len(replicas))
	c.URL = "http://" + listener.Addr().String() + f.path
	view := newStepView(f.live, stderr)
	c.OnProgress, c.OnWarning = view.progress, view.warning
	t, err := bench.TryLoad(ctx, *c)
	view.end()
	if err != nil {
		return nil, runError(ctx, err)
	}
	t.Replicas = len(replicas)
	return t, nil
}

// load turns the target into a configuration for k replicas.
func (f *planFlags) load(res *bench.Result, k int) *bench.Config {
	p, cond := res.Plan, &res.Conditions
	c := &bench.Config{
		Duration: f.verifyTime, Warmup: max(f.verifyTime/10, time.Second), Thresholds: p.Objectives, Protocol: cond.Protocol,
		Timeout: time.Duration(cond.TimeoutS * float64(time.Second)), Arrivals: bench.Arrivals(cond.Arrivals), Version: version,
		Seed: cond.Seed,
	}
	if f.args != "" {
		c.Args = json.RawMessage(f.args)
	}
	for _, t := range f.tools {
		c.Tools = append(c.Tools, parseTool(t))
	}
	if len(f.tools) == 0 {
		for _, name := range cond.Tools {
			c.Tools = append(c.Tools, bench.ToolChoice{Name: name, Weight: 1})
		}
	}
	switch t := p.Target; {
	case t.Users > 0 && t.RateRPS == 0 && t.Sessions <= t.Users:
		c.Users, c.ThinkTime = t.Users, bench.Think{Mean: time.Duration(p.ThinkS * float64(time.Second)), Exponential: true}
		c.Warmup += c.ThinkTime.Mean
	default:
		c.Rate = max(p.PerReplica.RateRPS*float64(p.Replicas), 1)
		sessions := max(t.Sessions, t.Users, 4*k)
		c.Sessions = (sessions + k - 1) / k * k // as many for each replica
	}
	return c
}
