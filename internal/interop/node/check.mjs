// Judges a file that a program under test has written.
//
//   node check.mjs tools FILE    a tools/list result with the tools of the demo fixture
//   node check.mjs result FILE   an mcp-load/v1 result of a run over stdio without errors
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';

const [kind, file] = process.argv.slice(2);
const value = JSON.parse(readFileSync(file, 'utf8'));

const judges = {
  tools() {
    const names = value.tools.map((tool) => tool.name).sort();
    assert.deepEqual(names, ['big', 'echo', 'fail', 'panic', 'progress', 'sleep']);
  },
  result() {
    const { schema, conditions, sessions, requests } = value;
    assert.equal(schema, 'mcp-load/v1');
    assert.equal(conditions.transport, 'stdio');
    assert.ok(sessions.opened > 0 && sessions.closed === sessions.opened, `sessions: ${JSON.stringify(sessions)}`);
    assert.equal(sessions.failed + sessions.lost, 0, `sessions: ${JSON.stringify(sessions)}`);
    assert.ok(requests.total > 0 && requests.ok === requests.total, `requests: ${JSON.stringify(requests)}`);
  },
};
assert.ok(judges[kind], `no such kind: ${kind}`);
judges[kind]();
