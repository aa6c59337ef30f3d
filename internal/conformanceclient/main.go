// Command conformanceclient is the client under test for the client mode of the official conformance suite, which
// starts it once for each scenario:
//
//	conformanceclient URL
//
// The environment tells which scenario it is (MCP_CONFORMANCE_SCENARIO), which revision to speak
// (MCP_CONFORMANCE_PROTOCOL_VERSION), and what else the scenario needs (MCP_CONFORMANCE_CONTEXT, JSON). It does what a scenario wants through package client and exits with 1 where
// something fails or the scenario is unknown.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/mcpengine/mcpengine/transport/client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: conformanceclient URL")
		os.Exit(2)
	}
	if err := run(os.Getenv("MCP_CONFORMANCE_SCENARIO"), os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "conformanceclient:", err)
		os.Exit(1)
	}
}

// scenarios holds what is to be done once the client is connected and the tools are listed.
var scenarios = map[string]func(ctx context.Context, c *client.Client, tools []client.Tool) error{
	"initialize":               nothing,
	"request-metadata":         nothing,
	"json-schema-ref-no-deref": nothing,
	"tools_call": func(ctx context.Context, c *client.Client, _ []client.Tool) error {
		return call(ctx, c, "add_numbers", map[string]int{"a": 5, "b": 3})
	},
	"elicitation-sep1034-client-defaults": func(ctx context.Context, c *client.Client, _ []client.Tool) error {
		return call(ctx, c, "test_client_elicitation_defaults", struct{}{})
	},
	"sse-retry": func(ctx context.Context, c *client.Client, _ []client.Tool) error {
		return call(ctx, c, "test_reconnection", struct{}{})
	},
	"json-schema-2020-12-preservation": echoSchema,
	"http-standard-headers":            everything,
	"http-custom-headers":              callsOfContext,
	"http-invalid-tool-headers":        callAll,
	"sep-2322-client-request-state": func(ctx context.Context, c *client.Client, _ []client.Tool) error {
		var errs []error
		for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state", "test_mrtr_no_result_type"} {
			errs = append(errs, call(ctx, c, tool, struct{}{}))
		}
		return errors.Join(errs...)
	},
}

func run(scenario, revision, url string) error {
	act, ok := scenarios[scenario]
	if !ok {
		return fmt.Errorf("the scenario %q is not one of mine", scenario)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	c, err := client.ConnectHTTP(ctx, url, &client.Options{
		Info:     client.Implementation{Name: "mcpengine-conformance", Version: "1.0.0"},
		Protocol: revision,
		OnElicit: accept,
		Logger:   slog.New(slog.NewTextHandler(os.Stderr, nil)),
		// The suite starts all scenarios at once, so that the machine is busy for a while.
		StreamWait: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	tools, err := c.ListTools(ctx)
	if err == nil {
		err = act(ctx, c, tools)
	}
	if closeErr := c.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}

// accept accepts every form without filling anything in, which leaves it to the defaults of the schema.
func accept(context.Context, *client.ElicitRequest) (*client.ElicitResult, error) {
	return &client.ElicitResult{Action: client.ElicitAccept}, nil
}

func call(ctx context.Context, c *client.Client, tool string, arguments any) error {
	result, err := c.CallTool(ctx, tool, arguments, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, strings.TrimSpace(result.Text()))
	if result.IsError {
		return fmt.Errorf("the tool %s failed", tool)
	}
	return nil
}

func nothing(context.Context, *client.Client, []client.Tool) error { return nil }

// callAll calls each tool that the client lists, without arguments.
func callAll(ctx context.Context, c *client.Client, tools []client.Tool) error {
	var errs []error
	for _, t := range tools {
		errs = append(errs, call(ctx, c, t.Name, struct{}{}))
	}
	return errors.Join(errs...)
}

// everything calls, reads and gets all that the server lists.
func everything(ctx context.Context, c *client.Client, tools []client.Tool) error {
	errs := []error{callAll(ctx, c, tools)}
	resources, err := c.ListResources(ctx)
	errs = append(errs, err)
	for _, r := range resources {
		_, err := c.ReadResource(ctx, r.URI)
		errs = append(errs, err)
	}
	prompts, err := c.ListPrompts(ctx)
	errs = append(errs, err)
	for _, p := range prompts {
		_, err := c.GetPrompt(ctx, p.Name, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// callsOfContext makes the calls that the scenario wants.
func callsOfContext(ctx context.Context, c *client.Client, _ []client.Tool) error {
	var wanted struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &wanted); err != nil {
		return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	var errs []error
	for _, w := range wanted.ToolCalls {
		errs = append(errs, call(ctx, c, w.Name, w.Arguments))
	}
	return errors.Join(errs...)
}

// echoSchema sends the input schema of a tool back as it came.
func echoSchema(ctx context.Context, c *client.Client, tools []client.Tool) error {
	for _, t := range tools {
		if t.Name == "json_schema_2020_12_tool" {
			return call(ctx, c, "json_schema_echo", map[string]json.RawMessage{"schema": t.InputSchema})
		}
	}
	return errors.New("there is no tool json_schema_2020_12_tool")
}
