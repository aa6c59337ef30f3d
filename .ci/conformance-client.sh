#!/usr/bin/env bash
# Runs the official MCP conformance suite in client mode and counts the scenarios that a revision requires of a client,
# but for those of the OAuth client (auth/*).
#
#   conformance-client.sh BINARY REVISION      (REVISION: 2025-11-25 or 2026-07-28)
#
# BINARY is built from internal/conformanceclient. The suite starts it once for each scenario, all at once.
#
# Environment:
#   CONFORMANCE_HOME     folder that keeps the installed suite between runs, shared with the server's run-conformance.sh;
#                        unset: a folder of mktemp, removed at the end
#   CONFORMANCE_OUT      folder for the log and the suite's results; unset: a folder of mktemp, removed at the end
#   CONFORMANCE_VERSION  version of the suite (default below)
#   CONFORMANCE_NODE     node binary (default: node on the PATH, 20.6 or newer)
#
# Last line: "N passed, M failed".
# Exit: 0 all passed; 1 some failed; 2 bad usage; 3 the suite cannot be installed; 5 the suite broke or left no results.
set -euo pipefail

version=${CONFORMANCE_VERSION:-0.2.0-alpha.12}
sdk_version=1.32.2 # the suite asks for a range of this; fixed so that runs compare
node=${CONFORMANCE_NODE:-node}

die() { local code=$1; shift; echo "${0##*/}: $*" >&2; exit "$code"; }

[ $# -eq 2 ] || die 2 "usage: ${0##*/} BINARY REVISION"
[ -x "$1" ] && [ ! -d "$1" ] || die 2 "no executable file: $1"
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") revision=$2
[[ $revision =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || die 2 "REVISION must be a date, got '$revision'"
[[ $binary != *[[:space:]]* ]] || die 2 "the suite splits the command at blanks, and the path has one: $binary"
command -v "$node" >/dev/null || die 3 "no node found (set CONFORMANCE_NODE)"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
home=${CONFORMANCE_HOME:-$scratch/home} out=${CONFORMANCE_OUT:-$scratch/out}
mkdir -p "$home" "$out"
home=$(cd "$home" && pwd) out=$(cd "$out" && pwd)

# --- the suite, installed once for each version --------------------------------
suite=$home/suite-$version
package=$suite/node_modules/@modelcontextprotocol/conformance
if [ ! -f "$package/dist/index.js" ]; then
  command -v npm >/dev/null || die 3 "no npm found, and the suite is not installed in $home"
  # Made beside the final place and renamed, so that half an installation is never kept.
  stage=$(mktemp -d "$home/.install.XXXXXX")
  echo '{"private":true}' >"$stage/package.json"
  if ! npm install --prefix "$stage" --no-save --no-package-lock --ignore-scripts --no-audit --no-fund --loglevel=error \
      --fetch-retries=1 --fetch-timeout=60000 \
      "@modelcontextprotocol/conformance@$version" "@modelcontextprotocol/sdk@$sdk_version" >"$scratch/npm.log" 2>&1; then
    tail -n 5 "$scratch/npm.log" >&2
    rm -rf "$stage"
    die 3 "the suite cannot be installed; set CONFORMANCE_HOME to a folder that has it"
  fi
  rm -rf "$suite"
  mv "$stage" "$suite" 2>/dev/null || rm -rf "$stage" # another run was faster
fi
[ -f "$package/dist/index.js" ] || die 3 "the installed suite has no dist/index.js"
[ -f "$package/requirements/$revision.yaml" ] || die 2 "suite $version has no requirements for $revision"

# The suite imports fs.globSync, which only Node 22 has, and which no run of a client calls. An older node gets a stub.
shim=()
if ! "$node" -e 'process.exit(require("fs").globSync ? 0 : 1)'; then
  cat >"$scratch/fs.mjs" <<'JS'
export * from 'node:fs';
export const globSync = () => { throw new Error('fs.globSync needs node 22'); };
JS
  cat >"$scratch/hook.mjs" <<'JS'
const stub = new URL('./fs.mjs', import.meta.url).href;
export const resolve = (name, context, next) =>
  name === 'fs' && context.parentURL?.endsWith('/conformance/dist/index.js')
    ? { url: stub, shortCircuit: true } : next(name, context);
JS
  cat >"$scratch/shim.mjs" <<'JS'
import { register } from 'node:module';
register('./hook.mjs', import.meta.url);
JS
  shim=(--import "file://$scratch/shim.mjs")
fi

# --- the run --------------------------------------------------------------------
# The suite's own exit status is no help: it counts the scenarios of the OAuth client as well.
results=$(mktemp -d "$out/results.XXXXXX") log=$out/conformance-client-$revision.log rc=0
"$node" ${shim[@]+"${shim[@]}"} "$package/dist/index.js" client --command "$binary" \
  --requirements "$revision" -o "$results" >"$log" 2>&1 || rc=$?

# --- the score ------------------------------------------------------------------
# A scenario passes with at least one SUCCESS and no FAILURE. One without results has failed.
cat >"$scratch/score.mjs" <<'JS'
import { readFileSync, readdirSync, existsSync } from 'node:fs';
import { createRequire } from 'node:module';
const [home, revision, results] = process.argv.slice(2);
const { parse } = createRequire(home + '/dist/index.js')('yaml');
const requirements = parse(readFileSync(`${home}/requirements/${revision}.yaml`, 'utf8'));
const found = new Map();
for (const folder of readdirSync(results)) {
  const file = `${results}/${folder}/checks.json`;
  if (!existsSync(file)) continue;
  found.set(folder.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, ''), JSON.parse(readFileSync(file, 'utf8')));
}
if (found.size === 0) process.exit(5);
const verdict = (name) => {
  const of = (status) => (found.get(name) ?? []).filter((check) => check.status === status);
  return { ok: of('FAILURE').length === 0 && of('SUCCESS').length > 0, bad: of('FAILURE'), warnings: of('WARNING') };
};
const show = (check, what) =>
  console.log(`     ${what} ${check.id}: ${String(check.errorMessage ?? check.description).replace(/\s+/g, ' ').slice(0, 300)}`);
let passed = 0, failed = 0;
for (const name of requirements.client.filter((name) => !name.startsWith('auth/'))) {
  const { ok, bad, warnings } = verdict(name);
  ok ? passed++ : failed++;
  console.log(`${ok ? 'ok  ' : 'FAIL'} ${name}${found.has(name) ? '' : ' (no result)'}`);
  for (const check of bad) show(check, 'failure');
  for (const check of warnings) show(check, 'warning');
}
for (const { scenario, leg, reason } of requirements.not_scored ?? []) {
  if (leg !== 'client' || scenario.startsWith('auth/')) continue;
  console.log(`${verdict(scenario).ok ? 'ok  ' : '-   '} ${scenario} (not required: ${reason})`);
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
JS
score=0
"$node" "$scratch/score.mjs" "$package" "$revision" "$results" || score=$?
if [ "$score" -gt 1 ]; then
  tail -n 20 "$log" >&2
  die 5 "the suite left no results (its exit status was $rc)"
fi
exit "$score"
