// Our responses and events compared with the published schema of Open Responses, version
// 2026-04-24, in open-responses.schema.json. Our additions to its unions are listed here by name,
// and nothing else passes.
import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  collectResponse,
  type Body,
  type Fault,
  type ModelEvent,
  type OpenBlock,
} from "tollgate/plugin";
import { responses, type ResponsesDialect } from "tollgate/protocols/responses";
import { createResponseContext, encodeText } from "tollgate/testing";
import { answers } from "../generators/arbitrary.ts";
import { judge, replay } from "./oracle.ts";
import published from "./open-responses.schema.json" with { type: "json" };
import { trialCount } from "../../kit/law-effort.ts";

/** Items of tools that the published union does not have. */
const ITEMS_BEYOND = ["custom_tool_call", "image_generation_call", "web_search_call"];
/** Events of those tools, and the usual name for deltas of raw reasoning. */
const EVENTS_BEYOND = [
  "response.custom_tool_call_input.delta",
  "response.custom_tool_call_input.done",
  "response.image_generation_call.in_progress",
  "response.image_generation_call.generating",
  "response.image_generation_call.partial_image",
  "response.image_generation_call.completed",
  "response.web_search_call.in_progress",
  "response.web_search_call.searching",
  "response.web_search_call.completed",
  "response.reasoning_text.delta",
  "response.reasoning_text.done",
];
/**
 * Echoed as the client wrote it, although the published schema lacks it: the field, the request,
 * and the failing location.
 */
const ECHOES_BEYOND: readonly (readonly [string, Body, string])[] = [
  ["a tool that is no function", { tools: [{ type: "custom", name: "c" }] }, "/tools/0/type"],
  [
    "the choice of a tool that is no function",
    { tool_choice: { type: "custom", name: "c" } },
    "/tool_choice/type",
  ],
  [
    "the schema of a format, for which only null is published",
    { text: { format: { type: "json_schema", name: "n", schema: {} } } },
    "/text/format/schema",
  ],
  ["the least effort", { reasoning: { effort: "minimal" } }, "/reasoning/effort"],
  ["the most effort", { reasoning: { effort: "max" } }, "/reasoning/effort"],
];

const ajv = new Ajv2020({ strict: false, allErrors: true, discriminator: true });
ajv.addSchema(published);
const validator = (name: string) => ajv.compile({ $ref: `${published.$id}#/$defs/${name}` });
const isResponse = validator("Response");
const isEvent = validator("Event");
const isItem = validator("Item");

function hold(valid: typeof isEvent, value: any): void {
  if (!valid(value)) throw new Error(`${ajv.errorsText(valid.errors)}: ${JSON.stringify(value)}`);
}

/** Names that occurred although the published schema lacks them. */
const met = new Set<string>();
const isBeyond = (names: readonly string[], { type }: { type: string }): boolean => {
  if (names.includes(type)) met.add(type);
  return names.includes(type);
};

const within = (response: any): any => ({
  ...response,
  output: response.output.filter((item: any) => !isBeyond(ITEMS_BEYOND, item)),
});

function holdEvent(event: any): void {
  if (isBeyond(EVENTS_BEYOND, event)) return;
  if (event.response) hold(isEvent, { ...event, response: within(event.response) });
  else if (event.item && isBeyond(ITEMS_BEYOND, event.item))
    hold(isEvent, { ...event, item: null });
  else hold(isEvent, event);
}

interface Asked {
  readonly body?: Body;
  readonly dialect?: Partial<ResponsesDialect>;
}

/** Both modes, every event of the stream. */
function told(events: readonly ModelEvent[], { body = {}, dialect = {} }: Asked = {}): any {
  const server = responses(dialect).server!;
  const whole = JSON.parse(
    JSON.stringify(server.encodeResponse(collectResponse(events), createResponseContext({ body }))),
  );
  hold(isResponse, within(judge(whole)));
  const heard = replay(encodeText(server, events, createResponseContext({ stream: true, body })));
  for (const event of heard.events) holdEvent(event);
  return whole;
}

function broken(events: readonly ModelEvent[], kind: Fault["kind"]): any {
  let out = "";
  const encoder = responses().server!.createEncoder(
    (t) => (out += t),
    createResponseContext({ stream: true }),
  );
  for (const event of events) encoder.writeEvent(event);
  encoder.writeFault({ kind, message: "It broke." });
  const heard = replay(out, "failed");
  for (const event of heard.events) holdEvent(event);
  return heard;
}

const block = (index: number, open: OpenBlock, ...inside: (string | object)[]): ModelEvent[] => [
  { type: "open", index, block: open },
  ...inside.map((said) =>
    typeof said === "string"
      ? ({ type: "delta", index, text: said } as const)
      : ({ index, ...said } as ModelEvent),
  ),
  { type: "close", index },
];
const answer = (
  reason: Extract<ModelEvent, { type: "finish" }>["reason"],
  ...blocks: ModelEvent[][]
): ModelEvent[] => [
  { type: "start", id: "up_1", model: "m" },
  ...blocks.flat(),
  { type: "usage", usage: { input: 10, cache_read: 5, output: 7, reasoning: 3 } },
  { type: "finish", reason },
];
const text: OpenBlock = { type: "text" };
const call = (tool: "function" | "custom"): OpenBlock => ({
  type: "call",
  id: "call_1",
  name: "f",
  tool,
});
const proof = { type: "proof", proof: { origin: "messages", kind: "signature", data: "EqoB" } };
const search = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "q" } };
const place = { type: "web_search_result_location", url: "https://b.example", cited_text: "x" };
const cited = { type: "url_citation", url: "https://a.example" };
const likely = (token: string) => ({ token, logprob: -0.5, bytes: null });

const ANSWERS: Readonly<Record<string, ModelEvent[]>> = {
  text: answer("stop", block(0, text, "Hel", "lo")),
  nothing: answer("stop"),
  reasoning: answer("stop", block(0, { type: "reasoning" }, "Hm.", proof), block(1, text, "Yes.")),
  "a digest of reasoning": answer("stop", block(0, { type: "reasoning", summary: true }, "Hm.")),
  tools: answer("tool_calls", block(0, text, "See:"), block(1, call("function"), '{"a"', ":1}")),
  "a signed tool": answer("tool_calls", block(0, call("function"), "{}", proof)),
  "a custom tool": answer("tool_calls", block(0, call("custom"), "*** Begin")),
  refusal: answer("refusal", block(0, { type: "refusal" }, "I ", "cannot.")),
  "incomplete text": answer("length", block(0, text, "And so")),
  "an incomplete call": answer("length", block(0, call("function"), '{"city":"Os')),
  "incomplete reasoning": answer("length", block(0, { type: "reasoning" }, "Hm")),
  filtered: answer("filtered", block(0, text, "Once")),
  citations: answer(
    "stop",
    block(
      0,
      text,
      "It rains.",
      { type: "cite", citation: place },
      { type: "cite", citation: cited },
      { type: "cite", citation: { type: "url_citation", url_citation: cited } },
    ),
  ),
  probabilities: answer(
    "stop",
    block(
      0,
      text,
      {
        type: "delta",
        text: "It",
        logprobs: [{ ...likely("It"), top_logprobs: [likely("It")] }, likely("It")],
      },
      "s.",
    ),
  ),
  "an image": answer(
    "stop",
    block(
      0,
      { type: "image" },
      { type: "media", media: { base64: "AAAA" }, partial: true },
      { type: "media", media: { base64: "AAAA" } },
    ),
  ),
  "a search": answer(
    "stop",
    block(0, { type: "opaque", origin: "messages", raw: search }),
    block(1, text, "Rain."),
  ),
};

describe("the published schema of Open Responses", () => {
  it.each(Object.entries(ANSWERS))("is valid for %s", (_name, events) => void told(events));

  it("is valid for raw reasoning", () =>
    void told(ANSWERS["reasoning"]!, { dialect: { reasoning: "text" } }));

  it("is valid without counts", () =>
    void told(ANSWERS["text"]!.filter((e) => e.type !== "usage")));

  it("is valid for failures at any point", () => {
    const kinds: Fault["kind"][] = [
      "upstream",
      "rate_limited",
      "overloaded",
      "internal",
      "timeout",
    ];
    for (const events of Object.values(ANSWERS))
      for (let n = 0; n < events.length; n++) {
        const { response } = broken(events.slice(0, n), kinds[n % kinds.length]!);
        expect(response.status).toBe("failed");
      }
  });

  it("is valid for any response", () =>
    fc.assert(
      fc.property(
        answers({
          interleaved: true,
          refusals: true,
          kinds: ["text", "reasoning", "call", "custom"],
          proofs: [{ origin: "messages", kind: "signature", data: "EqoB" }],
        }),
        (events) => void told(events),
      ),
      { numRuns: trialCount(100) },
    ));

  it("is valid for echoed request fields", () => {
    const tools = [{ type: "function", name: "f" }];
    const bodies: Body[] = [
      { tools, tool_choice: { type: "function", name: "f" } },
      { tools, tool_choice: { type: "allowed_tools", tools } },
      { tools, tool_choice: null, parallel_tool_calls: null, metadata: null },
      { text: { format: { type: "json_object" }, verbosity: null } },
      { text: { format: { type: "text", strict: null } } },
      { text: { format: null, verbosity: "low" }, reasoning: null, instructions: null },
      { reasoning: { effort: "high", summary: "auto" }, truncation: "auto", service_tier: "flex" },
      { temperature: 0.5, top_p: null, max_output_tokens: 100, top_logprobs: 2, user: "u" },
    ];
    for (const body of bodies) told(ANSWERS["text"]!, { body });
  });

  it("is valid for a format except for its schema, with any other field null", () => {
    const format = { type: "json_schema", name: "n", schema: {}, strict: null, description: null };
    const server = responses().server!;
    const body: Body = { text: { format } };
    const said: any = server.encodeResponse(
      collectResponse(ANSWERS["text"]!),
      createResponseContext({ body }),
    );
    expect(said.text.format).toEqual({ ...format, strict: false });
    said.text.format.schema = null;
    hold(isResponse, JSON.parse(JSON.stringify(said)));
  });

  it("has no extra fields except for the listed ones", () => {
    const names = new Set(published.$defs.Event.oneOf.map(({ $ref }) => $ref.split("event:")[1]));
    expect(names.size).toBe(24);
    for (const type of EVENTS_BEYOND) expect(names).not.toContain(type);
    for (const type of ITEMS_BEYOND)
      expect(isItem({ id: "x", type, status: "completed" })).toBe(false);
    for (const name of ["a custom tool", "an image", "a search"]) told(ANSWERS[name]!);
    told(ANSWERS["reasoning"]!, { dialect: { reasoning: "text" } });
    expect([...met].toSorted()).toEqual([...ITEMS_BEYOND, ...EVENTS_BEYOND].toSorted());
  });

  it.each(ECHOES_BEYOND)("does not allow %s", (_name, body, at) => {
    const { server } = responses();
    const said = server!.encodeResponse(
      collectResponse(ANSWERS["text"]!),
      createResponseContext({ body }),
    );
    expect(isResponse(JSON.parse(JSON.stringify(said)))).toBe(false);
    for (const { instancePath } of isResponse.errors!)
      expect(at.startsWith(instancePath)).toBe(true);
  });

  it("detects a missing key and a wrong type", () => {
    const response = told(ANSWERS["text"]!);
    for (const key of Object.keys(response).filter((k) => isKeyOf(k))) {
      const { [key]: _, ...rest } = response;
      expect(isResponse(rest), key).toBe(false);
      if (key !== "metadata") expect(isResponse({ ...response, [key]: [[]] }), key).toBe(false);
    }
  });
});

const isKeyOf = (key: string): boolean => published.$defs.Response.required.includes(key);
