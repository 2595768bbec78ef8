// The one search of a body: references after edits equal those in the outgoing body, inherited
// properties are no names in the tables, and the search takes linear time.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type {
  Body,
  ChatRequest,
  ClientHalf,
  Reference,
  Json,
  JsonObject,
  Operation,
} from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import {
  mergeAllowlist,
  parseAllowances,
  findReferences,
  findDisallowedField,
} from "tollgate/protocols/references";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { createCallContext, encodeOutgoing } from "tollgate/testing";
import { bedrockClaude } from "../../plugins/providers/aws/claude.ts";
import { converse } from "../../plugins/providers/aws/converse/index.ts";
import { OutgoingRequest } from "../../src/pipeline/upstream/outgoing-request.ts";
import { FOREIGN } from "../pipeline/privacy/foreign-fields.ts";
import { toolName } from "./generators/arbitrary.ts";
import { chats } from "./generators/codecs.ts";
import { trialCount } from "../kit/law-effort.ts";

const KEYS = [
  ...new Set(FOREIGN.flatMap(({ fields }) => keysIn(fields))),
  "content",
  "__proto__",
  "constructor",
  "toString",
];
function keysIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  const inner = Object.values(value).flatMap(keysIn);
  return Array.isArray(value) ? inner : [...Object.keys(value), ...inner];
}

const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Json[]>(true, false, null, "", "id", 1, "24h", "web", "function", "mcp"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc
      .array(fc.tuple(fc.constantFrom(...KEYS), tie("value")), { maxLength: 5 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}));
const field = fc.constantFrom(...KEYS);
const body = fc.dictionary(field, value, { maxKeys: 6 });

const said = (named: readonly Reference[]): string[] =>
  named
    .map((one) => {
      if (one.type === "state") return `${one.field} ${one.effect} ${one.rule.feature}`;
      if (one.type === "model") return `${one.field} ${one.model}`;
      return `${one.field} ${one.type} ${"feature" in one ? one.feature : ""}`;
    })
    .toSorted();

describe("found references", () => {
  it("after edits equal those in the outgoing body", () => {
    fc.assert(
      fc.property(body, fc.array(fc.tuple(field, fc.option(value))), (came, edits) => {
        const out = new OutgoingRequest({ method: "POST", path: "/", body: came as Body });
        for (const [name, edit] of edits) {
          // A reader inspects it in between, like codecs and hooks.
          out.references();
          out.set(name, edit === null ? undefined : edit);
        }
        expect(said(out.references())).toEqual(said(findReferences(out.toBody()!)));
      }),
      { numRuns: trialCount(500) },
    );
  });

  it("are the same after each search, and the search changes nothing", () => {
    fc.assert(
      fc.property(body, (came) => {
        const before = JSON.stringify(came);
        expect(said(findReferences(came))).toEqual(said(findReferences(came)));
        expect(JSON.stringify(came)).toBe(before);
      }),
    );
  });

  it.each(["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"])(
    "do not include a member or a type that is called %s, which throws nothing",
    (name) => {
      const odd = JSON.parse(
        `{"${name}":{"${name}":[1]},"tools":[{"type":"function","name":"f","${name}":1}],"messages":[{"role":"user","content":[{"type":"${name}"}]}]}`,
      ) as Body;
      expect(findReferences(odd)).toEqual([]);
      for (const { zdrAllowedFields } of [
        chatCompletions(),
        messages(),
        responses(),
        images(),
        gemini(),
      ])
        expect(
          findDisallowedField(odd, mergeAllowlist(zdrAllowedFields!), parseAllowances([])),
        ).toBeDefined();
    },
  );

  it("are never inside a client's own content", () => {
    const words = { file_id: "f", model: "x", tools: [{ type: "mcp" }], cache_control: {} };
    const own = [
      { tools: [{ name: "f", input_schema: { properties: words, ...words } }] },
      { tools: [{ type: "function", function: { name: "f", parameters: words } }] },
      { messages: [{ role: "assistant", content: [{ type: "tool_use", input: words }] }] },
      { contents: [{ parts: [{ functionCall: { name: "f", args: words } }] }] },
      { contents: [{ parts: [{ functionResponse: { name: "f", response: words } }] }] },
      { metadata: words, client_metadata: words },
      { text: { format: { type: "json_schema", schema: words } } },
    ];
    for (const one of own) expect(findReferences(one)).toEqual([]);
  });
});

describe.each(
  Object.entries({ ...chats, converse: converse(), "claude by InvokeModel": bedrockClaude([]) }),
)("a client's own function tool, in the format of %s", (_id, { client }) => {
  const schema = fc
    .dictionary(field, value, { maxKeys: 4 })
    .map((more): JsonObject => ({ ...more, type: "object" }));
  const tool = fc.record({
    type: fc.constant("function" as const),
    name: toolName,
    description: fc.constantFrom(undefined, "web_search"),
    schema,
    strict: fc.constantFrom(undefined, false),
  });
  /** Items reported for the outgoing request. */
  const named = (tools: ChatRequest["tools"]): string[] => {
    const request: ChatRequest = {
      operation: "chat",
      model: "m",
      stream: false,
      instructions: [],
      turns: [{ role: "user", blocks: [{ type: "text", text: "Hi" }] }],
      tools,
      output: { maxTokens: 10 },
      sampling: {},
      reasoning: { mode: "auto" },
      state: {},
      rest: {},
      ext: {},
    };
    const { body } = encodeOutgoing(client as ClientHalf<Operation>, request, createCallContext());
    return said(findReferences(JSON.parse(JSON.stringify(body)) as Body));
  };

  it("is never reported as a hosted tool, whatever its schema contains", () => {
    fc.assert(
      // Tool names are unique: the gateway rejects a request with duplicates.
      fc.property(
        fc.uniqueArray(tool, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
        (tools) => {
          expect(named(tools)).toEqual([]);
        },
      ),
    );
  });

  it("with a cache mark is reported only for the mark", () => {
    fc.assert(
      fc.property(tool, (one) => {
        for (const found of named([{ ...one, cache: { type: "ephemeral", ttl: "1h" } }]))
          expect(found).toMatch(/ cache cache\.1h$/);
      }),
    );
  });
});

it("tools of Bedrock are hosted there, also next to tools of the client", () => {
  const own = { toolSpec: { name: "f", inputSchema: { json: {} } } };
  const tools = [
    own,
    { systemTool: { name: "nova_grounding" } },
    { cachePoint: { type: "default" } },
  ];
  expect(said(findReferences({ toolConfig: { tools } }))).toEqual([
    "toolConfig cache cache.5m",
    "toolConfig hosted hosted.system_tool",
  ]);
});

describe("the search takes linear time", () => {
  const part = (i: number) => ({ type: "text", text: `t${i}`, [`k${i}`]: { a: [i] } });
  const SHAPES: { readonly [name: string]: (n: number) => object } = {
    "many small parts": (n) => ({
      messages: [{ role: "user", content: Array.from({ length: n }, () => ({})) }],
    }),
    "many messages": (n) => ({
      messages: Array.from({ length: n }, (_, i) => ({ role: "user", content: [part(i)] })),
    }),
    "many fields": (n) =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`f${i}`, { a: 1 }])),
    "many of one word": (n) => ({
      input: Array.from({ length: n }, (_, i) => ({ content: [{ file_id: `f${i}` }] })),
    }),
    "many tools of one type": (n) => ({
      tools: Array.from({ length: n }, () => ({ type: "mcp", server_label: "x" })),
    }),
    "deep lists": (n) => ({ messages: Array.from({ length: n / 50 }, () => nested(50)) }),
  };
  const nested = (depth: number): unknown => (depth === 0 ? {} : [nested(depth - 1)]);
  const review = mergeAllowlist(chatCompletions().zdrAllowedFields!);
  const allowed = parseAllowances(["messages[].content[].nothing"]);
  /** Number of reads: without a clock, so that a busy machine has no effect. */
  const steps = (body: object): number => {
    let reads = 0;
    const seen = (of: object): object =>
      new Proxy(of, {
        get(target, key) {
          reads++;
          const inner: unknown = Reflect.get(target, key);
          return typeof inner === "object" && inner !== null ? seen(inner) : inner;
        },
      });
    findReferences(seen(body) as Body);
    findDisallowedField(seen(body) as Body, review, allowed);
    return reads;
  };
  it.each(Object.entries(SHAPES))("%s", (_name, shape) => {
    const [small, large] = [steps(shape(1_000)), steps(shape(8_000))];
    expect(small).toBeGreaterThan(100);
    expect(large / small).toBeLessThan(8.5);
  });

  it("and the reported items are limited", () => {
    const tools = Array.from({ length: 5_000 }, (_, i) => ({ type: `x_${i}` }));
    expect(() => findReferences({ tools })).toThrow(/more than 1024/);
  });
});

describe("a boolean field", () => {
  // Values that form parsers and lax JSON parsers accept as true and false.
  const on = ["true", "True", "TRUE", "1", "on", "yes", "y", "t", 1, true];
  const off = ["false", "False", "0", "off", "no", "n", "f", "", 0, false, null];
  const switches = ["store", "background", "deferred", "enable_search"];

  it.each(switches)("%s is on in every spelling, and off likewise", (name) => {
    for (const value of on)
      expect(findReferences({ [name]: value }), String(value)).toHaveLength(1);
    for (const value of off) expect(findReferences({ [name]: value }), String(value)).toEqual([]);
  });
});
