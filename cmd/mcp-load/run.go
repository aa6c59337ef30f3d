package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/scenario"
	"github.com/spf13/cobra"
)

// runFlags holds the flags of run as they were typed.
type runFlags struct {
	cfg           bench.Config
	protocols     []string
	rate          string
	arrivals      string
	overflow      string
	durationAlias time.Duration
	tools         []string
	args          string
	argsFile      string
	stages        []string
	think         string
	headers       []string
	outputs       []string
	live          string
	client        clientFlags
	scenario      *scenario.Scenario // nil in a plain run
}

const runExample = `  mcp-load run http://127.0.0.1:8080/mcp                      closed loop, 10 in flight, 10 s
  mcp-load run http://127.0.0.1:8080/mcp -r 500 --sessions 50  open loop, 500 calls a second
  mcp-load run http://127.0.0.1:8080/mcp -s 30s:100 -s 1m:100  ramp to 100/s, then hold
  mcp-load run http://127.0.0.1:8080/mcp -u 50 --think-time 2s 50 users who think for 2 s between two calls
  mcp-load run shop.yaml http://127.0.0.1:8080/mcp -r 20       flows of a scenario (mcp-load init writes one), 20 a second
  mcp-load run -c 8 --tool echo --args '{"message":"hi"}' -- node server.js`

func newRunCommand(argv []string) *cobra.Command {
	f := &runFlags{}
	printSchema := false
	cmd := &cobra.Command{
		Use:     "run [flags] [SCENARIO.yaml] URL | [SCENARIO.yaml] -- CMD ARGS",
		Short:   "Load test of a server over Streamable HTTP, or over stdio by spawning CMD",
		Example: runExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if printSchema {
				_, err := cmd.OutOrStdout().Write(scenario.Schema)
				return err
			}
			f.cfg.Argv = withoutSecrets(argv)
			if err := f.target(cmd, args); err != nil {
				return err
			}
			outputs, err := f.finish(cmd)
			if err != nil {
				return err
			}
			if len(f.protocols) > 1 {
				return loadMatrix(cmd.Context(), &f.cfg, f.protocols, outputs, f.live, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return load(cmd.Context(), &f.cfg, outputs, f.live, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&printSchema, "print-schema", false, "print the JSON Schema of scenarios, and do nothing else")
	return cmd
}

func (f *runFlags) register(cmd *cobra.Command) {
	p := cmd.Flags()
	p.SortFlags = false
	p.StringVarP(&f.rate, "rate", "r", "", "calls a second in the whole run: 200, 200/s, 6000/m (open loop), or max (closed loop)")
	p.StringArrayVarP(&f.stages, "stage", "s", nil, "open loop whose rate changes: 30s:100 leads in a straight line to 100/s within 30 s (repeatable);\n"+
		"the first begins at -r, or at 0; 0s:100 is a jump")
	p.IntVarP(&f.cfg.Users, "users", "u", 0, "virtual users, each with a session of its own, who think between two calls")
	p.StringVar(&f.think, "think-time", "", "of a user: 2s, or exp:2s for times of an exponential distribution; default 1s, with a scenario none")
	p.IntVarP(&f.cfg.Concurrency, "concurrency", "c", 0, "calls in flight (closed loop); default 10, over stdio 1")
	p.IntVar(&f.cfg.Sessions, "sessions", 0, "sessions; default as many as -c, or 10 with -r; over stdio 1 process")
	p.DurationVarP(&f.cfg.Duration, "duration", "d", 0, "measured time; default 10s, or none with -n")
	p.DurationVarP(&f.durationAlias, "time", "z", 0, "the same as -d")
	p.Int64VarP(&f.cfg.Requests, "requests", "n", 0, "measured calls")
	p.DurationVar(&f.cfg.Warmup, "warmup", 0, "time before the measured time, left out of the result")
	p.StringArrayVar(&f.tools, "tool", nil, "tool to call, NAME or NAME=WEIGHT (repeatable); default the first that declares readOnlyHint")
	p.StringVar(&f.args, "args", "", "arguments of every call, a JSON object; default made from the tool's schema")
	p.StringVar(&f.argsFile, "args-file", "", "arguments of the calls in turn: a file with a JSON object on each line")
	p.BoolVar(&f.cfg.AnyTool, "any-tool", false, "without --tool, call the first listed tool even if it may change data")
	p.DurationVar(&f.cfg.Timeout, "timeout", 30*time.Second, "of one call")
	p.StringVar(&f.arrivals, "arrivals", "constant", "of an open loop: constant or poisson")
	p.IntVar(&f.cfg.MaxInFlight, "max-in-flight", 0, "of an open loop: most calls in flight; default no limit")
	p.StringVar(&f.overflow, "overflow", "wait", "beyond --max-in-flight: wait (the wait counts) or skip (counted as dropped)")
	p.StringArrayVarP(&f.headers, "header", "H", nil, "HTTP header 'Name: value' (repeatable)")
	p.StringArrayVar(&f.protocols, "protocol", nil, "what to speak: "+strings.Join(bench.Protocols, ", ")+
		"; default "+bench.Revisions[0]+" (repeatable: one run after another)")
	f.client.register(cmd)
	p.BoolVar(&f.cfg.Streams, "streams", false, "open the GET stream of every session")
	p.Uint64Var(&f.cfg.Seed, "seed", 0, "of everything random; default picks one and prints it")
	p.StringArrayVar(&f.cfg.Thresholds, "threshold", nil, "condition such as 'p(99)<200ms' or 'errors<0.1%' (repeatable); crossed: exit 99")
	p.IntVar(&f.cfg.ServerPID, "server-pid", 0, "process of the server on this machine, for its CPU and memory")
	p.StringArrayVarP(&f.outputs, "output", "o", nil, "write "+outputsHelp(outputKinds)+" (repeatable)")
	p.StringVar(&f.live, "live", "auto", "progress on stderr: auto (tui on a terminal, else plain), tui, plain, web or off")
}

// finish turns what was typed into the configuration and the outputs.
func (f *runFlags) finish(cmd *cobra.Command) ([]output, error) {
	c := &f.cfg
	c.Version = version
	c.Arrivals, c.Overflow = bench.Arrivals(f.arrivals), bench.Overflow(f.overflow)
	if f.durationAlias != 0 {
		if c.Duration != 0 {
			return nil, usageError("-d and -z mean the same: give one of them")
		}
		c.Duration = f.durationAlias
	}
	for name, d := range map[string]time.Duration{"duration": c.Duration, "timeout": c.Timeout} {
		if (cmd.Flags().Changed(name) || name == "duration" && f.durationAlias != 0) && d <= 0 {
			return nil, usageError("--%s must be more than zero", name)
		}
	}
	for name, n := range map[string]int64{"requests": c.Requests, "users": int64(c.Users), "sessions": int64(c.Sessions), "concurrency": int64(c.Concurrency)} {
		if cmd.Flags().Changed(name) && n < 1 {
			return nil, usageError("--%s must be at least 1", name)
		}
	}
	if err := f.client.apply(c); err != nil {
		return nil, err
	}
	if err := f.protocol(); err != nil {
		return nil, err
	}
	var err error
	if c.Rate, err = parseRate(f.rate); err != nil {
		return nil, err
	}
	if err := f.loop(); err != nil {
		return nil, err
	}
	if f.scenario != nil {
		f.scenario.Apply(c, cmd.Flags().Changed)
	}
	for _, t := range f.tools {
		c.Tools = append(c.Tools, parseTool(t))
	}
	if f.args != "" {
		c.Args = json.RawMessage(f.args)
	}
	if f.argsFile != "" {
		if c.ArgsRows, err = readArgsFile(f.argsFile); err != nil {
			return nil, err
		}
	}
	if c.Header, err = parseHeaders(f.headers); err != nil {
		return nil, err
	}
	if err := f.client.auth.apply(cmd.Context(), c); err != nil {
		return nil, err
	}
	if _, err := findLiveMode(f.live, cmd.ErrOrStderr()); err != nil {
		return nil, err
	}
	return parseOutputs(f.outputs)
}

// protocol checks what is to be spoken. Several protocols are left to the matrix.
func (f *runFlags) protocol() error {
	for i, p := range f.protocols {
		switch {
		case !slices.Contains(bench.Protocols, p):
			return usageError("protocol %q is not supported: choose one of %s", p, strings.Join(bench.Protocols, ", "))
		case slices.Contains(f.protocols[:i], p):
			return usageError("--protocol %s is given twice", p)
		}
	}
	if len(f.protocols) == 1 {
		f.cfg.Protocol = f.protocols[0]
	}
	return nil
}

// parseRate reads a rate. No rate and max both mean a closed loop, which is 0.
func parseRate(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	r, err := bench.ParseRate(s)
	if err != nil {
		return 0, usageError("%v", err)
	}
	return r, nil
}

// parseTool reads NAME or NAME=WEIGHT.
func parseTool(s string) bench.ToolChoice {
	if i := strings.LastIndexByte(s, '='); i > 0 {
		if w, err := strconv.Atoi(s[i+1:]); err == nil {
			return bench.ToolChoice{Name: s[:i], Weight: w}
		}
	}
	return bench.ToolChoice{Name: s, Weight: 1}
}

func parseHeaders(lines []string) (http.Header, error) {
	h := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, usageError("header %q is not understood: write -H 'Name: value'", line)
		}
		h.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return h, nil
}

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// load runs the configuration, prints the summary, writes the files, and turns what came out into an exit code.
func load(ctx context.Context, c *bench.Config, outputs []output, live string, stdout, stderr io.Writer) error {
	stop, err := liveOutputs(c, outputs, func(text string) { fmt.Fprintf(stderr, "mcp-load: %s\n", text) })
	if err != nil {
		return err
	}
	defer stop()
	res, err := offer(ctx, c, live, stderr)
	if err != nil {
		return err
	}
	return reportRun(res, outputs, stdout)
}

// offer runs the configuration under a live view, which can end the run early as Ctrl-C does.
func offer(ctx context.Context, c *bench.Config, live string, stderr io.Writer) (*bench.Result, error) {
	mode, err := findLiveMode(live, stderr)
	if err != nil {
		return nil, err
	}
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	view := mode.start(c, stderr, interrupt)
	end := sync.OnceFunc(view.end)
	defer end() // also where this goroutine panics: the terminal must be as it was
	c.OnProgress, c.OnWarning = view.progress, view.warning
	res, err := bench.Run(ctx, *c)
	end()
	if err == nil {
		return res, nil
	}
	var u *bench.UsageError
	switch {
	case errors.As(err, &u):
		return nil, &exitError{exitUsage, err.Error()}
	case ctx.Err() != nil:
		return nil, &exitError{exitInterrupted, "interrupted before a call was made"}
	}
	return nil, &exitError{exitRuntime, err.Error()}
}

// reportRun writes the files before the summary: whoever sees the summary finds them complete.
func reportRun(res *bench.Result, outputs []output, stdout io.Writer) error {
	written, failed := writeOutputs(res, outputs)
	if err := res.WriteSummary(stdout, isTerminal(stdout)); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot print the summary: %v", err)}
	}
	listOutputs(written, stdout)
	if failed != nil {
		return failed
	}
	return exitOf(res)
}

// exitOf gives the exit code of a result, as an error without a text.
func exitOf(res *bench.Result) error {
	switch {
	case res.Interrupted:
		return &exitError{exitInterrupted, ""}
	case res.Ended != "":
		return &exitError{exitRuntime, res.Ended}
	case !res.Verdict.Valid:
		return &exitError{exitInvalid, ""}
	}
	for _, t := range res.Thresholds {
		if !t.OK {
			return &exitError{exitThreshold, ""}
		}
	}
	return nil
}
