package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/plan"
	"github.com/spf13/cobra"
)

// planFlags holds the flags of plan as they were typed.
type planFlags struct {
	targets     []string
	think       time.Duration
	utilisation float64
	contention  float64
	spare       int
	verify      bool
	verifyTime  time.Duration
	path        string
	container   string
	outputs     []string
	rate        float64
	users       int
	sessions    int
	tools       []string
	args        string
	live        string

	command []string // of --verify
}

const planHelp = `How many replicas, and how much memory and CPU, a wanted load needs, from what was measured of one server.

The results are those of mcp-load capacity and mcp-load sessions (bytes of a session); one of mcp-load run counts as a
lower bound. Measure with --server-pid, so that CPU and memory are known. Every assumption is printed.

--verify starts the planned number of replicas from the command after --, in which {addr} is where each has to listen,
puts a router before them, offers the target, and shows that the number is enough and that one less is not.`

const planExample = `  mcp-load plan capacity.json --target 5000users --think-time 10s
  mcp-load plan capacity.json sessions.json --target 2000/s --target 10000sessions -o k8s=patch.yaml
  mcp-load plan capacity.json --target 800/s --verify -- mcp-load serve --http {addr}`

func newPlanCommand(argv []string) *cobra.Command {
	f := &planFlags{}
	cmd := &cobra.Command{
		Use:     "plan RESULT.json... --target LOAD [--verify -- CMD ARGS]",
		Short:   "Replicas, memory and headroom for a wanted load; --verify tries the plan",
		Long:    planHelp,
		Example: planExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := f.split(cmd, args)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), withoutSecrets(argv), files, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.StringArrayVar(&f.targets, "target", nil, "wanted load: 5000users, 2000/s or 10000sessions (repeatable)")
	p.DurationVar(&f.think, "think-time", 0, "of a user between an answer and the next call; default that of the result, or 10s")
	p.Float64Var(&f.utilisation, "utilisation", 1, "share of what a replica holds that the plan uses")
	p.Float64Var(&f.contention, "contention", 0, "σ between replicas: k hold k/(1+σ(k-1)) times what one holds")
	p.IntVar(&f.spare, "spare", 1, "replicas beyond those that carry the load")
	p.Float64Var(&f.rate, "replica-rate", 0, "calls a second that a replica holds, instead of the result's")
	p.IntVar(&f.users, "replica-users", 0, "users that a replica holds, instead of the result's")
	p.IntVar(&f.sessions, "replica-sessions", 0, "sessions that a replica holds, instead of the result's")
	p.BoolVar(&f.verify, "verify", false, "try the plan with the command after --")
	p.DurationVar(&f.verifyTime, "verify-time", 15*time.Second, "of each of the two load tests of --verify")
	p.StringVar(&f.path, "path", "/mcp", "endpoint of the replicas of --verify")
	p.StringArrayVar(&f.tools, "tool", nil, "tool to call in --verify; default that of the result")
	p.StringVar(&f.args, "args", "", "arguments of every call of --verify; default made from the tool's schema")
	p.StringVar(&f.container, "container", "mcp-server", "name of the container in -o k8s")
	p.StringArrayVarP(&f.outputs, "output", "o", nil, "write json=FILE or k8s=FILE (repeatable)")
	p.StringVar(&f.live, "live", "auto", "progress of --verify on stderr: auto, plain or off")
	return cmd
}

// split takes the files and the command apart.
func (f *planFlags) split(cmd *cobra.Command, args []string) ([]string, error) {
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args, f.command = args[:dash], args[dash:]
	}
	switch {
	case len(args) == 0:
		return nil, usageError("give the result file of mcp-load capacity, as in: mcp-load plan capacity.json --target 2000/s")
	case f.verify != (len(f.command) > 0):
		return nil, usageError("--verify and a command after -- belong together: --verify -- CMD ARGS, with {addr} where each replica has to listen")
	case f.spare < 0 || f.verifyTime <= 0:
		return nil, usageError("--spare cannot be negative, and --verify-time must be more than zero")
	}
	return args, nil
}

// run plans, verifies, prints, and writes the files.
func (f *planFlags) run(ctx context.Context, argv, files []string, stdout, stderr io.Writer) error {
	outputs, err := parseKinds(f.outputs, f.outputKinds())
	if err != nil {
		return err
	}
	res, err := f.make(files)
	if err != nil {
		return err
	}
	res.Command = argv
	fmt.Fprintf(stdout, "mcp-load %s, Model Context Protocol capacity plan\n\n", version)
	fmt.Fprintf(stdout, "  %-14s %s\n  %-14s %s (%s), measured %s\n", "results", strings.Join(files, ", "), "server",
		res.Conditions.Target, res.Conditions.Server, res.Started.Format("2006-01-02 15:04"))
	var end error
	if f.verify {
		end = f.try(ctx, res, stderr)
		if res.Plan.Verification == nil {
			return end
		}
	}
	written, err := writeOutputs(res, outputs)
	if err != nil {
		return err
	}
	bold, plain := "", ""
	if isTerminal(stdout) {
		bold, plain = "\x1b[1m", "\x1b[0m"
	}
	if err := res.Plan.WriteText(stdout, bold, plain); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot print the plan: %v", err)}
	}
	listOutputs(written, stdout)
	return end
}

// make reads the results and plans.
func (f *planFlags) make(files []string) (*bench.Result, error) {
	target, err := plan.ParseTarget(f.targets...)
	if err != nil {
		return nil, usageError("%v", err)
	}
	var data [][]byte
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, usageError("cannot read the result: %v", err)
		}
		data = append(data, b)
	}
	measured, res, err := bench.ReadMeasured(data...)
	if err != nil {
		return nil, usageError("%s: %v", strings.Join(files, ", "), err)
	}
	if f.rate > 0 {
		measured.RateRPS, measured.LowerBounds = f.rate, false
	}
	if f.users > 0 {
		measured.Users = f.users
	}
	if f.sessions > 0 {
		measured.Sessions = f.sessions
	}
	res.Plan, err = plan.Make(target, measured, plan.Options{
		ThinkS: f.think.Seconds(), Utilisation: f.utilisation, Contention: f.contention, Spare: f.spare, NoSpare: f.spare == 0,
	})
	if err != nil {
		return nil, usageError("%v", err)
	}
	return res, nil
}

// outputKinds are the forms of a plan.
func (f *planFlags) outputKinds() []outputKind {
	return append(kindsNamed("json", "html"), outputKind{name: "k8s", write: func(res *bench.Result, w io.Writer) error {
		return res.Plan.WriteKubernetes(w, f.container)
	}})
}
