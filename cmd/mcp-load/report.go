package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/mcpengine/mcpengine/bench"
)

// newReportCommand draws a result again.
func newReportCommand() *cobra.Command {
	var specs []string
	cmd := &cobra.Command{
		Use:   "report RESULT.json",
		Short: "Draw a result again, as an HTML file",
		Long: "Draws a result that run -o json=FILE has written. Without -o the page goes to RESULT.json with .html in place of .json.\n" +
			"The HTML file needs no network and no other file.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(specs) == 0 {
				specs = []string{"html=" + htmlBeside(args[0])}
			}
			outputs, err := parseKinds(specs, kindsNamed("json", "html", "csv", "junit", "md"))
			if err != nil {
				return err
			}
			results, err := readResults(args)
			if err != nil {
				return err
			}
			return redraw(results, outputs, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringArrayVarP(&specs, "output", "o", nil, "write html=FILE, or any other form of the result (repeatable)")
	return cmd
}

// htmlBeside names the page of a result file.
func htmlBeside(path string) string {
	const ext = ".json"
	if n := len(path) - len(ext); n > 0 && path[n:] == ext {
		path = path[:n]
	}
	return path + ".html"
}

// redraw writes results that were read from a file. Where there are several, and a form takes one, each has a file of its
// own, as run has it.
func redraw(results []*bench.Result, outputs []output, stdout io.Writer) error {
	if len(results) == 1 {
		written, err := writeOutputs(results[0], outputs)
		listOutputs(written, stdout)
		return err
	}
	protocols := make([]string, len(results))
	for i, res := range results {
		protocols[i] = res.Conditions.Protocol
	}
	written, err := writeMatrix(results, protocols, outputs)
	listOutputs(written, stdout)
	return err
}
