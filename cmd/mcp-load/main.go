package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the linker for a release.
var version = "dev"

// Exit codes of the contract.
const (
	exitRuntime     = 1
	exitUsage       = 2
	exitInvalid     = 98
	exitThreshold   = 99
	exitInterrupted = 130
)

// exitError is an end with a code of its own. An empty text prints nothing.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	code := execute(ctx, os.Args, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs the command line and gives the exit code. Errors become one line on stderr.
func execute(ctx context.Context, argv []string, stdout, stderr io.Writer) int {
	root := newRootCommand(argv)
	root.SetArgs(argv[1:])
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) {
		exit = &exitError{exitUsage, err.Error()} // what cobra itself finds wrong is always the command line
	}
	if exit.text != "" {
		fmt.Fprintf(stderr, "mcp-load: %s\n", strings.ReplaceAll(exit.text, "\n", " "))
	}
	return exit.code
}

func newRootCommand(argv []string) *cobra.Command {
	root := &cobra.Command{
		Use:   "mcp-load",
		Short: "Load generator and capacity planner for Model Context Protocol servers",
		Long: "mcp-load: load generator and capacity planner for Model Context Protocol servers.\n\n" +
			"Without a command it is a demonstration: the engine on loopback, 1,000 sessions, ten seconds.",
		Version:       version,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), argv, startDemoServer, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	root.SetVersionTemplate("mcp-load: load generator and capacity planner for Model Context Protocol servers\n" +
		"version {{.Version}}, " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{exitUsage, err.Error() + " (see " + cmd.CommandPath() + " --help)"}
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(
		newRunCommand(argv),
		newServeCommand(),
		newInitCommand(),
		newMockCommand(),
		newCompareCommand(),
		newCapacityCommand(argv),
		newSessionsCommand(argv),
		newOverheadCommand(argv),
		newPlanCommand(argv),
		newReportCommand(),
	)
	return root
}

// noArguments refuses arguments of the root command, where a URL is the likely one.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if strings.Contains(args[0], "://") {
		return &exitError{exitUsage, "to load a server write: mcp-load run " + args[0]}
	}
	return &exitError{exitUsage, fmt.Sprintf("unknown command %q (see mcp-load --help)", args[0])}
}
