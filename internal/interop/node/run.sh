#!/usr/bin/env bash
# Tests an mcp-load binary against MCP programs from npm: the client of the official TypeScript SDK, the MCP Inspector's
# command-line mode, and, the other way round, the server-everything.
#
#   run.sh MCP_LOAD
#
# Needs Node 20. (The Inspector is of the last 1.x release: it asks for Node 22, though its command line runs on 20,
# which the 2.x releases do not.)
#
# The packages are installed in a temporary folder outside the checkout, which is removed at the end, or in
# INTEROP_NODE_HOME, which is kept. Prints a line for each check; exit status 0 all passed, 1 some failed, 2 bad usage,
# 3 the packages cannot be installed.
set -euo pipefail

[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: ${0##*/} MCP_LOAD   (a binary)" >&2; exit 2; }
mcp_load=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
here=$(cd "$(dirname "$0")" && pwd)

scratch=$(mktemp -d)
server=
stop_server() {
  [ -n "$server" ] || return 0
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
trap 'stop_server; rm -rf "$scratch"' EXIT

# --- packages ----------------------------------------------------------------
home=${INTEROP_NODE_HOME:-$scratch/node}
mkdir -p "$home"
home=$(cd "$home" && pwd)
# Node looks for packages beside the script, so the scripts go where the packages are.
cp "$here"/package.json "$here"/*.mjs "$home/"
if ! (cd "$home" && timeout 300 npm install --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error) >"$scratch/npm.log" 2>&1; then
  tail -n 5 "$scratch/npm.log" >&2
  echo "run.sh: the npm packages cannot be installed" >&2
  exit 3
fi
modules=$home/node_modules

# --- checks ------------------------------------------------------------------
passed=0 failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$scratch/log" 2>&1; then
    passed=$((passed + 1))
    echo "ok   $name"
  else
    failed=$((failed + 1))
    echo "FAIL $name"
    sed 's/^/     /' "$scratch/log"
  fi
}

start_server() { # sets url
  "$mcp_load" serve --http 127.0.0.1:0 2>"$scratch/serve.log" &
  server=$!
  for _ in $(seq 100); do
    url=$(sed -n 's/^listening //p' "$scratch/serve.log" | head -n 1)
    [ -z "$url" ] || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$scratch/serve.log" >&2
  echo "run.sh: mcp-load serve did not get ready" >&2
  exit 1
}

ts_client() { timeout 120 node "$home/ts-client.mjs" "$@"; }

# The Inspector reads options of the server's command as its own, so the command comes from a configuration file.
inspect_stdio() {
  cat >"$scratch/inspector.json" <<JSON
{ "mcpServers": { "mcp-load": { "type": "stdio", "command": "$mcp_load", "args": ["serve", "--stdio"] } } }
JSON
  inspect --config "$scratch/inspector.json" --server mcp-load
}

inspect() {
  timeout 60 node "$modules/@modelcontextprotocol/inspector/cli/build/cli.js" --cli "$@" --method tools/list \
    2>"$scratch/inspector.err" >"$scratch/inspector.out" || { cat "$scratch"/inspector.{out,err}; return 1; }
  node "$home/check.mjs" tools "$scratch/inspector.out"
}

load_everything() {
  # Status 98 says that this machine was too busy for the numbers to be trusted; the counts are judged all the same.
  local rc=0
  timeout 60 "$mcp_load" run -d 2s --warmup 0s --sessions 1 -c 2 --tool echo --args '{"message":"hello"}' \
    -o "json=$scratch/everything.json" \
    -- node "$modules/@modelcontextprotocol/server-everything/dist/index.js" stdio || rc=$?
  [ "$rc" -eq 0 ] || [ "$rc" -eq 98 ] || return 1
  node "$home/check.mjs" result "$scratch/everything.json"
}

check 'TypeScript SDK client over stdio' ts_client "$mcp_load" serve --stdio
check 'MCP Inspector over stdio' inspect_stdio
check 'mcp-load run against server-everything over stdio' load_everything
start_server
check 'TypeScript SDK client over HTTP' ts_client "$url"
check 'MCP Inspector over HTTP' inspect "$url" --transport http
stop_server

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
