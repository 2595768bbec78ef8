// A responses client's expectations of our streams and responses: a client's own replay of the life
// of every item.
import assert from "node:assert/strict";
import { hasAll, isCount, wireEvents, type Ending } from "./events.ts";

/** The keys that the published schema of a response requires. */
const KEYS =
  "id object created_at completed_at status incomplete_details error model previous_response_id instructions output tools tool_choice truncation parallel_tool_calls text top_p temperature presence_penalty frequency_penalty top_logprobs reasoning usage max_output_tokens max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key".split(
    " ",
  );
const PREFIX: { readonly [type: string]: RegExp } = {
  message: /^msg_/,
  reasoning: /^rs_/,
  function_call: /^fc_/,
  custom_tool_call: /^ctc_/,
};

interface Item {
  readonly id: string;
  readonly type: string;
  readonly name: string | undefined;
  /** Per part of a message or of reasoning: the content of its deltas, and whether it is closed. */
  readonly parts: Map<string, { text: string; said: boolean; done: boolean }>;
  args: string;
  argsDone: boolean;
  done: any;
}

export function checkStream(text: string, ending: Ending): void {
  const all = wireEvents(text);
  assert.equal(all.pop()?.data, "[DONE]", "the stream ends with [DONE]");
  const events = all.map(({ name, data }, i) => {
    const event = JSON.parse(data);
    assert.equal(name, event.type, "the event line and the data say the same");
    assert.equal(event.sequence_number, i, "sequence numbers rise by one from 0");
    return event;
  });
  assert.equal(events[0]?.type, "response.created", "response.created comes first");
  assert.equal(events[1]?.type, "response.in_progress");
  const { id } = events[0].response;
  assert.match(id, /^resp_/);
  const last = events.pop();
  const items: Item[] = [];
  const ids = new Set<string>();
  const callIds = new Set<string>();
  for (const event of events) {
    if (event.response) {
      assert.equal(event.response.id, id, "the id stays");
      checkResponse(event.response);
      assert.equal(event.response.status, "in_progress");
      continue;
    }
    if (event.type === "error") {
      assert.equal(ending, "failed");
      assert.equal(typeof event.message, "string");
      continue;
    }
    step(event, items, ids, callIds);
  }

  assert.equal(last?.response?.id, id, "the last event is a response with the same id");
  checkResponse(last.response);
  assert.equal(last.type, `response.${last.response.status}`);
  if (ending === "failed") {
    assert.equal(last.type, "response.failed");
    assert.ok(last.response.error?.message && last.response.error.code, "a failure says why");
    return;
  }
  assert.ok(["response.completed", "response.incomplete"].includes(last.type), last.type);
  assert.ok(
    items.every((item) => item.done),
    "every item is done",
  );
  assert.deepEqual(
    last.response.output,
    items.map((item) => item.done),
    "the output is the items, in order",
  );
}

function step(event: any, items: Item[], ids: Set<string>, callIds: Set<string>): void {
  const { type, output_index } = event;
  if (type === "response.output_item.added") {
    assert.equal(output_index, items.length, "output_index rises by one");
    const { item } = event;
    if (PREFIX[item.type]) assert.match(item.id, PREFIX[item.type]!);
    assert.ok(!ids.has(item.id), "item ids are unique");
    ids.add(item.id);
    if (item.call_id !== undefined) {
      assert.ok(item.call_id.length >= 1 && item.call_id.length <= 64, "1 to 64 characters");
      assert.ok(!callIds.has(item.call_id), "call ids are unique");
      assert.notEqual(item.call_id, item.id);
      callIds.add(item.call_id);
    }
    if (item.type === "message") assert.deepEqual(item.content, []);
    if (item.type === "function_call") assert.equal(item.arguments, "");
    items.push({
      id: item.id,
      type: item.type,
      name: item.name,
      parts: new Map(),
      args: "",
      argsDone: false,
      done: undefined,
    });
    return;
  }
  const item = items[output_index];
  assert.ok(item && !item.done, `${type} belongs to an open item`);
  if (type === "response.output_item.done") {
    checkDone(item, event.item);
    item.done = event.item;
    return;
  }
  assert.equal(event.item_id, item.id, "item_id is the one announced");
  const key = `${event.summary_index === undefined ? "content" : "summary"} ${event.summary_index ?? event.content_index}`;
  const part = item.parts.get(key);
  switch (type.replace(/^response\./, "")) {
    case "content_part.added":
    case "reasoning_summary_part.added":
      assert.equal(part, undefined, "a part is added once");
      assert.ok(
        [...item.parts.values()].every((other) => other.done),
        "one part after the other",
      );
      assert.equal(event.part.text ?? event.part.refusal, "");
      if (event.part.type === "output_text") assert.deepEqual(event.part.annotations, []);
      item.parts.set(key, { text: "", said: false, done: false });
      return;
    case "output_text.delta":
    case "refusal.delta":
    case "reasoning_summary_text.delta":
    case "reasoning_text.delta":
      assert.ok(part && !part.said, "a delta belongs to an open part");
      if (type === "response.output_text.delta") assert.ok(Array.isArray(event.logprobs));
      part.text += event.delta;
      return;
    case "output_text.done":
    case "reasoning_summary_text.done":
    case "reasoning_text.done":
    case "refusal.done":
      assert.ok(part && !part.said);
      assert.equal(event.text ?? event.refusal, part.text, "done says what the deltas said");
      part.said = true;
      return;
    case "output_text.annotation.added":
      assert.ok(part && !part.done);
      return;
    case "content_part.done":
    case "reasoning_summary_part.done":
      assert.ok(part?.said && !part.done, "a part is done after its text");
      assert.equal(event.part.text ?? event.part.refusal, part.text);
      part.done = true;
      return;
    case "function_call_arguments.delta":
    case "custom_tool_call_input.delta":
      assert.ok(!item.argsDone);
      item.args += event.delta;
      return;
    case "function_call_arguments.done":
      assert.equal(event.name, item.name, "the call's name once more");
      assert.equal(event.arguments, item.args === "" ? event.arguments : item.args);
      item.args = event.arguments;
      item.argsDone = true;
      return;
    case "custom_tool_call_input.done":
      assert.equal(event.input, item.args);
      item.argsDone = true;
      return;
    default:
      // Hosted tools have events of their own.
      assert.match(
        type,
        /^response\.(web_search|file_search|image_generation|code_interpreter|mcp)_/,
      );
  }
}

function checkDone(item: Item, done: any): void {
  assert.equal(done.id, item.id, "the id stays");
  assert.equal(done.type, item.type, "the type stays");
  checkItem(done);
  const incomplete = done.status === "incomplete";
  assert.ok(
    [...item.parts.values()].every((part) => part.done) || incomplete,
    "every part of a done item is done",
  );
  const said = [...item.parts.values()].map((part) => part.text);
  if (item.type === "message")
    assert.deepEqual(
      done.content.map((part: any) => part.text ?? part.refusal),
      said,
    );
  if (item.type === "reasoning")
    assert.deepEqual(
      [...done.summary, ...(done.content ?? [])].map((part: any) => part.text),
      said,
    );
  if (item.type === "function_call") {
    assert.ok(item.argsDone || incomplete, "arguments.done comes before the item's done");
    assert.equal(done.arguments, item.args);
  }
  if (item.type === "custom_tool_call") assert.equal(done.input, item.args);
}

function checkItem(item: any): void {
  if (PREFIX[item.type]) assert.match(item.id, PREFIX[item.type]!);
  switch (item.type) {
    case "message":
      hasAll(item, ["id", "status", "role", "content"], "a message item");
      for (const part of item.content)
        if (part.type === "output_text")
          assert.ok(Array.isArray(part.annotations) && Array.isArray(part.logprobs));
      return;
    case "reasoning":
      assert.ok(Array.isArray(item.summary), "summary is a list");
      assert.ok(item.encrypted_content === undefined || typeof item.encrypted_content === "string");
      return;
    case "function_call":
      hasAll(item, ["id", "call_id", "name", "arguments", "status"], "a function call");
      assert.equal(typeof item.arguments, "string");
      return;
    case "custom_tool_call":
      hasAll(item, ["id", "call_id", "name", "input", "status"], "a custom tool call");
  }
}

function checkResponse(response: any): void {
  hasAll(response, KEYS, "a response");
  assert.ok(!("output_text" in response), "output_text is the SDK's own");
  assert.equal(response.object, "response");
  for (const key of ["top_p", "temperature", "presence_penalty", "frequency_penalty"])
    assert.equal(typeof response[key], "number", `${key} is a number`);
  for (const key of ["parallel_tool_calls", "store", "background"])
    assert.equal(typeof response[key], "boolean", `${key} is true or false`);
  assert.ok(["auto", "disabled"].includes(response.truncation));
  if (response.reasoning) hasAll(response.reasoning, ["effort", "summary"], "reasoning");
  for (const tool of response.tools)
    if (tool.type === "function")
      hasAll(tool, ["name", "description", "parameters", "strict"], "an echoed function");
  if (response.usage) checkUsage(response.usage);
}

export function checkWhole(response: any): void {
  checkResponse(response);
  assert.match(response.id, /^resp_/);
  assert.ok(["completed", "incomplete"].includes(response.status), response.status);
  assert.equal(response.status === "incomplete", response.incomplete_details !== null);
  const ids = response.output.map((item: any) => item.id);
  assert.equal(new Set(ids).size, ids.length, "item ids are unique");
  for (const item of response.output) checkItem(item);
}

function checkUsage(usage: any): void {
  for (const key of ["input_tokens", "output_tokens", "total_tokens"])
    assert.ok(isCount(usage[key]), `${key} is a count`);
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
  const { cached_tokens, cache_write_tokens = 0 } = usage.input_tokens_details;
  assert.ok(isCount(cached_tokens), "cached_tokens is a count");
  assert.ok(cached_tokens + cache_write_tokens <= usage.input_tokens, "caches lie in the input");
  assert.ok(usage.output_tokens_details.reasoning_tokens <= usage.output_tokens);
}
