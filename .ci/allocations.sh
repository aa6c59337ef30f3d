#!/usr/bin/env bash
# Runs the benchmarks of bench/layers and compares their allocations with the baseline in .ci/allocs.
#
#   .ci/allocations.sh            fails where one allocates over 10 % more often than in the baseline, or is not in it
#   .ci/allocations.sh -update    writes the baseline anew
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=.ci/allocs

measured=$(mktemp)
trap 'rm -f "$measured"' EXIT

# A fixed number of runs: what a benchmark allocates once is then always the same share of the figure.
go test -run '^$' -bench . -benchtime 2000x -benchmem -timeout 5m ./bench/layers |
  awk '/^Benchmark/ { sub(/-[0-9]+$/, "", $1); for (i = 2; i < NF; i++) if ($(i + 1) == "allocs/op") print $1, $i }' >"$measured"
[ -s "$measured" ] || { echo 'no benchmark ran'; exit 1; }

if [ "${1:-}" = -update ]; then
  { echo '# Allocations of one run of each benchmark of bench/layers; .ci/allocations.sh -update writes this file.'
    cat "$measured"; } >"$baseline"
  exit
fi

awk '
  FNR == NR { if ($1 !~ /^#/) allowed[$1] = $2; next }
  !($1 in allowed) { print $1 ": " $2 " allocations, not in the baseline"; bad++; next }
  $2 > allowed[$1] * 1.1 { print $1 ": " $2 " allocations, the baseline has " allowed[$1]; bad++ }
  { ran[$1] = 1 }
  END {
    for (name in allowed) if (!(name in ran)) { print name ": in the baseline, and did not run"; bad++ }
    print length(ran) " benchmarks compared, " bad + 0 " beyond the baseline"
    exit bad > 0
  }' "$baseline" "$measured"
