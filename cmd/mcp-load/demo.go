package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/mcpengine/mcpengine/bench"
)

const (
	demoSessions = 1000
	demoDuration = 10 * time.Second
	// demoRate is an open loop, one call a second for each session, that two slow cores keep with the server in the same
	// process: the demonstration is to show an honest measurement, and a rate that saturates the machine would show
	// nothing but the machine.
	demoRate = 1000

	demoJSON = "results/latest/summary.json"
	demoLog  = "results/latest/latency.hlog"
)

// demoStart starts a server on loopback and gives its endpoint and the function that stops it.
type demoStart func(ctx context.Context) (url string, stop func(context.Context) error, err error)

// runDemo drives a server that it has started itself.
func runDemo(ctx context.Context, argv []string, start demoStart, stdout, stderr io.Writer) error {
	outputs, err := parseOutputs([]string{"json=" + demoJSON, "hdr=" + demoLog})
	if err != nil {
		return err
	}
	url, stop, err := start(context.WithoutCancel(ctx)) // an interrupt ends the load first, then the server
	if err != nil {
		return &exitError{exitRuntime, fmt.Sprintf("cannot start the server of the demonstration: %v", err)}
	}
	err = load(ctx, &bench.Config{
		URL: url, Sessions: demoSessions, Rate: demoRate, Duration: demoDuration,
		InProcess: true, Version: version, Argv: argv,
	}, outputs, "auto", stdout, stderr)
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if serr := stop(stopping); serr != nil && err == nil {
		err = &exitError{exitRuntime, fmt.Sprintf("the server of the demonstration did not stop: %v", serr)}
	}
	return err
}
