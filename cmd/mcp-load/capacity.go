package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/spf13/cobra"
)

// capacityFlags holds the flags of capacity: those of run, and its own.
type capacityFlags struct {
	run     runFlags
	find    string
	step    time.Duration
	maxTime time.Duration
	sweep   string
}

// notForCapacity lists the flags of run that have no meaning for a search, which chooses the load itself.
var notForCapacity = []string{"concurrency", "users", "stage", "duration", "time", "requests", "streams", "max-in-flight", "overflow"}

const capacityHelp = `The highest rate, number of users or number of sessions that meets the objectives (--threshold).

A level meets them when every threshold holds, at least 99 % of the calls were begun on schedule, no backlog grew, and
the generator was not at fault. The search doubles the level, then halves the distance, repeats every step that is
neither clearly good nor clearly bad, and holds the answer once more at the end. Sessions stay open between the steps.

-r says where the search for a rate begins; with --find sessions it is the rate that stays the same (default 100/s).

--sweep holds a list of concurrent callers instead (or of users, with --think-time), twice each, and fits the
scalability curve X(N) = λN / (1 + σ(N-1) + κN(N-1)) to their throughputs.`

const capacityExample = `  mcp-load capacity http://127.0.0.1:8080/mcp --threshold 'p(99)<100ms'
  mcp-load capacity http://127.0.0.1:8080/mcp --find users --think-time 2s -o json=capacity.json
  mcp-load capacity http://127.0.0.1:8080/mcp --sweep
  mcp-load capacity --sweep=1,2,4,8,16,32 -- node server.js`

func newCapacityCommand(argv []string) *cobra.Command {
	f := &capacityFlags{}
	cmd := &cobra.Command{
		Use:     "capacity [flags] URL | -- CMD ARGS",
		Short:   "The highest rate, users or sessions that meet the objectives; --sweep fits the scalability curve",
		Long:    capacityHelp,
		Example: capacityExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.run.cfg.Argv = withoutSecrets(argv)
			c, outputs, err := f.finish(cmd, args)
			if err != nil {
				return err
			}
			return findCapacity(cmd.Context(), c, f.sweep != "", outputs, f.run.live, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.StringVar(&f.find, "find", "rate", "what to look for: rate, users or sessions")
	p.DurationVar(&f.step, "step", 0, "how long a level is held; default 5s, or up to twice that for the percentile")
	p.DurationVar(&f.maxTime, "max-time", 0, "of the whole search; default 2m30s")
	p.StringVar(&f.sweep, "sweep", "", "hold these numbers of callers instead, as --sweep=1,2,4,8,16,32")
	p.Lookup("sweep").NoOptDefVal = "auto"
	f.run.register(cmd)
	for _, name := range notForCapacity {
		if p.Lookup(name) != nil {
			_ = p.MarkHidden(name) // it exists
		}
	}
	return cmd
}

// finish turns what was typed into the configuration and the outputs.
func (f *capacityFlags) finish(cmd *cobra.Command, args []string) (*bench.CapacityConfig, []output, error) {
	for _, name := range notForCapacity {
		if cmd.Flags().Changed(name) {
			return nil, nil, usageError("--%s has no meaning here: capacity chooses the load itself (see mcp-load capacity --help)", name)
		}
	}
	for name, d := range map[string]time.Duration{"step": f.step, "max-time": f.maxTime} {
		if cmd.Flags().Changed(name) && d <= 0 {
			return nil, nil, usageError("--%s must be more than zero", name)
		}
	}
	if strings.HasPrefix(f.run.live, "web") {
		return nil, nil, usageError("--live web shows a single run: choose plain or off here, and -o html=FILE for a page at the end")
	}
	if cmd.ArgsLenAtDash() < 0 {
		args = f.levelsFrom(args)
	}
	if err := f.run.target(cmd, args); err != nil {
		return nil, nil, err
	}
	if len(f.run.protocols) > 1 {
		return nil, nil, usageError("capacity is looked for with one --protocol")
	}
	think := f.run.think
	f.run.think = "" // it belongs to the users of the search
	outputs, err := f.run.finish(cmd)
	if err != nil {
		return nil, nil, err
	}
	c := &bench.CapacityConfig{Config: f.run.cfg, Find: bench.Find(f.find), Step: f.step, MaxTime: f.maxTime}
	if c.Levels, err = parseLevels(f.sweep); err != nil {
		return nil, nil, err
	}
	if think == "" && c.Find == bench.FindUsers && f.sweep == "" {
		think = defaultThink
	}
	if think != "" {
		if c.ThinkTime, err = bench.ParseThink(think); err != nil {
			return nil, nil, usageError("--think-time: %v", err)
		}
	}
	return c, outputs, nil
}

var levelList = regexp.MustCompile(`^[0-9]+(,[0-9]+)+$`)

// levelsFrom takes the levels out of the arguments of somebody who wrote --sweep 1,2,4 with a blank, which the flag library
// does not take for the value of a flag that may have none.
func (f *capacityFlags) levelsFrom(args []string) []string {
	if i := slices.IndexFunc(args, levelList.MatchString); f.sweep == "auto" && i >= 0 {
		f.sweep = args[i]
		return slices.Delete(slices.Clone(args), i, i+1)
	}
	return args
}

// parseLevels reads 1,2,4; none for auto, and for no sweep.
func parseLevels(s string) ([]int, error) {
	if s == "" || s == "auto" {
		return nil, nil
	}
	var levels []int
	for _, part := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, usageError("--sweep=%s is not understood: write --sweep=1,2,4,8,16,32, or --sweep alone", s)
		}
		levels = append(levels, n)
	}
	return levels, nil
}

// findCapacity searches or sweeps, prints every step when it has ended and the answer at the end, and writes the files.
func findCapacity(ctx context.Context, c *bench.CapacityConfig, sweep bool, outputs []output, live string, stdout, stderr io.Writer) error {
	view := newStepView(live, stderr)
	c.OnProgress, c.OnWarning = view.progress, view.warning
	text := bench.NewCapacityText(stdout, isTerminal(stdout))
	c.OnStart = func(full *bench.CapacityConfig, at bench.Conditions, single *bench.Dist) {
		view.end()
		text.Conditions(full, at, single)
	}
	c.OnStep = func(s bench.CapacityStep) {
		view.end()
		text.Step(s)
	}
	find := bench.FindCapacity
	if sweep {
		find = bench.Sweep
	}
	res, err := find(ctx, *c)
	view.end()
	if err != nil {
		return runError(ctx, err)
	}
	written, err := writeOutputs(res, outputs)
	if err != nil {
		return err
	}
	if err := text.Answer(res); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot print the answer: %v", err)}
	}
	listOutputs(written, stdout)
	return exitOfCapacity(res)
}

// runError turns the error of a run into the end of the program.
func runError(ctx context.Context, err error) error {
	var u *bench.UsageError
	switch {
	case errors.As(err, &u):
		return &exitError{exitUsage, err.Error()}
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, "interrupted before a call was made"}
	}
	return &exitError{exitRuntime, err.Error()}
}

// exitOfCapacity gives the exit code of a search: 98 where the generator was the limit or a sweep has given no curve, 99
// where nothing meets the objectives.
func exitOfCapacity(res *bench.Result) error {
	c := res.Capacity
	switch {
	case res.Interrupted:
		return &exitError{exitInterrupted, ""}
	case res.Ended != "":
		return &exitError{exitRuntime, res.Ended}
	case c.LimitedBy == "generator", len(c.Ladder) > 0 && c.USL == nil:
		return &exitError{exitInvalid, ""}
	case c.RateRPS == 0 && c.USL == nil:
		return &exitError{exitThreshold, ""}
	}
	return nil
}
