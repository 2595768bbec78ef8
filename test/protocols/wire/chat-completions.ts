// A chat completions client's expectations of our streams and responses, written from the
// protocol's documentation and from the errors of SDKs.
import assert from "node:assert/strict";
import { hasAll, isCount, wireEvents, type Ending } from "./events.ts";

const FINISH = ["stop", "length", "tool_calls", "content_filter", "function_call"];
const DELTA = [
  "role",
  "content",
  "refusal",
  "tool_calls",
  "reasoning_content",
  "reasoning_details",
  "extra_content",
  "annotations",
  "audio",
  "images",
];

export function checkStream(text: string, ending: Ending, usageAsked: boolean): void {
  const events = wireEvents(text);
  for (const event of events) assert.equal(event.name, undefined, "chat has no event lines");
  const datas = events.map((event) => event.data);
  if (ending === "complete") assert.equal(datas.pop(), "[DONE]", "the last line is [DONE]");
  assert.ok(!datas.includes("[DONE]"), "one [DONE], at the end of what is complete");
  const chunks = datas.map((data) => JSON.parse(data));
  if (ending === "failed") {
    const last = chunks.pop();
    checkError(last);
  }
  for (const chunk of chunks) assert.ok(!("error" in chunk), "an error is the last event");

  let finished = 0;
  let usages = 0;
  const calls: string[] = [];
  const lists = new Map<string, number>();
  chunks.forEach((chunk, i) => {
    for (const key of ["id", "created", "model", "object"])
      assert.equal(chunk[key], chunks[0][key], `${key} is the same in every chunk`);
    assert.equal(chunk.object, "chat.completion.chunk");
    assert.ok(isCount(chunk.created));
    assert.equal("usage" in chunk, usageAsked, "a usage key when it was asked for, and only then");
    if (chunk.choices.length === 0) {
      assert.equal(finished, 1, "usage comes after the finish");
      assert.ok(chunk.usage, "a chunk without choices carries the usage");
      checkUsage(chunk.usage);
      usages++;
      return;
    }
    assert.ok(!chunk.usage, "usage comes in a chunk of its own");
    assert.equal(chunk.choices.length, 1);
    const { index, delta, finish_reason } = chunk.choices[0];
    assert.equal(index, 0);
    assert.equal(finished, 0, `nothing after the finish: ${JSON.stringify(chunk)}`);
    assert.ok(finish_reason === null || FINISH.includes(finish_reason), `finish ${finish_reason}`);
    if (finish_reason !== null) finished++;
    for (const key of Object.keys(delta)) assert.ok(DELTA.includes(key), `delta.${key} is known`);
    if (i === 0) assert.equal(delta.role, "assistant", "the first chunk names the role");
    else assert.ok(!("role" in delta), "the role is named once");
    for (const key of ["content", "refusal"])
      if (key in delta)
        assert.ok(delta[key] === null || typeof delta[key] === "string", `${key} is text or null`);
    if ("reasoning_content" in delta) assert.equal(typeof delta.reasoning_content, "string");
    if ("tool_calls" in delta) checkCalls(delta.tool_calls, calls);
    for (const [key, entries] of Object.entries<any>(delta))
      if (Array.isArray(entries) && key !== "tool_calls") checkPlaces(key, entries, lists);
  });
  assert.equal(finished, ending === "complete" ? 1 : finished, "one chunk has a finish_reason");
  if (ending === "complete") assert.equal(usages, usageAsked ? 1 : 0, "one usage chunk if asked");
}

/** Python's SDK assembles a list by the positions of its entries. */
function checkPlaces(key: string, entries: readonly any[], lists: Map<string, number>): void {
  for (const { index } of entries) {
    const due = lists.get(key) ?? 0;
    assert.equal(index, due, `the entries of ${key} are numbered`);
    lists.set(key, due + 1);
  }
}

/** `kinds`: of the started calls. */
function checkCalls(deltas: any[], kinds: string[]): void {
  assert.ok(deltas.length > 0, "no empty tool_calls");
  for (const delta of deltas) {
    const kind = kinds[delta.index];
    if (kind === undefined) {
      assert.equal(delta.index, kinds.length, "indexes are contiguous from 0");
      assert.ok(typeof delta.id === "string" && delta.id !== "", "a call begins with its id");
      assert.ok(["function", "custom"].includes(delta.type), "a call begins with its type");
      const about = delta[delta.type];
      assert.ok(typeof about.name === "string" && about.name !== "", "a call begins with its name");
      assert.equal(about[delta.type === "custom" ? "input" : "arguments"], "");
      kinds.push(delta.type);
    } else {
      // A signature may be late, but never alone.
      assert.deepEqual(
        Object.keys(delta).filter((key) => key !== "extra_content"),
        ["index", kind],
        "later deltas carry the arguments",
      );
      const field = kind === "custom" ? "input" : "arguments";
      assert.deepEqual(Object.keys(delta[kind]), [field]);
      assert.equal(typeof delta[kind][field], "string");
    }
  }
}

export function checkWhole(answer: any): void {
  hasAll(answer, ["id", "object", "created", "model", "choices"], "a completion");
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.choices.length, 1);
  const { index, message, finish_reason } = answer.choices[0];
  hasAll(answer.choices[0], ["index", "message", "finish_reason", "logprobs"], "a choice");
  hasAll(message, ["role", "content", "refusal"], "a message");
  assert.equal(index, 0);
  assert.equal(message.role, "assistant");
  assert.ok(FINISH.includes(finish_reason), `finish ${finish_reason}`);
  assert.ok(message.content === null || typeof message.content === "string");
  if ("tool_calls" in message) {
    assert.ok(message.tool_calls.length > 0, "no empty tool_calls");
    for (const call of message.tool_calls) {
      assert.ok(call.id && call[call.type].name);
      assert.equal(
        typeof call[call.type][call.type === "custom" ? "input" : "arguments"],
        "string",
      );
    }
  }
  if (answer.usage) checkUsage(answer.usage);
}

function checkUsage(usage: any): void {
  for (const key of ["prompt_tokens", "completion_tokens", "total_tokens"])
    assert.ok(isCount(usage[key]), `${key} is a count`);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  const { cached_tokens = 0, cache_write_tokens = 0 } = usage.prompt_tokens_details ?? {};
  assert.ok(cached_tokens + cache_write_tokens <= usage.prompt_tokens, "caches lie in the prompt");
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  assert.ok(reasoning <= usage.completion_tokens, "reasoning lies in the completion");
}

export function checkError(body: any): void {
  hasAll(body.error, ["message", "type", "param", "code"], "an error");
  assert.equal(typeof body.error.message, "string");
  assert.ok(body.error.code === null || typeof body.error.code === "string");
}
