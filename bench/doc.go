// Package bench offers load to an MCP server on a schedule, records what came back, and says whether the number can be
// trusted.
//
// A reader may rely on this: in an open loop the schedule is fixed before the first call, the clock of a call starts at
// its intended time and not when somebody got round to sending it, and nothing that was due disappears: it is answered,
// failed or counted as dropped. Calls in flight at the end are seen out. Only successes enter the latency tables; every
// other outcome has a distribution of its own. Histograms are merged, never percentiles. A run that the generator
// itself has limited is marked INVALID, with the reason.
//
// Run is the whole of it: a Config goes in, a Result (the schema mcp-load/v1) comes out.
package bench
