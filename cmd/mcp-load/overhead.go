package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/mcpengine/mcpengine/bench"
	"github.com/mcpengine/mcpengine/bench/mock"
	"github.com/mcpengine/mcpengine/bench/replica"
	"github.com/spf13/cobra"
)

// overheadFlags holds the flags of overhead: those of run, and its own.
type overheadFlags struct {
	run            runFlags
	cfg            bench.OverheadConfig
	direct         string
	upstreamListen string
	upstreamStats  string
	endReplica     string
}

// notForOverhead lists the flags of run that have no meaning here.
var notForOverhead = []string{"users", "think-time", "stage", "requests", "streams", "max-in-flight", "overflow",
	"arrivals",
	"threshold", "args-file", "server-pid"}

const (
	overheadHelp = `What a gateway adds to a call, and what it multiplies upstream.

--direct and --via are two ways to the same server. Pairs of calls, one on each way in a random order, fall on both alike,
so that what drifts slowly cancels; the difference of every phase is given with its 95 % interval.

--upstream-listen starts a counting server of ours, to which the gateway has to lead, and which is --direct where that is
not given; --upstream-stats reads the counters of an mcp-load mock. Both tell how many sessions, initialize, tools/list
and tools/call reach the upstream server for each session, call and list of a client.

--replicas N looks at how many requests lose their session among N replicas behind --via, and --end-replica at how many
sessions live on when that command has ended one.`

	overheadExample = `  mcp-load overhead --direct http://127.0.0.1:8080/mcp --via http://127.0.0.1:9090/mcp
  mcp-load overhead --upstream-listen 127.0.0.1:8080 --via http://127.0.0.1:9090/mcp
  mcp-load overhead --via http://balancer/mcp --replicas 3 --end-replica 'docker stop mcp-2'`

	statsTimeout = 5 * time.Second
	statsMost    = 1 << 20
	gatewayWait  = 20 * time.Second // for a gateway that can only start after the server behind it
)

func newOverheadCommand(argv []string) *cobra.Command {
	f := &overheadFlags{}
	cmd := &cobra.Command{
		Use:     "overhead [flags] --direct URL --via URL",
		Short:   "What a gateway adds to a call, what it multiplies upstream, and sessions lost among replicas",
		Long:    overheadHelp,
		Example: overheadExample,
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
	p.StringVar(&f.direct, "direct", "", "endpoint `URL` of the server itself")
	p.StringVar(&f.cfg.Via, "via", "", "endpoint `URL` of the gateway")
	p.StringVar(&f.cfg.ViaTool, "via-tool", "", "`name` of the tool at the gateway; default the same, or the one that ends with it")
	p.StringVar(&f.upstreamListen, "upstream-listen", "",
		"start a counting server on this `address`, to which the gateway leads")
	p.StringVar(&f.upstreamStats, "upstream-stats", "",
		"`URL` of the counters of an mcp-load mock behind the gateway (/stats)")
	p.IntVar(&f.cfg.Replicas, "replicas", 0, "replicas behind --via: count the requests that lose their session")
	p.StringVar(&f.endReplica, "end-replica", "", "`command` of the shell that ends one of the replicas")
	registerRunFlags(cmd, &f.run, notForOverhead)
	for name, usage := range map[string]string{
		"rate":        "pairs of calls a second; default 50/s",
		"concurrency": "pairs under way at once; default 8",
		"sessions":    "sessions opened on each way to compare their set-up; default 100",
		"duration":    "measured time; default 20s",
		"warmup":      "time before it; default 1s",
	} {
		p.Lookup(name).Usage = usage
	}
	return cmd
}

// finish turns what was typed into the configuration and the outputs.
func (f *overheadFlags) finish(cmd *cobra.Command, args []string) ([]output, error) {
	outputs, err := finishRunFlags(cmd, &f.run, notForOverhead, "an overhead is measured with pairs of calls at a rate")
	switch {
	case err != nil:
		return nil, err
	case len(args) > 0:
		return nil, usageError("%q: the two ways are given as --direct URL and --via URL", args[0])
	case f.cfg.Via == "":
		return nil, usageError("give the gateway: --via URL")
	case f.upstreamListen != "" && f.upstreamStats != "":
		return nil, usageError("--upstream-listen counts itself: leave --upstream-stats out")
	case cmd.Flags().Changed("replicas") && f.cfg.Replicas < 2:
		return nil, usageError("--replicas is how many there are: at least 2")
	}
	if u, err := url.Parse(f.upstreamStats); f.upstreamStats != "" && (err != nil || u.Host == "") {
		return nil, usageError("--upstream-stats %q is no URL: give one such as http://127.0.0.1:8080/stats",
			f.upstreamStats)
	}
	f.cfg.Config = f.run.cfg
	f.cfg.URL = f.direct
	if f.endReplica != "" {
		f.cfg.EndReplica = func(ctx context.Context) error { return replica.Run(ctx, f.endReplica) }
	}
	return outputs, nil
}

// measure starts the counting server where there is to be one, measures, prints, and writes the files.
func (f *overheadFlags) measure(ctx context.Context, outputs []output, stdout, stderr io.Writer) error {
	switch {
	case f.upstreamListen != "":
		stop, err := f.listen(ctx, stderr)
		if err != nil {
			return err
		}
		defer stop()
	case f.upstreamStats != "":
		f.cfg.Upstream = func() (bench.UpstreamCounts, error) { return readStats(ctx, f.upstreamStats) }
	}
	f.cfg.OnPhase, f.cfg.OnWarning = phaseLines(f.run.live, stderr)
	res, err := bench.MeasureOverhead(ctx, f.cfg)
	if err != nil {
		return runError(ctx, err)
	}
	return finishMeasure(res, outputs, stdout, res.WriteOverhead)
}

// listen starts the counting server. It answers at once, so that it costs both ways the same.
func (f *overheadFlags) listen(ctx context.Context, stderr io.Writer) (stop func(), err error) {
	if _, _, err := net.SplitHostPort(f.upstreamListen); err != nil {
		return nil, usageError("--upstream-listen %q: give an address, such as 127.0.0.1:8080", f.upstreamListen)
	}
	server, err := mock.New(mock.Config{Version: version})
	if err != nil {
		return nil, &exitError{exitRuntime, err.Error()}
	}
	listener, err := net.Listen("tcp", f.upstreamListen)
	if err != nil {
		server.Close()
		return nil, &exitError{exitRuntime, fmt.Sprintf("cannot listen on %s: %v", f.upstreamListen, err)}
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mock.Serve(serving, listener, server.Handler()); err != nil {
			printWarning(stderr, "the counting server has ended: "+err.Error())
		}
	}()
	where := "http://" + listener.Addr().String() + mock.Path
	fmt.Fprintf(stderr, "listening %s\n", where)
	if f.cfg.URL == "" {
		f.cfg.URL = where
	}
	f.cfg.Wait = gatewayWait
	f.cfg.Upstream = func() (bench.UpstreamCounts, error) { return countsOf(server.Stats()), nil }
	return func() {
		cancel()
		<-done
		server.Close()
	}, nil
}

// countsOf takes from the counters of a mock what an overhead needs.
func countsOf(s mock.Stats) bench.UpstreamCounts {
	return bench.UpstreamCounts{
		Sessions: s.Sessions.Opened, Initialize: s.Requests["initialize"], Discover: s.Requests["server/discover"],
		List: s.Requests["tools/list"], Call: s.Requests["tools/call"],
	}
}

// readStats reads the counters of an mcp-load mock.
func readStats(ctx context.Context, from string) (bench.UpstreamCounts, error) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return bench.UpstreamCounts{}, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return bench.UpstreamCounts{}, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read, or is of no use
	var s mock.Stats
	err = json.NewDecoder(io.LimitReader(resp.Body, statsMost)).Decode(&s)
	if err != nil || s.Schema != mock.StatsSchema {
		return bench.UpstreamCounts{}, fmt.Errorf(
			"%s has no counters of an mcp-load mock (status %d): give its /stats", from, resp.StatusCode)
	}
	return countsOf(s), nil
}
