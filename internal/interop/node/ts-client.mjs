// Drives a server of the demo fixture with the client of the official TypeScript SDK.
//
//   node ts-client.mjs URL
//   node ts-client.mjs COMMAND ARG...
//
// Prints a line per check; the exit status is 1 if one of them failed.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [target, ...args] = process.argv.slice(2);
assert.ok(target, 'give a URL, or a command and its arguments');
const overHTTP = /^https?:/.test(target);
const transport = overHTTP
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args, stderr: 'inherit' });
const client = new Client({ name: 'interop', version: '1' });
const complaints = [];
client.onerror = (error) => complaints.push(error.message);

const limit = { timeout: 20_000 };
const call = (name, args, options = {}) => client.callTool({ name, arguments: args }, undefined, { ...limit, ...options });
const textOf = (result) => result.content.map((item) => item.text ?? '').join('');
const echo = async (message) => assert.equal(textOf(await call('echo', { message })), message);
const rejectsOrFails = async (promise) => {
  const result = await promise.catch((error) => ({ isError: error instanceof Error }));
  assert.equal(result.isError, true);
};

let failed = 0;
async function check(name, f) {
  const start = performance.now();
  try {
    await f();
    console.log(`ok   ${name} (${Math.round(performance.now() - start)} ms)`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${name}: ${error.stack}`);
  }
}

await client.connect(transport, limit);

await check('initialize', () => {
  assert.ok(client.getServerVersion().name);
  for (const capability of ['tools', 'resources', 'prompts']) {
    assert.ok(client.getServerCapabilities()[capability], `capability ${capability} is missing`);
  }
});

await check('ping', () => client.ping(limit));

await check('tools/list', async () => {
  const { tools } = await client.listTools(undefined, limit);
  const names = tools.map((tool) => tool.name).sort();
  assert.deepEqual(names, ['big', 'echo', 'fail', 'panic', 'progress', 'sleep']);
  const schema = tools.find((tool) => tool.name === 'echo').inputSchema;
  assert.equal(schema.properties.message.type, 'string');
  assert.deepEqual(schema.required, ['message']);
});

await check('tools/call', async () => {
  await echo('hello');
  await echo('a "quoted" line\nand ünïcødé \u{1F600}');
  assert.equal(textOf(await call('big', { bytes: 1 << 20 })).length, 1 << 20);
  assert.notEqual((await call('sleep', { ms: 10 })).isError, true);
});

await check('concurrent tools/call', async () => {
  const messages = Array.from({ length: 50 }, (_, i) => `message ${i}`);
  await Promise.all(messages.map(echo));
});

await check('failing tools', async () => {
  const result = await call('fail', {});
  assert.equal(result.isError, true);
  assert.ok(textOf(result));
  await rejectsOrFails(call('panic', {}));
  await rejectsOrFails(call('no such tool', {}));
  await echo('still here');
});

await check('resources', async () => {
  const { resources } = await client.listResources(undefined, limit);
  assert.ok(resources.some((resource) => resource.uri === 'test://static/text'));
  const { resourceTemplates } = await client.listResourceTemplates(undefined, limit);
  assert.deepEqual(resourceTemplates.map((template) => template.uriTemplate), ['test://items/{id}']);
  for (const [uri, part] of [['test://static/text', ''], ['test://items/4711', '4711']]) {
    const { contents } = await client.readResource({ uri }, limit);
    assert.equal(contents[0].uri, uri);
    assert.ok(contents[0].text && contents[0].text.includes(part), `${uri}: ${contents[0].text}`);
  }
  await assert.rejects(client.readResource({ uri: 'test://nothing/here' }, limit));
});

await check('prompts', async () => {
  const { prompts } = await client.listPrompts(undefined, limit);
  assert.deepEqual(prompts.map((prompt) => prompt.name), ['greeting']);
  const { messages } = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada' } }, limit);
  assert.ok(messages[0].content.text.includes('Ada'));
});

await check('progress', async () => {
  const seen = [];
  const onprogress = ({ progress, total }) => seen.push([progress, total]);
  const result = await call('progress', { steps: 4, delayMs: 50 }, { onprogress });
  assert.equal(textOf(result), 'done');
  // The SDK loses a notification that it reads in one piece with the result, which may happen to the last one.
  const sent = [[1, 4], [2, 4], [3, 4], [4, 4]];
  assert.ok(seen.length >= 3, `got ${seen.length} of 4 notifications`);
  assert.deepEqual(seen, sent.slice(0, seen.length));
});

await check('cancellation', async () => {
  const controller = new AbortController();
  let cancelledAt;
  // The call has reported progress, so it certainly runs when it is cancelled.
  const onprogress = () => {
    cancelledAt ??= performance.now();
    controller.abort('no longer needed');
  };
  const options = { signal: controller.signal, onprogress };
  await assert.rejects(call('progress', { steps: 100_000, delayMs: 10 }, options));
  assert.ok(cancelledAt, 'the call failed before it was cancelled');
  const waited = performance.now() - cancelledAt;
  assert.ok(waited < 2000, `the call returned ${waited} ms after the cancellation`);
  await echo('after the cancellation');
  const answers = complaints.filter((message) => message.includes('unknown message ID'));
  assert.deepEqual(answers, [], 'the cancelled call was answered');
});

await check('close', async () => {
  const start = performance.now();
  if (overHTTP) {
    await transport.terminateSession();
    assert.equal(transport.sessionId, undefined, 'the server refused to end the session');
  }
  await client.close();
  // On stdio the SDK waits two seconds for the server to leave before it sends SIGTERM.
  const took = performance.now() - start;
  assert.ok(took < 1900, `closing took ${Math.round(took)} ms`);
});

console.log(failed === 0 ? 'all checks passed' : `${failed} checks failed`);
process.exit(failed === 0 ? 0 : 1);
