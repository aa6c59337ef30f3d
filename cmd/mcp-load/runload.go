package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/scenario"
	"github.com/spf13/cobra"
)

// target takes the scenario, if there is one, and the URL or the command from the arguments.
func (f *runFlags) target(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	if len(args) > 0 && dash != 0 && isScenario(args[0]) {
		var err error
		if f.scenario, err = scenario.Read(args[0]); err != nil {
			var wrong *scenario.Error
			if errors.As(err, &wrong) {
				return usageError("%v", err)
			}
			return usageError("cannot read the scenario: %v", err)
		}
		args, dash = args[1:], dash-1
	}
	return targetOf(&f.cfg, cmd, args, dash)
}

// isScenario tells a scenario from a target by its name.
func isScenario(arg string) bool {
	ext := strings.ToLower(filepath.Ext(arg))
	return (ext == ".yaml" || ext == ".yml") && !strings.Contains(arg, "://")
}

// targetOf takes the URL or the command from the arguments; dash is how many came before --, or negative.
func targetOf(c *bench.Config, cmd *cobra.Command, args []string, dash int) error {
	switch {
	case dash == 0 && len(args) > 0:
		c.Command = args
	case dash > 0:
		return usageError("give a URL or -- and a command, not both")
	case len(args) == 1:
		c.URL = args[0]
	case len(args) > 1:
		return usageError("%q is one argument too many: give one URL, or put -- before the command of a stdio server",
			args[1])
	default:
		return usageError("give the URL of the server, or -- and the command of a stdio server (see %s --help)",
			cmd.CommandPath())
	}
	return nil
}

// loop reads the stages and the think time.
func (f *runFlags) loop() error {
	c := &f.cfg
	for _, s := range f.stages {
		stage, err := bench.ParseStage(s)
		if err != nil {
			return usageError("%v", err)
		}
		c.Stages = append(c.Stages, stage)
	}
	if f.think == "" && c.Users > 0 && f.scenario == nil {
		f.think = defaultThink
	}
	if f.think == "" {
		return nil
	}
	var err error
	if c.ThinkTime, err = bench.ParseThink(f.think); err != nil {
		return usageError("--think-time: %v", err)
	}
	return nil
}

// defaultThink is the think time of users without --think-time.
const defaultThink = "1s"

// readArgsFile reads the rows of --args-file.
func readArgsFile(path string) ([]json.RawMessage, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, usageError("cannot read --args-file: %v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	rows, err := bench.ReadArgs(file)
	if err != nil {
		return nil, usageError("%s: %v", path, err)
	}
	return rows, nil
}
