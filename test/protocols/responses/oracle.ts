// A client's own replay of a stream: items are built from deltas, and the final content must be the
// same. In addition to the grammar, every event and every response is validated by the documented
// forms.
import assert from "node:assert/strict";
import { checkStream, checkWhole } from "../wire/responses.ts";
import { wireEvents, type Ending } from "../wire/events.ts";
import { shapes } from "./shapes.ts";

export interface Heard {
  readonly events: readonly any[];
  /** The last event's response. */
  readonly response: any;
  /** The result of a client that only reads deltas. */
  readonly built: readonly any[];
}

export function replay(text: string, ending: Ending = "complete"): Heard {
  checkStream(text, ending);
  const events = wireEvents(text)
    .filter(({ data }) => data !== "[DONE]")
    .map(({ data }) => JSON.parse(data));
  for (const event of events) shapes.event(event);
  const built: any[] = [];
  const done = new Set<number>();
  for (const event of events) build(event, built, done);
  const { response } = events.at(-1);
  if (ending === "complete") {
    assert.equal(done.size, built.length, "no item is left unclosed");
    for (const [i, item] of built.entries()) same(item, response.output[i]);
  } else {
    // In a truncated response, nothing that a client would act on may look complete.
    assert.deepEqual(
      response.output.map((item: any) => item.id),
      built.filter((_, i) => done.has(i)).map((item) => item.id),
      "the output is what was concluded",
    );
  }
  return { events, response, built };
}

/** The non-streaming response, validated by the same forms. */
export function judge(response: any): any {
  checkWhole(response);
  shapes.response(response);
  return response;
}

function build(event: any, built: any[], done: Set<number>): void {
  const at = event.output_index;
  const item = built[at];
  const part = item?.content?.[event.content_index];
  switch (event.type) {
    case "response.output_item.added":
      assert.equal(at, built.length);
      built.push(structuredClone(event.item));
      return;
    case "response.output_item.done":
      assert.ok(!done.has(at), "an item is done once");
      done.add(at);
      return;
    case "response.content_part.added":
      (item.content ??= [])[event.content_index] = structuredClone(event.part);
      return;
    case "response.reasoning_summary_part.added":
      item.summary[event.summary_index] = structuredClone(event.part);
      return;
    case "response.output_text.delta":
      part.text += event.delta;
      part.logprobs.push(...event.logprobs);
      return;
    case "response.reasoning_text.delta":
      part.text += event.delta;
      return;
    case "response.output_text.annotation.added":
      assert.equal(event.annotation_index, part.annotations.length);
      part.annotations.push(event.annotation);
      return;
    case "response.refusal.delta":
      part.refusal += event.delta;
      return;
    case "response.reasoning_summary_text.delta":
      item.summary[event.summary_index].text += event.delta;
      return;
    case "response.function_call_arguments.delta":
      item.arguments += event.delta;
      return;
    case "response.custom_tool_call_input.delta":
      item.input += event.delta;
  }
}

/**
 * Deltas alone build the item. Only its state, encrypted content, a result, and empty arguments are
 * added at its end.
 */
function same(built: any, item: any): void {
  const { status: _s, encrypted_content: _e, result: _r, ...expected } = item;
  const { status: _t, result: _q, ...got } = built;
  if (got.type === "function_call" && got.arguments === "" && expected.arguments === "{}")
    got.arguments = "{}";
  assert.deepEqual(got, expected, "what was said in pieces is what was said at the end");
}
