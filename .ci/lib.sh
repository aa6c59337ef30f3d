# Functions of .ci/run. A stage is a function that is run in a shell of its own; the run goes on after a failure, so that
# one run shows all of them.

passed=0 failed=0 skipped=0
failures=()
started=$SECONDS
rc_skipped=77
server= # process id of a running `mcp-load serve`, known to the stage that started it

# stage NAME COMMAND... runs COMMAND and prints how it ended and how long it took.
stage() {
  local name=$1 begin=$SECONDS rc=0
  shift
  printf '\n=== %s\n' "$name"
  if [ "$begin" -ge "$time_limit" ]; then
    failed=$((failed + 1)) failures+=("$name")
    echo "FAIL $name (no time left: more than $time_limit s are over)"
    return
  fi
  # Not in a condition, where bash would ignore set -e inside the command.
  set +e
  (trap stop_server EXIT; set -e; "$@")
  rc=$?
  set -e
  case $rc in
    0) passed=$((passed + 1)); echo "PASS $name ($((SECONDS - begin)) s)" ;;
    "$rc_skipped") skipped=$((skipped + 1)); echo "SKIP $name ($((SECONDS - begin)) s)" ;;
    *) failed=$((failed + 1)); failures+=("$name"); echo "FAIL $name ($((SECONDS - begin)) s, exit status $rc)" ;;
  esac
}

# skip REASON ends a stage that cannot be run here: a failure where CI=true, a loud remark elsewhere.
skip() {
  if [ "${CI:-}" = true ]; then
    echo "!!! cannot be run: $* (a failure, since CI=true)"
    exit 1
  fi
  echo "!!! SKIPPED: $*"
  exit "$rc_skipped"
}

# need TOOL... skips the stage when a program is missing.
need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || skip "no $tool on the PATH"
  done
}

# need_shared FOLDER skips the stage when the folder beside the checkout is missing, as it is in a clone elsewhere.
need_shared() {
  [ -d "$shared/$1" ] || skip "no folder ../shared/$1 beside this checkout"
}

# summary prints the totals and returns 1 when a stage failed.
summary() {
  printf '\n'
  local name
  for name in ${failures[@]+"${failures[@]}"}; do echo "failed: $name"; done
  [ "$skipped" -eq 0 ] || echo "$skipped skipped"
  echo "$((SECONDS - started)) s in all"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ]
}

# need_binary builds the command if no earlier stage has.
need_binary() { [ -x "$mcp_load" ] || build; }

# start_server ARG... runs `mcp-load serve` on a free port and sets url; stop_server ends it.
start_server() {
  need_binary
  local log=$scratch/serve.log
  : >"$log"
  "$mcp_load" serve --http 127.0.0.1:0 "$@" 2>"$log" &
  server=$!
  for _ in $(seq 100); do
    url=$(sed -n 's/^listening //p' "$log" | head -n 1)
    [ -z "$url" ] || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$log"
  echo "mcp-load serve $* did not get ready"
  stop_server
  return 1
}

stop_server() {
  [ -n "$server" ] || return 0
  kill "$server" 2>/dev/null || true
  for _ in $(seq 50); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
