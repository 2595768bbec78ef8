// A messages client's expectations of our streams and responses.
import assert from "node:assert/strict";
import { hasAll, isCount, wireEvents, type Ending } from "./events.ts";

const STOP = [
  "end_turn",
  "max_tokens",
  "stop_sequence",
  "tool_use",
  "pause_turn",
  "refusal",
  "model_context_window_exceeded",
];
/** Deltas that a block accepts. */
const DELTAS: { readonly [block: string]: readonly string[] } = {
  text: ["text_delta", "citations_delta"],
  thinking: ["thinking_delta", "signature_delta"],
  redacted_thinking: [],
  tool_use: ["input_json_delta"],
  server_tool_use: ["input_json_delta"],
};
const RESULTS = /_tool_result$/;

export function checkStream(text: string, ending: Ending): void {
  const events = wireEvents(text).map(({ name, data }) => {
    const event = JSON.parse(data);
    assert.equal(name, event.type, "the event line and the data say the same");
    return event;
  });
  if (ending === "failed") checkError(events.pop());
  const said = events.filter((event) => event.type !== "ping");
  if (events.some((event) => event.type === "ping"))
    assert.equal(events[0].type, "message_start", "a ping comes after message_start");

  let block: { index: number; type: string; args: string } | undefined;
  let next = 0;
  let state: "before" | "blocks" | "ending" | "over" = "before";
  let stopReason: unknown = null;
  const tools: string[] = [];
  for (const event of said) {
    switch (event.type) {
      case "message_start":
        assert.equal(state, "before", "one message_start, first");
        checkMessage(event.message);
        assert.deepEqual(event.message.content, []);
        assert.equal(event.message.stop_reason, null);
        state = "blocks";
        break;
      case "content_block_start": {
        assert.equal(state, "blocks");
        assert.equal(block, undefined, "blocks never interleave");
        assert.equal(event.index, next++, "indexes are contiguous from 0");
        const { type } = event.content_block;
        assert.ok(type in DELTAS || RESULTS.test(type), `block ${type} is known`);
        if (type === "text") assert.equal(event.content_block.text, "");
        if (type === "thinking") {
          assert.equal(event.content_block.thinking, "");
          assert.equal(event.content_block.signature, "");
        }
        if (type === "tool_use") {
          assert.deepEqual(event.content_block.input, {}, "arguments come in deltas");
          checkTool(event.content_block, tools);
        }
        block = { index: event.index, type, args: "" };
        break;
      }
      case "content_block_delta":
        assert.ok(block, "a delta needs its block");
        assert.equal(event.index, block.index);
        assert.ok(
          DELTAS[block.type]?.includes(event.delta.type),
          `${event.delta.type} in ${block.type}`,
        );
        if (event.delta.type === "input_json_delta") block.args += event.delta.partial_json;
        break;
      case "content_block_stop":
        assert.ok(block, "a stop needs its block");
        assert.equal(event.index, block.index);
        block = undefined;
        break;
      case "message_delta":
        assert.equal(block, undefined, "every block is closed");
        assert.ok(state === "blocks" || state === "ending");
        state = "ending";
        hasAll(event.delta, ["stop_reason", "stop_sequence"], "message_delta");
        stopReason = event.delta.stop_reason;
        assert.ok(isCount(event.usage.output_tokens), "output_tokens is a number");
        checkUsage(event.usage);
        break;
      case "message_stop":
        assert.equal(state, "ending", "message_delta comes before message_stop");
        assert.ok(STOP.includes(stopReason as string), `stop_reason ${String(stopReason)}`);
        if (stopReason === "tool_use") assert.ok(tools.length > 0, "tool_use means a tool is used");
        state = "over";
        break;
      default:
        assert.fail(`unknown event ${event.type}`);
    }
  }
  if (ending === "complete") assert.equal(state, "over", "message_stop ends the stream");
  else assert.notEqual(state, "over", "no message_stop in what failed");
}

function checkMessage(message: any): void {
  hasAll(
    message,
    ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
    "a message",
  );
  assert.equal(message.type, "message");
  assert.equal(message.role, "assistant");
  assert.ok(isCount(message.usage.input_tokens), "input_tokens is a number");
  assert.ok(isCount(message.usage.output_tokens), "output_tokens is a number");
  checkUsage(message.usage);
}

function checkTool(block: any, ids: string[]): void {
  assert.match(block.id, /^[a-zA-Z0-9_-]+$/, "the id is legal here");
  assert.match(block.name, /^[a-zA-Z0-9_-]{1,128}$/, "the name is legal here");
  assert.ok(!ids.includes(block.id), "ids are unique");
  ids.push(block.id);
}

function checkUsage(usage: any): void {
  for (const key of Object.keys(usage).filter((name) => name.endsWith("_tokens")))
    assert.ok(usage[key] === null || isCount(usage[key]), `${key} is a count or null`);
  const parts = usage.cache_creation;
  if (parts && usage.cache_creation_input_tokens !== null)
    assert.equal(
      parts.ephemeral_5m_input_tokens + parts.ephemeral_1h_input_tokens,
      usage.cache_creation_input_tokens,
      "the parts of cache_creation sum",
    );
  const thinking = usage.output_tokens_details?.thinking_tokens ?? 0;
  if (usage.output_tokens > 1)
    assert.ok(thinking <= usage.output_tokens, "thinking lies in the output");
}

export function checkWhole(message: any): void {
  checkMessage(message);
  assert.ok(STOP.includes(message.stop_reason), `stop_reason ${message.stop_reason}`);
  const tools: string[] = [];
  for (const block of message.content) {
    assert.ok(block.type in DELTAS || RESULTS.test(block.type), `block ${block.type} is known`);
    if (block.type === "text") assert.ok(block.text !== "", "no empty text block");
    if (block.type === "thinking") hasAll(block, ["thinking", "signature"], "thinking");
    if (block.type === "tool_use") {
      checkTool(block, tools);
      assert.ok(
        typeof block.input === "object" && block.input !== null && !Array.isArray(block.input),
      );
    }
  }
  if (message.stop_reason === "tool_use") assert.ok(tools.length > 0);
}

export function checkError(body: any): void {
  assert.equal(body?.type, "error");
  hasAll(body.error, ["type", "message"], "an error");
  assert.equal(typeof body.error.message, "string");
}
