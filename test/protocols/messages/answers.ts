// Random responses: any upstream content, with blocks in any order.
import * as fc from "fast-check";
import type { FinishReason, ModelEvent, OpenBlock } from "../../../src/model/event.ts";
import type { Proof } from "../../../src/model/request.ts";
import { codePoint } from "../../kit/code-points.ts";

interface Told {
  block: OpenBlock;
  parts: string[];
  proof: Proof | undefined;
  cites: { type: string; n: number }[];
}

const words = fc.string({ unit: codePoint, maxLength: 8 });
const proof: fc.Arbitrary<Proof> = fc.oneof(
  fc.record({
    origin: fc.constant("messages"),
    kind: fc.constantFrom("signature", "redacted"),
    data: fc.base64String({ minLength: 4, maxLength: 16 }),
  }),
  fc.record({
    origin: fc.constantFrom("responses", "gemini", "moonshot"),
    kind: fc.constantFrom("encrypted", "thoughtSignature"),
    data: fc.base64String({ minLength: 4, maxLength: 16 }),
    itemId: fc.constantFrom("rs_1", "rs_2"),
  }),
);
const foreign = proof.filter((p) => p.origin !== "messages");

const cite = fc.record({
  type: fc.constantFrom("char_location", "page_location", "url_citation"),
  n: fc.nat(9),
});

const args = fc
  .dictionary(fc.string({ maxLength: 4 }), fc.oneof(fc.string(), fc.integer(), fc.boolean()), {
    maxKeys: 3,
  })
  .map((o) => JSON.stringify(o));

/** A text in chunks. */
const pieces = (whole: fc.Arbitrary<string>) =>
  fc.tuple(whole, fc.array(fc.nat(20), { maxLength: 3 })).map(([text, cuts]) => {
    const at = [0, ...cuts.map((n) => Math.min(n, text.length)).toSorted((a, b) => a - b)];
    return at.map((from, i) => text.slice(from, at[i + 1] ?? text.length));
  });

const maybe = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined });

type Telling = Omit<Told, "block"> & { block: (n: number) => OpenBlock };

const told: fc.Arbitrary<Telling> = fc.oneof<fc.Arbitrary<Telling>[]>(
  fc
    .record({
      block: fc.constantFrom("text" as const, "refusal" as const).map((type) => () => ({ type })),
      parts: fc.array(words, { maxLength: 4 }),
      proof: maybe(foreign),
      cites: fc.constant<Told["cites"]>([]),
    })
    // A signature without text belongs to the text before it.
    .filter(({ parts, proof }) => !proof || parts.join("") !== ""),
  fc.record({
    block: fc.constant(() => ({ type: "text" as const })),
    parts: fc.array(words, { minLength: 1, maxLength: 4 }),
    proof: fc.constant(undefined),
    cites: fc.array(cite, { maxLength: 2 }),
  }),
  fc.record({
    block: fc.boolean().map((summary) => () => ({
      type: "reasoning" as const,
      ...(summary && { summary }),
    })),
    parts: fc.array(words, { maxLength: 4 }),
    proof: maybe(proof),
    cites: fc.constant<Told["cites"]>([]),
  }),
  fc.record({
    block: fc.constantFrom("get_weather", "do.it", "x".repeat(140)).map((name) => (n: number) => ({
      type: "call" as const,
      id: `call_${n}`,
      name,
      tool: "function" as const,
    })),
    parts: pieces(args),
    proof: maybe(foreign),
    cites: fc.constant<Told["cites"]>([]),
  }),
);

const reason: fc.Arbitrary<FinishReason> = fc.constantFrom(
  "stop",
  "stop_sequence",
  "length",
  "context",
  "refusal",
  "pause",
  "other",
);

/** Non-streaming responses as events. Several blocks may be open. */
export const answers: fc.Arbitrary<ModelEvent[]> = fc
  .record({
    blocks: fc.array(told, { maxLength: 5 }),
    order: fc.infiniteStream(fc.nat(1000)),
    reason,
    usage: fc.record({
      input: fc.nat(1000),
      cache_read: maybe(fc.nat(1000)),
      writes: maybe(fc.tuple(fc.nat(1000), fc.nat(1000))),
      output: fc.integer({ min: 500, max: 1000 }),
      reasoning: maybe(fc.nat(500)),
    }),
  })
  .map(({ blocks, order, reason, usage: { writes, ...counts } }) => {
    const usage = writes
      ? { ...counts, cache_write_5m: writes[0], cache_write_1h: writes[1] }
      : counts;
    const chance = order[Symbol.iterator]();
    const pick = (n: number) => (chance.next().value as number) % n;
    const events: ModelEvent[] = [{ type: "start", id: "up_1", model: "m" }];
    // Each block's own events in order. The sequence of blocks is random.
    const queues = blocks.map(({ block, parts, proof, cites }, index): ModelEvent[] => [
      { type: "open", index, block: block(index) },
      ...parts.map((text): ModelEvent => ({ type: "delta", index, text })),
      ...cites.map((citation): ModelEvent => ({ type: "cite", index, citation })),
      ...(proof ? [{ type: "proof", index, proof } as const] : []),
      { type: "close", index },
    ]);
    let opened = 0;
    while (queues.some((q) => q.length > 0)) {
      const ready = queues.flatMap((q, i) => (q.length > 0 && i <= opened ? [i] : []));
      const i = ready[pick(ready.length)]!;
      const [next] = queues[i]!.splice(0, 1);
      if (next!.type === "open") opened = Math.max(opened, i + 1);
      events.push(next!);
    }
    const calls = blocks.some((b) => b.block(0).type === "call");
    events.push({ type: "usage", usage, model: "m" });
    events.push({
      type: "finish",
      reason: calls && reason === "stop" ? "tool_calls" : reason,
      ...(reason === "stop_sequence" && { sequence: "END" }),
    });
    return events;
  });
