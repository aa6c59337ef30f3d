#!/usr/bin/env bash
# Measures what mcpengine, mcp-go and the official Go SDK hold on one processor, directly and through examples/gateway,
# and plans 5,000 agents on each.
#
#   internal/interop/study/run.sh OUTDIR      (about 13 minutes; needs taskset, 2 processors and 12,000 descriptors)
#
# A server has CPU 0, GOMAXPROCS=1 and a process of its own for every measurement; the gateway shares CPU 0 with it, so
# that its cost is seen; the generator has CPU 1. All offer the same tool, sleep, which takes 20 ms, as a tool does that
# waits for something else. OUTDIR then holds, for each SERVER and WAY (direct, gateway):
#
#   SERVER-WAY.json         capacity: the highest rate with p(99) < 50 ms, 5,000 sessions open
#   SERVER-WAY-agents.json  5,000 agents, each with a session and a think time of 10 s, offered to that one replica
#   SERVER-sessions.json    bytes of a session, also of the gateway (gateway-sessions.json)
#   SERVER-WAY-plan-N.json  plan for 5,000 agents that think for N seconds
#   log.txt                 what was printed, with exit codes
#
# A result that is there already is kept and not measured again. MAX_TIME, AGENTS and AGENT_TIME shorten it for a trial.
# MCP_LOAD names an mcp-load binary instead of this checkout's. On a machine that others use, BEFORE='chrt -r 5' (as
# root) puts servers, gateway and generator before them.
set -euo pipefail
[ $# = 1 ] || { echo 'usage: run.sh OUTDIR' >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

agents=${AGENTS:-5000} max_time=${MAX_TIME:-70s} agent_time=${AGENT_TIME:-20s}
objective='p(99)<50ms' tool_time='{"ms":20}'
servers='mcpengine mcp-go go-sdk'
work=$(mktemp -d)
pinned=(${BEFORE:-} taskset -c)
server='' gateway=''

stop() {
  for pid in $gateway $server; do
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  server='' gateway=''
}
trap 'stop; rm -rf "$work"' EXIT

ulimit -n "$(ulimit -H -n)"
if [ -n "${MCP_LOAD:-}" ]; then cp "$MCP_LOAD" "$work/mcp-load"; else (cd ../../.. && go build -o "$work/mcp-load" ./cmd/mcp-load); fi
(cd ../../.. && go build -o "$work/gateway-program" ./examples/gateway)
(cd .. && go build -o "$work/mcp-go" ./cmd/mcpgo-server && go build -o "$work/go-sdk" ./cmd/gosdk-server)

# await waits for the line that says where a server listens, and prints the address.
await() { # LOG
  local url
  for _ in $(seq 100); do
    url=$(sed -n 's/^listening //p' "$1")
    [ -z "$url" ] || { echo "$url"; return; }
    sleep 0.1
  done
  echo "run.sh: a server did not start:" >&2
  cat "$1" >&2
  return 1
}

# start starts a server, and the gateway before it where the way is that; url, tool, pid and server are then set.
start() { # SERVER WAY
  local command=("$work/$1" -http 127.0.0.1:0)
  [ "$1" != mcpengine ] || command=("$work/mcp-load" serve --http 127.0.0.1:0)
  GOMAXPROCS=1 "${pinned[@]}" 0 "${command[@]}" 2>"$work/server.log" &
  server=$! pid=$! tool=sleep
  url=$(await "$work/server.log")
  [ "$2" = gateway ] || return 0
  GOMAXPROCS=1 "${pinned[@]}" 0 "$work/gateway-program" -http 127.0.0.1:0 -upstream "$1=$url" 2>"$work/gateway.log" &
  gateway=$! pid=$! tool=$1_sleep
  url=$(await "$work/gateway.log")
}

# load runs mcp-load, prints the command as it would be typed, what it said, and its exit code. INVALID (98) and a
# crossed threshold (99) are findings; anything else but 0 ends the study.
load() { # ARGS...
  local rc=0
  { printf '\n$ mcp-load'; printf ' %q' "$@"; echo; } | tee -a "$out/log.txt"
  (cd "$out" && PATH=$work:$PATH && "${pinned[@]}" 1 mcp-load "$@" 2>&1 | tee -a log.txt; exit "${PIPESTATUS[0]}") || rc=$?
  echo "exit code $rc" | tee -a "$out/log.txt"
  case $rc in 0 | 98 | 99) ;; *) exit "$rc" ;; esac
}

capacity() { # SERVER WAY
  [ ! -e "$out/$1-$2.json" ] || return 0
  start "$1" "$2"
  load capacity "$url" --tool "$tool" --args "$tool_time" --threshold "$objective" --sessions "$agents" -r 1000 --step 3s \
    --max-time "$max_time" --server-pid "$pid" --live off --seed 1 -o "json=$1-$2.json"
  stop
}

offer() { # SERVER WAY
  [ ! -e "$out/$1-$2-agents.json" ] || return 0
  start "$1" "$2"
  load run "$url" --tool "$tool" --args "$tool_time" -u "$agents" --think-time exp:10s --threshold "$objective" \
    --warmup 10s -d "$agent_time" --server-pid "$pid" --live off --seed 1 -o "json=$1-$2-agents.json"
  stop
}

sessions() { # SERVER WAY NAME
  [ ! -e "$out/$3-sessions.json" ] || return 0
  start "$1" "$2"
  load sessions "$url" --tool "$tool" --args "$tool_time" --max "$agents" --steps 10 --idle-max 0 --storm 0 \
    --server-pid "$pid" --live off --seed 1 -o "json=$3-sessions.json"
  stop
}

{ echo "commit $(git rev-parse --short HEAD), $(go version)"; date -u +'%F %T UTC'; uptime; echo "before: ${BEFORE:-nothing}"; } | tee -a "$out/log.txt"
for s in $servers; do sessions "$s" direct "$s"; done
sessions mcpengine gateway gateway
for way in direct gateway; do
  for s in $servers; do capacity "$s" "$way"; done
  for s in $servers; do offer "$s" "$way"; done
done
uptime | tee -a "$out/log.txt"
for s in $servers; do
  for think in 10 1; do
    load plan "$s-sessions.json" "$s-direct.json" --target "${agents}users" --think-time "${think}s" -o "json=$s-direct-plan-$think.json"
    load plan gateway-sessions.json "$s-gateway.json" --target "${agents}users" --think-time "${think}s" -o "json=$s-gateway-plan-$think.json"
  done
done
