#!/usr/bin/env bash
# Opens a page of mcp-load report in headless Chromium, from its file: it must load within two seconds, be smaller than
# 2 MB, load nothing else, and log no error.
#
#   .ci/page.sh PAGE.html
set -euo pipefail
page=$(realpath "$1")
size=$(wc -c <"$page")
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
# A copy of the page tells what the browser knows of it: when it was ready, and what it has tried to load.
cp "$page" "$profile/page.html"
cat >>"$profile/page.html" <<'END'
<script>addEventListener("load", () => setTimeout(() => {
  const loads = performance.getEntriesByType("resource").map((e) => e.name);
  document.title = JSON.stringify({ ready: Math.round(performance.now()), loads, charts: document.querySelectorAll("svg").length });
}))</script>
END
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
  --disable-component-update --disable-sync --user-data-dir="$profile/browser" --enable-logging=stderr --timeout=10000 \
  --dump-dom "file://$profile/page.html" >"$profile/dom.html" 2>"$profile/log.txt"
python3 - "$profile" "$size" <<'END'
import html, json, re, sys

folder, size = sys.argv[1], int(sys.argv[2])
title = re.search(r"<title>(\{.*?\})</title>", open(folder + "/dom.html", encoding="utf-8").read())
if not title:
    sys.exit("the page was not ready in time")
found = json.loads(html.unescape(title[1]))
console = [line for line in open(folder + "/log.txt", encoding="utf-8", errors="replace") if "CONSOLE" in line]
print(f"{size} bytes, ready after {found['ready']} ms, {found['charts']} charts, {len(found['loads'])} loads, {len(console)} console lines")
wrong = found["loads"] + console
if size > 2e6 or found["ready"] > 2000 or found["charts"] == 0 or wrong:
    sys.exit("\n".join(wrong) or "the page is too large, too slow, or has no chart")
END
