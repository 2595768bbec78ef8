// Client text is looked up in tables. Inherited property names are in none of them: wherever a
// client may write a name, such a one is an ordinary name, and causes no engine error.
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

/** Every position of a client's name. */
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
  // Content next to a type is often under its name.
  if (last === "type") Object.defineProperty(inner, word, { value: {}, enumerable: true });
  return copy;
}

/** Any failure must be a fault. */
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
          // A request for an unknown tier has an unknown price, never lower than the default one.
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
