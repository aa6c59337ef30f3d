#!/usr/bin/env bash
# Compares the measuring client with wrk: the same tools/call against an mcp-go server, in turn, ROUNDS times.
#
#   internal/interop/wrk/compare.sh [ROUNDS [SECONDS]]      (default 5 rounds of 8 s; needs wrk, curl and taskset)
#
# The server has CPU 0 to itself and the generator CPU 1. CPU per request is the user and system time of the whole
# generator process, its start and the opening of its sessions included, over the requests that were answered; it is
# what /proc/PID/stat shows of a process when it ends. TARGET=URL compares against a server that runs already. On a
# machine that others use, NICE=-10 (as root) puts server and both generators before them.
set -euo pipefail
cd "$(dirname "$0")"

rounds=${1:-5} seconds=${2:-8} connections=64
pinned=(nice -n "${NICE:-0}" taskset -c)
arguments='{"message":"hello"}'
work=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT

for tool in wrk curl taskset; do
  command -v "$tool" >/dev/null || { echo "compare.sh: $tool is missing; install its package" >&2; exit 2; }
done
(cd ../../.. && go build -o "$work/mcp-load" ./cmd/mcp-load)
if [ -z "${TARGET:-}" ]; then
  (cd .. && go build -o "$work/server" ./cmd/mcpgo-server)
  "${pinned[@]}" 0 "$work/server" -http 127.0.0.1:0 2>"$work/server.log" &
  server=$!
  for _ in $(seq 50); do
    TARGET=$(sed -n 's/^listening //p' "$work/server.log")
    [ -n "$TARGET" ] && break
    sleep 0.1
  done
fi

# openSession prints the id of a new session.
openSession() {
  local id
  id=$(curl -sS -o /dev/null -D - "$TARGET" -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' \
    -d '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wrk","version":"0"}}}' |
    tr -d '\r' | sed -n 's/^[Mm]cp-[Ss]ession-[Ii]d: //p')
  curl -sS -o /dev/null "$TARGET" -H 'Content-Type: application/json' -H "Mcp-Session-Id: $id" \
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2025-11-25' \
    -d '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  echo "$id"
}
sessions=()
for _ in $(seq "$connections"); do sessions+=("$(openSession)"); done

TIMEFORMAT='%U %S'

# runWrk and runLoad print: requests, requests a second, user and system time, errors.
runWrk() {
  { time "${pinned[@]}" 1 wrk -c "$connections" -t 1 -d "${seconds}s" -s call.lua "$TARGET" -- "$arguments" "${sessions[@]}" \
    >"$work/out" 2>&1; } 2>"$work/cpu"
  awk -v cpu="$(tail -1 "$work/cpu")" '$1 == "wrk-result" { print $2, $2 / ($3 / 1e6), cpu, $4 }' "$work/out"
}
runLoad() {
  { time "${pinned[@]}" 1 "$work/mcp-load" run "$TARGET" -c "$connections" -r max -d "${seconds}s" --tool echo \
    --args "$arguments" --live off -o json="$work/result.json" >"$work/out" 2>&1; } 2>"$work/cpu" || true
  number() { grep -o "\"$1\": *[0-9.]*" "$work/result.json" | head -1 | sed 's/.*: *//'; }
  echo "$(number total) $(number completed_rps) $(tail -1 "$work/cpu") $(($(number total) - $(number ok)))"
}

printf '%-8s %-9s %10s %10s %9s %9s %12s %7s\n' round client requests rps user_s system_s us/request errors
for round in $(seq "$rounds"); do
  for client in wrk load; do
    if [ "$client" = wrk ]; then line=$(runWrk); else line=$(runLoad); fi
    echo "$client $line" >>"$work/all"
    awk -v r="$round" -v c="$client" '{ printf "%-8s %-9s %10d %10.0f %9.2f %9.2f %12.2f %7d\n",
      r, c, $1, $2, $3, $4, ($3 + $4) * 1e6 / $1, $5 }' <<<"$line"
  done
done
awk '
  { n[$1]++; rps[$1, n[$1]] = $3; cost[$1, n[$1]] = ($4 + $5) * 1e6 / $2 }
  function median(a, who, k,   i, j, v, t) {
    for (i = 1; i <= k; i++) v[i] = a[who, i]
    for (i = 1; i <= k; i++) for (j = i + 1; j <= k; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
    return k % 2 ? v[(k + 1) / 2] : (v[k / 2] + v[k / 2 + 1]) / 2
  }
  END {
    w = median(rps, "wrk", n["wrk"]); l = median(rps, "load", n["load"])
    cw = median(cost, "wrk", n["wrk"]); cl = median(cost, "load", n["load"])
    printf "medians: wrk %.0f/s, mcp-load %.0f/s: %+.1f %%; CPU of a request %.2f and %.2f us: %.2f times\n",
      w, l, 100 * (l / w - 1), cw, cl, cl / cw
    if (l / w < 0.9 || l / w > 1.1 || cl / cw > 3.5) { print "outside of what was asked: 10 %, 3.5 times"; exit 1 }
    print "within what was asked: 10 %, 3.5 times"
  }' "$work/all"
