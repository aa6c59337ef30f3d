// Command mcp-load is a load generator and capacity planner for Model Context Protocol servers.
//
// Without arguments it is a demonstration: it starts the engine on loopback and drives 1,000 sessions for ten seconds.
// mcp-load run offers load to any server over Streamable HTTP or stdio. Exit codes: 0 pass, 1 runtime error, 2 usage,
// 98 the result is not valid, 99 a threshold was crossed, 130 interrupted (results are still written).
package main
