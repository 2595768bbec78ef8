// Model metadata determines the outgoing request in every protocol: no unsupported effort, no
// reasoning setting for a model without reasoning, and no rejected field. Omitted fields are
// reported.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { getFault, type ChatRequest, type Json, type Protocol } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { createCallContext, createOutgoing, encodeOutgoing } from "tollgate/testing";
import openai from "../../plugins/providers/openai.ts";
import type { ProtocolEndpoint } from "../../src/plugin/provider.ts";
import { createChatRequest } from "../kit/requests.ts";
import { trialCount } from "../kit/law-effort.ts";

const LADDER = ["minimal", "low", "medium", "high", "xhigh", "max"];
const request = (more: Partial<ChatRequest>): ChatRequest =>
  createChatRequest({ output: { maxTokens: 9000 }, ...more });

/** Every value under these names. */
function said(body: unknown, names: ReadonlySet<string>, found: Json[] = []): Json[] {
  if (typeof body !== "object" || body === null) return found;
  for (const [name, value] of Object.entries(body)) {
    if (names.has(name)) found.push(value as Json);
    said(value, names, found);
  }
  return found;
}
const EFFORTS = new Set(["effort", "reasoning_effort", "thinkingLevel"]);
const THOUGHT = new Set([...EFFORTS, "thinking", "reasoning", "thinkingConfig", "include"]);

const reasoning = fc.oneof(
  fc.record({ mode: fc.constant("effort" as const), effort: fc.constantFrom("none", ...LADDER) }),
  fc.record({ mode: fc.constant("budget" as const), budget: fc.integer({ min: 1, max: 99_999 }) }),
  fc.constant({ mode: "off" as const }),
  fc.constant({ mode: "auto" as const }),
);
const ladder = fc.subarray(LADDER, { minLength: 1 });

/** Each protocol with a backend whose models support exactly these efforts. */
const WIRES: readonly [id: string, of: (efforts: readonly string[], off: boolean) => Protocol][] = [
  ["chat-completions", (efforts, off) => chatCompletions(row(efforts, off))],
  ["responses", (efforts, off) => responses({ chatDialect: row(efforts, off) })],
  ["messages", (efforts, off) => messages({ efforts, thinking: off ? "adaptive" : "always" })],
  [
    "gemini",
    (efforts, off) => gemini({ levels: efforts, canDisableThinking: off, thinking: "level" }),
  ],
];
const row = (efforts: readonly string[], off: boolean) => ({
  reasoning: {
    control: "effort" as const,
    efforts: off ? ["none", ...efforts] : efforts,
    ...(!off && { canDisable: false as const }),
  },
});

describe.each(WIRES)("%s", (_id, wire) => {
  test("no unsupported effort is sent", () => {
    fc.assert(
      fc.property(ladder, fc.boolean(), reasoning, (efforts, off, reasoning) => {
        const of = createCallContext();
        let body: unknown;
        try {
          body = encodeOutgoing(wire(efforts, off).client!, request({ reasoning }), of).body;
        } catch (error) {
          // A client that disabled reasoning does not pay for it.
          expect(getFault(error)).toMatchObject({ kind: "unsupported" });
          expect([reasoning.mode, (reasoning as { effort?: string }).effort]).toContain(
            reasoning.mode === "off" ? "off" : "none",
          );
          return;
        }
        const known = new Set([...efforts, ...(off ? ["none"] : [])]);
        for (const effort of said(body, EFFORTS))
          expect([...known]).toContain(String(effort).toLowerCase());
        const asked = (reasoning as { effort?: string }).effort;
        if (asked !== undefined && asked !== "none" && !known.has(asked))
          expect(of.losses.map(({ field }) => field)).toContainEqual(
            expect.stringMatching(/reasoning/),
          );
      }),
      { numRuns: trialCount(300) },
    );
  });

  test("no reasoning setting is sent to a model without reasoning", () => {
    const info = { model: "m", operation: "chat" as const, can: { reasoning: false } };
    fc.assert(
      fc.property(ladder, reasoning, (efforts, reasoning) => {
        const { body } = encodeOutgoing(
          wire(efforts, true).client!,
          request({ reasoning }),
          createCallContext({ info }),
        );
        expect(said(body, THOUGHT)).toEqual([]);
      }),
    );
  });

  test("no field is sent that the model rejects", () => {
    const refuses = fc.subarray(["temperature", "top_p", "top_k"], { minLength: 1 });
    fc.assert(
      fc.property(refuses, (refuses) => {
        const of = createCallContext({
          info: { model: "m", operation: "chat", rejectedFields: refuses },
        });
        const sampling = { temperature: 0.5, topP: 0.5, topK: 5 };
        const { body } = encodeOutgoing(wire(["low"], true).client!, request({ sampling }), of);
        const camel = { temperature: "temperature", top_p: "topP", top_k: "topK" } as const;
        for (const field of refuses) {
          expect(said(body, new Set([field, camel[field as "top_p"]]))).toEqual([]);
          expect(of.losses.map((loss) => loss.field)).toContain(field);
        }
      }),
    );
  });
});

describe("OpenAI's own models", () => {
  const endpoints = (openai.setup as never as (o: object) => { endpoints: ProtocolEndpoint[] })({
    base_url: "https://api.openai.com/v1",
  }).endpoints.filter((e) => e.protocol?.operationSpec.name === "chat");

  test.each([
    ["gpt-4o", "high", undefined],
    ["gpt-4.1-mini", "low", undefined],
    ["gpt-5", "max", "high"],
    ["gpt-5", "minimal", "minimal"],
    ["gpt-5.4", "max", "xhigh"],
    ["gpt-5.4", "minimal", "low"],
    ["gpt-6-luna", "max", "max"],
    ["o3", "xhigh", "high"],
    ["gpt-9-new", "max", "max"],
  ])("%s, requested with %s, gets %s in every protocol", (model, effort, told) => {
    for (const { protocol } of endpoints) {
      const of = createCallContext({ model });
      const { body } = encodeOutgoing(
        protocol.client!,
        request({ reasoning: { mode: "effort", effort } }),
        of,
      );
      expect([protocol.id, said(body, EFFORTS)[0]]).toEqual([protocol.id, told]);
    }
  });

  test("a rejected temperature is dropped in passthrough mode of chat too", () => {
    const of = createCallContext({
      model: "gpt-5",
      info: { model: "gpt-5", operation: "chat", rejectedFields: ["temperature"] },
    });
    const chat = endpoints.find((e) => e.protocol.id === "chat-completions")!.protocol.client!;
    const out = createOutgoing({ model: "gpt-5", messages: [], temperature: 0.2 });
    chat.prepare!(out, of);
    expect(out.body).not.toHaveProperty("temperature");
    expect(of.losses).toMatchObject([{ field: "temperature", how: "dropped" }]);
  });
});
