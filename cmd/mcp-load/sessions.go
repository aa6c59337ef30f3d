package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/replica"
	"github.com/spf13/cobra"
)

// sessionsFlags holds the flags of sessions: those of run, and its own.
type sessionsFlags struct {
	run     runFlags
	cfg     bench.SessionsConfig
	idleMax time.Duration
	storm   int
	path    string
	command []string
}

// notForSessions lists the flags of run that have no meaning here.
var notForSessions = []string{"concurrency", "users", "think-time", "stage", "duration", "time", "requests", "warmup",
	"sessions",
	"streams", "max-in-flight", "overflow", "arrivals", "threshold", "args-file"}

const sessionsHelp = `What sessions cost a server, and what becomes of them.

Opens sessions in steps and fits a line to the server's memory (--server-pid, --server-cgroup, or the command after --);
finds the exact number at which it refuses, up to --max; leaves sessions alone and finds when they end, each asked once;
ends half of them by DELETE and abandons the other half, and looks at what memory comes back; has all clients lose their
connections and come back at once, while others go on calling (-r).`

const sessionsExample = `  mcp-load sessions http://127.0.0.1:8080/mcp --server-pid 4711
  mcp-load sessions --max 5000 --idle-max 2m -o json=sessions.json -- mcp-load serve --http {addr}`

func newSessionsCommand(argv []string) *cobra.Command {
	f := &sessionsFlags{}
	cmd := &cobra.Command{
		Use:     "sessions [flags] URL | -- CMD ARGS with {addr}",
		Short:   "Bytes per session, session limit, idle expiry, abandoned and deleted sessions, reconnect storm",
		Long:    sessionsHelp,
		Example: sessionsExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.run.cfg.Argv = withoutSecrets(argv)
			outputs, err := f.finish(cmd, args)
			if err != nil {
				return err
			}
			return f.measure(cmd.Context(), outputs, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.IntVar(&f.cfg.Max, "max", 1000, "sessions to try")
	p.IntVar(&f.cfg.Steps, "steps", 24, "in which they are opened")
	p.DurationVar(&f.cfg.Settle, "settle", 300*time.Millisecond, "least time after a step before the memory is read")
	p.DurationVar(&f.idleMax, "idle-max", time.Minute, "how long to wait for idle sessions to end; 0 = not at all")
	p.IntVar(&f.storm, "storm", -1, "clients of the reconnect storm; default half of what the server holds, at most 500; 0 = none")
	p.DurationVar(&f.cfg.StormTime, "storm-time", 5*time.Second, "steady calls before and after the storm")
	p.StringVar(&f.cfg.Cgroup, "server-cgroup", "", "folder of the server's cgroup (version 2), for its memory")
	p.StringVar(&f.path, "path", "/mcp", "endpoint of the server that the command after -- starts")
	registerRunFlags(cmd, &f.run, notForSessions)
	p.Lookup("rate").Usage = "steady calls a second around the storm; default 100/s"
	return cmd
}

// registerRunFlags adds the flags of run to another command and hides those that have no meaning there.
func registerRunFlags(cmd *cobra.Command, f *runFlags, without []string) {
	f.register(cmd)
	p := cmd.Flags()
	for _, name := range without {
		if p.Lookup(name) != nil {
			_ = p.MarkHidden(name) // it exists
		}
	}
	p.Lookup("output").Usage = "write " + outputsHelp(measureKinds()) + " (repeatable)"
	p.Lookup("live").Usage = "what is being done, on stderr: auto, plain or off"
}

// measureKinds are the outputs of commands whose result is no run.
func measureKinds() []outputKind { return kindsNamed("json", "html") }

// finishRunFlags refuses the flags of run that have no meaning in a command, and turns the others into f.cfg and the
// outputs.
func finishRunFlags(cmd *cobra.Command, f *runFlags, without []string, why string) ([]output, error) {
	for _, name := range without {
		if cmd.Flags().Changed(name) {
			return nil, usageError("--%s has no meaning here: %s (see %s --help)", name, why, cmd.CommandPath())
		}
	}
	if len(f.protocols) > 1 {
		return nil, usageError("%s measures with one --protocol", cmd.Name())
	}
	outputs, err := parseKinds(f.outputs, measureKinds())
	if err != nil {
		return nil, err
	}
	_, err = f.finish(cmd)
	return outputs, err
}

// finish turns what was typed into the configuration and the outputs.
func (f *sessionsFlags) finish(cmd *cobra.Command, args []string) ([]output, error) {
	outputs, err := finishRunFlags(cmd, &f.run, notForSessions, "sessions are measured under steady calls")
	if err != nil {
		return nil, err
	}
	for name, n := range map[string]int64{"max": int64(f.cfg.Max), "steps": int64(f.cfg.Steps),
		"settle": int64(f.cfg.Settle), "storm-time": int64(f.cfg.StormTime)} {
		if n <= 0 {
			return nil, usageError("--%s must be more than zero", name)
		}
	}
	if f.idleMax < 0 || cmd.Flags().Changed("storm") && f.storm < 0 {
		return nil, usageError("--idle-max and --storm cannot be negative")
	}
	if err := f.run.target(cmd, args); err != nil {
		return nil, err
	}
	f.command, f.run.cfg.Command = f.run.cfg.Command, nil
	f.cfg.Config = f.run.cfg
	f.cfg.IdleMax, f.cfg.Storm = f.idleMax, f.storm
	if f.idleMax == 0 {
		f.cfg.IdleMax = -1
	}
	switch {
	case !cmd.Flags().Changed("storm"):
		f.cfg.Storm = 0
	case f.storm == 0:
		f.cfg.Storm = -1
	}
	if len(f.command) > 0 && (f.cfg.ServerPID != 0 || f.cfg.Cgroup != "") {
		return nil, usageError("the memory of the command after -- is known: leave --server-pid and --server-cgroup out")
	}
	return outputs, nil
}

// measure starts the server where there is a command, measures, prints, and writes the files.
func (f *sessionsFlags) measure(ctx context.Context, outputs []output, stdout, stderr io.Writer) error {
	if len(f.command) > 0 {
		started, err := replica.Start(ctx, f.command, 1)
		switch {
		case errors.Is(err, replica.ErrNoPlaceholder):
			return usageError("%v", err)
		case err != nil && ctx.Err() != nil:
			return &exitError{exitInterrupted, "interrupted before the server was there"}
		case err != nil:
			return &exitError{exitRuntime, err.Error()}
		}
		defer replica.Stop(started)
		f.cfg.URL, f.cfg.ServerPID = "http://"+started[0].Address+f.path, started[0].PID()
	}
	f.cfg.OnPhase, f.cfg.OnWarning = phaseLines(f.run.live, stderr)
	res, err := bench.MeasureSessions(ctx, f.cfg)
	if err != nil {
		return runError(ctx, err)
	}
	return finishMeasure(res, outputs, stdout, res.WriteSessionCapacity)
}

// phaseLines gives the functions that tell on stderr what is being done, and what the reader should know.
func phaseLines(live string, stderr io.Writer) (phase, warning func(string)) {
	begin := time.Now()
	phase = func(text string) {
		if live != "off" {
			fmt.Fprintf(stderr, "%6.1f s  %s\n", time.Since(begin).Seconds(), text)
		}
	}
	return phase, func(text string) { printWarning(stderr, text) }
}

// finishMeasure writes the files before the text, so that whoever sees the text finds them complete, and gives the exit
// code.
func finishMeasure(res *bench.Result, outputs []output, stdout io.Writer, text func(io.Writer, bool) error) error {
	written, err := writeOutputs(res, outputs)
	if err != nil {
		return err
	}
	if err := text(stdout, isTerminal(stdout)); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot print the result: %v", err)}
	}
	listOutputs(written, stdout)
	return exitOf(res)
}
