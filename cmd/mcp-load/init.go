package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/scenario"
	"github.com/spf13/cobra"
)

// initFlags holds the flags of init as they were typed.
type initFlags struct {
	cfg     bench.Config
	headers []string
	tls     tlsFlags
	auth    authFlags
	output  string
	force   bool
}

func newInitCommand() *cobra.Command {
	f := &initFlags{}
	cmd := &cobra.Command{
		Use:   "init [flags] URL | -- CMD ARGS",
		Short: "Write a starter scenario from what a server offers; nothing is called",
		Example: `  mcp-load init http://127.0.0.1:8080/mcp -o shop.yaml
  mcp-load init -- node server.js > shop.yaml`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := targetOf(&f.cfg, cmd, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			return f.write(cmd)
		},
	}
	p := cmd.Flags()
	p.SortFlags = false
	p.StringVarP(&f.output, "output", "o", "", "file to write; default standard output")
	p.BoolVar(&f.force, "force", false, "write over a file that exists")
	p.BoolVar(&f.cfg.AnyTool, "any-tool",
		false, "take in tools that do not declare readOnlyHint: calling them may change data")
	p.StringVar(&f.cfg.Protocol, "protocol", "",
		"what to speak: "+strings.Join(bench.Protocols, ", ")+"; default "+bench.Revisions[0])
	p.DurationVar(&f.cfg.Timeout, "timeout", 30*time.Second, "of one request")
	p.StringArrayVarP(&f.headers, "header", "H", nil, "HTTP header 'Name: value' (repeatable)")
	f.tls.register(cmd)
	f.auth.register(cmd)
	return cmd
}

// write looks at the server and writes the scenario.
func (f *initFlags) write(cmd *cobra.Command) error {
	if _, err := os.Stat(f.output); f.output != "" && err == nil && !f.force {
		return usageError("%s exists: choose another file with -o, or give --force to write over it", f.output)
	}
	var err error
	if f.cfg.Header, err = parseHeaders(f.headers); err != nil {
		return err
	}
	if err := f.tls.apply(&f.cfg); err != nil {
		return err
	}
	if err := f.auth.apply(cmd.Context(), &f.cfg); err != nil {
		return err
	}
	f.cfg.Version = version
	f.cfg.OnWarning = func(text string) { fmt.Fprintf(cmd.ErrOrStderr(), "mcp-load: warning: %s\n", text) }
	offer, err := bench.Discover(cmd.Context(), f.cfg)
	if err != nil {
		var u *bench.UsageError
		switch {
		case errors.As(err, &u):
			return &exitError{exitUsage, err.Error()}
		case cmd.Context().Err() != nil:
			return &exitError{exitInterrupted, "interrupted before the server was known"}
		}
		return &exitError{exitRuntime, err.Error()}
	}
	fill := func(w io.Writer) error { return scenario.WriteStarter(w, offer, f.cfg.AnyTool) }
	if f.output == "" {
		if err := fill(cmd.OutOrStdout()); err != nil {
			return &exitError{exitRuntime, fmt.Sprintf("cannot write the scenario: %v", err)}
		}
		return nil
	}
	if err := bench.WriteFile(f.output, fill); err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot write %s: %v", f.output, err)}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "written %s; look through it, then: mcp-load run %s TARGET\n", f.output, f.output)
	return nil
}
