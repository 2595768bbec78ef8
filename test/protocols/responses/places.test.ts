// The final list repeats every item. Whatever is between, before, or without a name, each is
// decoded once.
import fc from "fast-check";
import { expect, test } from "vitest";
import { collectResponse, type JsonObject, type ModelEvent } from "tollgate/plugin";
import { responses } from "tollgate/protocols/responses";
import { createCallContext } from "tollgate/testing";
import { trialCount } from "../../kit/law-effort.ts";

const { client } = responses();

const item = fc.record({
  type: fc.constantFrom("message", "reasoning", "function_call"),
  /** told: announced and streamed. late: only in the final list. */
  when: fc.constantFrom("told", "late"),
  numbered: fc.boolean(),
});
type Item = typeof item extends fc.Arbitrary<infer T> ? T & { n: number } : never;

const whole = ({ type, n }: Item): JsonObject => {
  const id = `${type}_${n}`;
  switch (type) {
    case "message":
      return { id, type, role: "assistant", content: [{ type: "output_text", text: `<m${n}>` }] };
    case "reasoning":
      return { id, type, summary: [{ type: "summary_text", text: `<r${n}>` }] };
    default:
      return { id, type, call_id: `call_${n}`, name: `f${n}`, arguments: `{"n":${n}}` };
  }
};

/** How it is streamed: at a position among the others, or with its name only. */
function events(one: Item, output_index: number): JsonObject[] {
  const all = whole(one);
  const at = { item_id: all["id"]!, ...(one.numbered && { output_index }) };
  const added = {
    type: "response.output_item.added",
    ...at,
    item: { ...all, content: [], summary: [], arguments: "" },
  };
  const done = { type: "response.output_item.done", ...at, item: all };
  const said = {
    message: { type: "response.output_text.delta", content_index: 0, delta: `<m${one.n}>` },
    reasoning: {
      type: "response.reasoning_summary_text.delta",
      summary_index: 0,
      delta: `<r${one.n}>`,
    },
    function_call: { type: "response.function_call_arguments.delta", delta: `{"n":${one.n}}` },
  }[one.type as "message"];
  return [added, { ...said, ...at }, done];
}

function heard(stream: readonly JsonObject[]): string[] {
  const got: ModelEvent[] = [];
  const decoder = client!.createDecoder(
    (event) => void got.push(event),
    createCallContext({ stream: true }),
    {
      "content-type": "text/event-stream",
    },
  );
  const text = stream
    .map((e) => `event: ${String(e["type"])}\ndata: ${JSON.stringify(e)}\n\n`)
    .join("");
  decoder.push(Buffer.from(text));
  decoder.end();
  return collectResponse(got)
    .blocks.map((b) =>
      b.type === "call" ? b.args : b.type === "reasoning" ? b.summary!.join("") : textOf(b),
    )
    .toSorted();
}
const textOf = (block: { readonly type: string; readonly text?: string | undefined }) =>
  block.text ?? "";

const completed = (output: readonly JsonObject[]) => ({
  type: "response.completed",
  response: { id: "r", status: "completed", output },
});

test("each item is decoded once, wherever the final list contains it", () => {
  fc.assert(
    fc.property(
      fc.array(item, { minLength: 1, maxLength: 8 }),
      fc.boolean(),
      fc.boolean(),
      (kinds, numbered, shuffled) => {
        const items = kinds.map((one, n) => ({ ...one, n, numbered }));
        const told = items.filter((one) => one.when === "told");
        const stream = told.flatMap((one, i) => events(one, i));
        const order = shuffled ? items.toReversed() : items;
        const expected = items
          .map(({ type, n }) => (type === "function_call" ? `{"n":${n}}` : `<${type[0]}${n}>`))
          .toSorted();
        expect(heard([...stream, completed(order.map(whole))])).toEqual(expected);
      },
    ),
    { numRuns: trialCount(500) },
  );
});

test("changed or missing names refer to the same items", () => {
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 8 }), fc.boolean(), (kinds, nameless) => {
      const items = kinds.map((one, n) => ({ ...one, n, numbered: true }));
      const stream = items.flatMap((one, i) => events(one, i));
      const again = items.map((one) => {
        const { id: _, ...rest } = whole(one);
        return nameless ? rest : { ...rest, id: `other_${one.n}` };
      });
      expect(heard([...stream, completed(again)])).toEqual(heard([...stream, completed([])]));
    }),
    { numRuns: trialCount(300) },
  );
});
