// The events that are created from a complete response decode to the same response, whatever its items
// are, and each of their numbers can be continued after.
import fc from "fast-check";
import { expect, it } from "vitest";
import { collectResponse, type JsonObject, type ModelEvent } from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import { fakes } from "tollgate/testing";
import { replayEvents } from "../../../plugins/frontends/background/replay-events.ts";

const text = fc.string({ maxLength: 20 });
const part = fc.oneof(
  fc.record({
    type: fc.constant("output_text"),
    text,
    annotations: fc.constant([]),
    logprobs: fc.constant([]),
  }),
  fc.record({ type: fc.constant("refusal"), refusal: text }),
);
const item = fc.oneof(
  fc.record({
    type: fc.constant("message"),
    role: fc.constant("assistant"),
    status: fc.constant("completed"),
    content: fc.array(part, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({
    type: fc.constant("reasoning"),
    summary: fc.array(fc.record({ type: fc.constant("summary_text"), text }), { maxLength: 2 }),
    encrypted_content: text,
  }),
  fc.record({
    type: fc.constant("function_call"),
    call_id: fc.constant("call_1"),
    name: fc.constant("look"),
    arguments: fc.constantFrom("{}", '{"a":1}'),
    status: fc.constant("completed"),
  }),
  fc.record({
    type: fc.constant("custom_tool_call"),
    call_id: fc.constant("call_2"),
    name: fc.constant("run"),
    input: text,
  }),
  fc.record({ type: fc.constant("web_search_call"), status: fc.constant("completed") }),
);
const response = fc
  .record({
    status: fc.constantFrom("completed", "incomplete"),
    output: fc.array(item, { maxLength: 4 }),
  })
  .map(({ status, output }): JsonObject => ({
    id: "resp_1",
    object: "response",
    created_at: 1_790_000_000,
    model: "m",
    status,
    incomplete_details: status === "incomplete" ? { reason: "max_output_tokens" } : null,
    error: null,
    output: output.map((one, n) => ({ ...one, id: `item_${n}` })) as JsonObject[],
    usage: { input_tokens: 3, output_tokens: 4, total_tokens: 7 },
  }));

const client = responses().client!;
const call = fakes.call({ protocol: "responses" });

function decodeWhole(of: JsonObject): ModelEvent[] {
  const events: ModelEvent[] = [];
  client.decodeResponse!(Buffer.from(JSON.stringify(of)), (event) => events.push(event), call, {});
  return events;
}

function decodeStream(of: JsonObject): ModelEvent[] {
  const events: ModelEvent[] = [];
  const headers = { "content-type": "text/event-stream" };
  const decoder = client.createDecoder!((event) => events.push(event), call, headers);
  for (const event of replayEvents(of))
    decoder.push(Buffer.from(`event: ${event["type"]}\ndata: ${JSON.stringify(event)}\n\n`));
  decoder.end();
  return events;
}

it("a stream that was created from a response has the content of the response", () =>
  fc.assert(
    fc.property(response, (of) => {
      expect(collectResponse(decodeStream(of))).toEqual(collectResponse(decodeWhole(of)));
      expect(replayEvents(of).at(-1)).toEqual({ type: `response.${of["status"]}`, response: of });
    }),
  ));

it("members of unknown types are no error", () => {
  const odd = {
    status: "completed",
    output: [null, 3, { type: 7, content: {}, summary: "x" }, {}],
  };
  expect(replayEvents(odd).map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_item.added",
    "response.output_item.done",
    "response.completed",
  ]);
});
