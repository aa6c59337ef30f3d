-- The load of compare.sh for wrk: tools/call with a fresh id for every request, the sessions taken in turn. Arguments
-- behind --: the tool's arguments as JSON, then the session ids.

local frame, sessions = "", {}

function init(args)
  frame = '","method":"tools/call","params":{"name":"echo","arguments":' .. args[1] .. "}}"
  for i = 2, #args do
    sessions[#sessions + 1] = args[i]
  end
end

local base = {
  ["Content-Type"] = "application/json",
  ["Accept"] = "application/json, text/event-stream",
  ["MCP-Protocol-Version"] = "2025-11-25",
  ["User-Agent"] = "mcp-load",
}
local id = 0

function request()
  id = id + 1
  base["Mcp-Session-Id"] = sessions[id % #sessions + 1]
  return wrk.format("POST", nil, base, '{"jsonrpc":"2.0","id":"' .. id .. frame)
end

-- One line for the script: requests, microseconds, errors of any kind.
function done(summary)
  local e = summary.errors
  io.write(string.format("wrk-result %d %d %d\n", summary.requests, summary.duration,
    e.connect + e.read + e.write + e.status + e.timeout))
end
