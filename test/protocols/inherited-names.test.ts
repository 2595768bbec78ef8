// A client's word is looked up in tables of ours. Names that every object inherits are in none of them: wherever a client may
// write a word, such a one is a word like any other, and no engine's error.
import { describe, expect, it } from "vitest";
import { getFault, type Body, type Price, type Protocol } from "tollgate/plugin";
import { createCallContext, createOutgoing } from "tollgate/testing";
import { estimateHold } from "../../src/money/estimate.ts";
import { bodies as chatBodies } from "./chat-completions/fields.ts";
import { upstreams } from "./generators/codecs.ts";
import { bodies as messagesBodies } from "./messages/fields.ts";
import { bodies as responsesBodies } from "./responses/fields.ts";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";

const WORDS = ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"];

const WRITTEN: readonly (readonly [string, Protocol<any>, readonly object[]])[] = [
  ["chat-completions", chatCompletions(), chatBodies],
  ["messages", messages(), messagesBodies],
  ["responses", responses(), responsesBodies],
  [
    "images",
    images(),
    [{ model: "m", prompt: "a gate", size: "1024x1024", quality: "high", response_format: "url" }],
  ],
];
const TIERED: Price = {
  lines: [
    { unit: "input", usd: "1", per: 1_000_000 },
    { unit: "output", usd: "10", per: 1_000_000 },
  ],
  tiers: { flex: [{ unit: "output", usd: "5", per: 1_000_000 }] },
  multipliers: [{ when: { speed: "fast" }, by: "6" }],
};

type Path = readonly (string | number)[];

/** Every place where a client wrote a word. */
function words(value: unknown, at: Path = []): Path[] {
  if (typeof value === "string") return [at];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => words(inner, [...at, key]));
}

function said(body: object, at: Path, word: string): Body {
  const copy = structuredClone(body) as any;
  const last = at.at(-1)!;
  const inner = at.slice(0, -1).reduce((of, key) => of[key], copy);
  inner[last] = word;
  // And what stands beside a type often stands under its name.
  if (last === "type") Object.defineProperty(inner, word, { value: {}, enumerable: true });
  return copy;
}

/** Whatever fails must be a fault of ours. */
function through(wrong: string[], where: string, work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!getFault(error)) wrong.push(`${where}: ${String(error)}`);
  }
}

describe.each(WRITTEN)("in %s", (_name, protocol, bodies) => {
  const targets = protocol.operationSpec.name === "image" ? [protocol] : Object.values(upstreams);
  it.each(WORDS)("%s is an ordinary name", (word) => {
    const wrong: string[] = [];
    for (const body of bodies)
      for (const at of words(body)) {
        const written = said(body, at, word);
        const where = at.join(".");
        through(wrong, where, () => {
          const survey = protocol.server!.analyze(written);
          const { tier, pricingAttributes, n, maxOutput } = survey;
          const held = estimateHold({
            tier,
            pricingAttributes,
            n,
            output: maxOutput,
            operationSpec: protocol.operationSpec,
            budgetMode: "hard",
            price: TIERED,
            input: 1,
          });
          // Of what asks for a tier that is not known, the price is not known; never less than that of the plain one.
          if (held.nano !== null && protocol.operationSpec.name === "chat")
            expect(held.nano, where).toBeGreaterThan(0n);
          const request = protocol.server!.decodeRequest(written, "generate");
          for (const { client } of targets) {
            through(wrong, where, () => {
              const of = createCallContext({ model: "m" });
              const out = createOutgoing({
                ...(client!.encodeRequest(request as never, of) as object),
              });
              client!.prepare?.(out, of);
              client!.mayHideReasoning?.(out, of);
            });
          }
        });
      }
    expect([...new Set(wrong)]).toEqual([]);
  });
});
