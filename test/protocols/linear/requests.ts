// Requests in their worst forms, each of about `n` pieces: wide, deep, shuffled, many small, one
// huge.
import type { Json, JsonObject } from "tollgate/plugin";
import { schemas } from "./schemas.ts";
import { wires, type Wire } from "./wires.ts";

export type Bodies = { readonly [shape: string]: (n: number) => JsonObject };

export const times = <T>(n: number, one: (i: number) => T): T[] =>
  Array.from({ length: n }, (_, i) => one(i));

/** The same list in another, fixed order. */
export const shuffled = <T>(all: readonly T[]): T[] =>
  all
    .map((one, i) => [Math.imul(i + 1, 2_654_435_761) >>> 0, one] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, one]) => one);

const PIXEL = "data:image/png;base64,iVBORw0KGgo=";
const id = (i: number): string => `call_${i}`;

function common(w: Wire): Bodies {
  const hi = w.says("user", [w.text("Hi")]);
  const call = (i: number) => ({ id: id(i), name: `f${i % 7}`, args: '{"a":1}' });
  const result = (i: number) => ({ id: id(i), parts: [w.text("ok")] });
  const tools = (n: number, name = (i: number) => `f${i}`) =>
    times(n, (i) => w.tool(name(i), { type: "object", properties: { a: { type: "string" } } }));
  return {
    "many turns": (n) =>
      w.body(
        times(n, (i) =>
          w.says(i % 2 ? "assistant" : "user", [w.text("x", i % 2 ? "assistant" : "")]),
        )
          .flat()
          .concat(hi),
      ),
    "turns of one side": (n) => w.body(times(n, () => hi).flat()),
    "turns of the other side": (n) =>
      w.body([...times(n, () => w.says("assistant", [w.text("x", "assistant")])).flat(), ...hi]),
    "many parts": (n) =>
      w.body(
        w.says(
          "user",
          times(n, () => w.text("x")),
        ),
      ),
    "many parts of the assistant": (n) =>
      w.body([
        ...w.says(
          "assistant",
          times(n, () => w.text("x", "assistant")),
        ),
        ...hi,
      ]),
    "many pictures": (n) =>
      w.body(
        w.says(
          "user",
          times(n, () => w.image(PIXEL)),
        ),
      ),
    "pictures by address": (n) =>
      w.body(
        w.says(
          "user",
          times(n, (i) => w.image(`https://e.com/${i}.png`)),
        ),
      ),
    "many calls, answered in another order": (n) =>
      w.body([...hi, ...w.calls(times(n, call)), ...w.results(shuffled(times(n, result)))]),
    "many calls, answered backwards": (n) =>
      w.body([...hi, ...w.calls(times(n, call)), ...w.results(times(n, result).toReversed())]),
    "results of no call": (n) => w.body([...hi, ...w.results(times(n, result)), ...hi]),
    "many steps": (n) =>
      w.body([
        ...hi,
        ...times(n, (i) => [...w.calls([call(i)]), ...w.results([result(i)])]).flat(),
      ]),
    "calls of one id": (n) =>
      w.body([...hi, ...w.calls(times(n, () => call(0))), ...w.results(times(n, () => result(0)))]),
    "a result of many parts": (n) =>
      w.body([
        ...hi,
        ...w.calls([call(0)]),
        ...w.results([
          { id: id(0), parts: times(n, (i) => (i % 2 ? w.text("x") : w.image(PIXEL))) },
        ]),
      ]),
    "arguments of many members": (n) =>
      w.body([
        ...hi,
        ...w.calls([
          { ...call(0), args: JSON.stringify(Object.fromEntries(times(n, (i) => [`k${i}`, i]))) },
        ]),
        ...w.results([result(0)]),
      ]),
    "arguments of long numbers": (n) =>
      w.body([
        ...hi,
        ...w.calls([
          { ...call(0), args: `{"a":[${times(n, () => "12345678901234567890").join()}]}` },
        ]),
        ...w.results([result(0)]),
      ]),
    "arguments nested as deep as there are pieces": (n) =>
      w.body([
        ...hi,
        ...w.calls([{ ...call(0), args: `{"a":${"[".repeat(n)}${"]".repeat(n)}}` }]),
        ...w.results([result(0)]),
      ]),
    "one huge text": (n) => w.body(w.says("user", [w.text('word\n\\" '.repeat(20 * n))])),
    "many instructions": (n) =>
      w.body([...times(n, () => w.says("system", [w.text("x")])).flat(), ...hi]),
    "instructions among turns": (n) =>
      w.body(
        times(n, (i) => (i % 2 ? w.says("system", [w.text("x")]) : hi))
          .flat()
          .concat(hi),
      ),
    "many tools": (n) => w.body(hi, { tools: tools(n) }),
    "tools with names that must be fitted": (n) =>
      w.body(hi, { tools: tools(n, (i) => `é.${"x".repeat(80)}.${i}`) }),
    "calls by names that must be fitted": (n) =>
      w.body(
        [
          ...hi,
          ...w.calls(times(n, (i) => ({ ...call(i), name: `é.${"x".repeat(80)}.${i}` }))),
          ...w.results(times(n, result)),
        ],
        { tools: tools(n, (i) => `é.${"x".repeat(80)}.${i}`) },
      ),
    "fields that nobody knows": (n) =>
      w.body(hi, Object.fromEntries(times(n, (i) => [`x_field_${i}`, i]))),
    "members that nobody knows": (n) =>
      w.body(
        w.says(
          "user",
          times(n, (i) => ({ ...w.text("x"), [`x_${i}`]: { a: i } })),
        ),
      ),
    "a member of many members": (n) =>
      w.body(
        w.says("user", [{ ...w.text("x"), ...Object.fromEntries(times(n, (i) => [`x_${i}`, i])) }]),
      ),
    "marks for caching": (n) =>
      w.body(
        w.says(
          "user",
          times(n, () => ({ ...w.text("x"), cache_control: { type: "ephemeral" } })),
        ),
      ),
    "many labels": (n) =>
      w.body(hi, { metadata: Object.fromEntries(times(n, (i) => [`k${i}`, "v"])) }),
    "parts of unknown types": (n) =>
      w.body(
        w.says(
          "user",
          times(n, (i) => ({ type: `new_${i}`, text: "x" })),
        ),
      ),
    ...Object.fromEntries(
      Object.entries(schemas).map(([name, schema]) => [
        `a tool whose schema is ${name}`,
        (n: number) => w.body(hi, { tools: [w.tool("f", schema(n))] }),
      ]),
    ),
    "tools whose schemas share what they spell": (n) =>
      w.body(hi, {
        tools: times(Math.ceil(n / 40), (i) =>
          w.tool(`f${i}`, schemas["of doubled references"]!(9)),
        ),
      }),
  };
}

const sealed = (of: string | undefined, more: object = {}): string =>
  `tg1.${Buffer.from(JSON.stringify({ o: "gemini", k: "part", d: "c2ln", b: of, ...more })).toString("base64url")}`;

const chat = wires["chat-completions"]!;
const hi = chat.says("user", [chat.text("Hi")]);
const said = (more: JsonObject): Json => ({ role: "assistant", content: "x", ...more });

/** As a gemini client receives it. */
const enveloped = (n: number): string =>
  Buffer.from(
    JSON.stringify([
      "tg1",
      ...times(n, () => ({ o: "messages", k: "signature", d: "c2ln", t: "x" })),
    ]),
  ).toString("base64");
const google = wires["gemini"]!;
const hello = google.says("user", [google.text("Hi")]);
const called = (thoughtSignature: string) => ({
  functionCall: { name: "f", args: {} },
  thoughtSignature,
});

const OWN: { readonly [protocol: string]: Bodies } = {
  gemini: {
    "calls in envelopes": (n) =>
      google.body([
        ...hello,
        ...google.says(
          "assistant",
          times(n, () => called(enveloped(1))),
        ),
        ...hello,
      ]),
    "an envelope of many": (n) =>
      google.body([...hello, ...google.says("assistant", [called(enveloped(n))]), ...hello]),
    "words, and envelopes after them": (n) =>
      google.body([
        ...hello,
        ...google.says("assistant", [
          ...times(n, () => google.text("x")),
          ...times(n, () => ({ text: "", thoughtSignature: enveloped(1) })),
        ]),
        ...hello,
      ]),
    "members by their other names": (n) =>
      google.body([
        {
          role: "user",
          parts: times(n, () => ({ inline_data: { mime_type: "image/png", data: "AAAA" } })),
        },
      ]),
    "a schema in other words": (n) =>
      google.body(hello, {
        tools: [
          google.tool("f", {
            type: "OBJECT",
            properties: Object.fromEntries(
              times(n, (i) => [`a${i}`, { type: "STRING", nullable: true }]),
            ),
          }),
        ],
      }),
    "many hosted tools": (n) =>
      google.body(hello, { tools: times(n, () => ({ googleSearch: {} })) }),
    "calls that no id leads to": (n) =>
      google.body([
        ...hello,
        { role: "model", parts: times(n, () => ({ functionCall: { name: "f", args: {} } })) },
        {
          role: "user",
          parts: times(n, () => ({ functionResponse: { name: "f", response: { a: 1 } } })),
        },
      ]),
  },
  "chat-completions": {
    "many of many tools allowed": (n) =>
      chat.body(hi, {
        tools: times(n, (i) => chat.tool(`f${i}`, {})),
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: {
            mode: "required",
            tools: shuffled(times(n, (i) => ({ type: "function", function: { name: `f${i}` } }))),
          },
        },
      }),
    "pictures that the assistant made": (n) =>
      chat.body([
        said({ images: times(n, () => ({ type: "image_url", image_url: { url: PIXEL } })) }),
        ...hi,
      ]),
    "many citations": (n) =>
      chat.body([
        said({
          annotations: times(n, () => ({
            type: "url_citation",
            url_citation: { url: "https://e" },
          })),
        }),
        ...hi,
      ]),
    "many details of reasoning": (n) =>
      chat.body([
        said({
          reasoning_details: times(n, (i) => ({ type: "reasoning.text", index: i, text: "x" })),
        }),
        ...hi,
      ]),
    "many sealed details": (n) =>
      chat.body([
        said({
          reasoning_details: times(n, () => ({
            type: "reasoning.encrypted",
            data: sealed(undefined, { t: "x" }),
          })),
        }),
        ...hi,
      ]),
    "many stop sequences": (n) => chat.body(hi, { stop: times(n, (i) => `s${i}`) }),
    "many biases": (n) =>
      chat.body(hi, { logit_bias: Object.fromEntries(times(n, (i) => [String(i), 1])) }),
    "many modalities": (n) => chat.body(hi, { modalities: times(n, () => "text") }),
    "calls of other kinds": (n) =>
      chat.body([
        said({ tool_calls: times(n, (i) => ({ id: id(i), type: "odd", odd: {} })) }),
        ...hi,
      ]),
    "freeform tools, called": (n) =>
      chat.body(
        [
          said({
            tool_calls: times(n, (i) => ({
              id: id(i),
              type: "custom",
              custom: { name: `f${i}`, input: "x" },
            })),
          }),
          ...hi,
        ],
        { tools: times(n, (i) => ({ type: "custom", custom: { name: `f${i}` } })) },
      ),
    "many hosted tools": (n) =>
      chat.body(hi, { tools: times(n, (i) => ({ type: `web_search_${i}` })) }),
    "functions of the oldest form": (n) =>
      chat.body(
        times(n, (i) => [
          said({ function_call: { name: `f${i}`, arguments: "{}" } }),
          { role: "function", name: `f${i}`, content: "ok" },
        ]).flat(),
        { functions: times(n, (i) => ({ name: `f${i}` })) },
      ),
  },
  messages: {
    "many carriers of proofs": (n) =>
      wires["messages"]!.body([
        {
          role: "assistant",
          content: times(n, (i) =>
            i % 2
              ? { type: "redacted_thinking", data: sealed("text") }
              : { type: "text", text: "x" },
          ),
        },
        { role: "user", content: "Hi" },
      ]),
    "many thoughts": (n) =>
      wires["messages"]!.body([
        {
          role: "assistant",
          content: times(n, () => ({
            type: "thinking",
            thinking: "x",
            signature: sealed(undefined, { t: "x" }),
          })),
        },
        { role: "user", content: "Hi" },
      ]),
    "many passages": (n) =>
      wires["messages"]!.body([
        {
          role: "user",
          content: times(n, () => ({
            type: "search_result",
            source: "https://e",
            title: "t",
            content: [{ type: "text", text: "x" }],
          })),
        },
      ]),
    "many stop sequences": (n) =>
      wires["messages"]!.body([{ role: "user", content: "Hi" }], {
        stop_sequences: times(n, (i) => `s${i}`),
      }),
    "many hosted tools": (n) =>
      wires["messages"]!.body([{ role: "user", content: "Hi" }], {
        tools: times(n, (i) => ({ type: "web_search_20250305", name: `web_search_${i}` })),
      }),
    "messages that say more": (n) =>
      wires["messages"]!.body(
        times(n, (i) => ({ role: "user", content: [{ type: "text", text: "x" }], x_more: i })),
      ),
    "what hosted tools did": (n) =>
      wires["messages"]!.body([
        {
          role: "assistant",
          content: times(n, (i) => ({
            type: "server_tool_use",
            id: `s${i}`,
            name: "web_search",
            input: {},
          })),
        },
        { role: "user", content: "Hi" },
      ]),
  },
  responses: {
    "reasoning, a call, then many messages": (n) =>
      wires["responses"]!.body([
        ...times(n, (i) => ({ type: "reasoning", id: `rs_${i}`, summary: [] })),
        { type: "message", role: "assistant", content: "x" },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        ...times(n, () => ({ type: "message", role: "assistant", content: "x" })),
        { role: "user", content: "Hi" },
      ]),
    "reasoning between messages": (n) =>
      wires["responses"]!.body([
        ...times(n, (i) =>
          i % 2
            ? { type: "message", role: "assistant", content: "x" }
            : { type: "reasoning", id: `rs_${i}`, summary: [{ type: "summary_text", text: "x" }] },
        ),
        { role: "user", content: "Hi" },
      ]),
    ...Object.fromEntries(
      (["call", "text"] as const).map((of) => [
        `many carriers of the proof of a ${of}`,
        (n: number) =>
          wires["responses"]!.body([
            ...(of === "call"
              ? [{ type: "function_call", call_id: "c", name: "f", arguments: "{}" }]
              : [{ type: "message", role: "assistant", content: "x" }]),
            ...times(n, () => ({ type: "reasoning", summary: [], encrypted_content: sealed(of) })),
            { role: "user", content: "Hi" },
          ]),
      ]),
    ),
    "many of many tools allowed": (n) =>
      wires["responses"]!.body([{ role: "user", content: "Hi" }], {
        tools: times(n, (i) => ({ type: "function", name: `f${i}` })),
        tool_choice: {
          type: "allowed_tools",
          mode: "required",
          tools: shuffled(times(n, (i) => ({ type: "function", name: `f${i}` }))),
        },
      }),
    "tools that items bring along": (n) =>
      wires["responses"]!.body([
        { type: "additional_tools", tools: times(n, (i) => ({ type: "function", name: `f${i}` })) },
        { role: "user", content: "Hi" },
      ]),
    "many items that bring a tool along": (n) =>
      wires["responses"]!.body([
        ...times(n, (i) => ({
          type: "additional_tools",
          tools: [{ type: "function", name: `f${i}` }],
        })),
        { role: "user", content: "Hi" },
      ]),
    "a namespace of many tools": (n) =>
      wires["responses"]!.body([{ role: "user", content: "Hi" }], {
        tools: [
          {
            type: "namespace",
            name: "ns",
            description: "d",
            tools: times(n, (i) => ({ type: "function", name: `f${i}`, description: "d" })),
          },
        ],
      }),
    "many namespaces": (n) =>
      wires["responses"]!.body([{ role: "user", content: "Hi" }], {
        tools: times(n, (i) => ({
          type: "namespace",
          name: `ns${i}`,
          tools: [{ type: "function", name: "f" }],
        })),
      }),
    "many hosted tools": (n) =>
      wires["responses"]!.body([{ role: "user", content: "Hi" }], {
        tools: times(n, (i) => ({ type: "web_search", x: i })),
      }),
    "what hosted tools did": (n) =>
      wires["responses"]!.body([
        ...times(n, (i) => ({ type: "web_search_call", id: `ws_${i}`, status: "completed" })),
        { role: "user", content: "Hi" },
      ]),
    "what to include": (n) =>
      wires["responses"]!.body([{ role: "user", content: "Hi" }], {
        include: times(n, (i) => `i${i}`),
      }),
    citations: (n) =>
      wires["responses"]!.body([
        {
          type: "message",
          role: "assistant",
          content: [
            {
              type: "output_text",
              text: "x",
              annotations: times(n, () => ({ type: "url_citation", url: "https://e" })),
            },
          ],
        },
        { role: "user", content: "Hi" },
      ]),
  },
};

export const bodies: { readonly [protocol: string]: Bodies } = Object.fromEntries(
  Object.entries(wires).map(([protocol, wire]) => [
    protocol,
    { ...common(wire), ...OWN[protocol] },
  ]),
);
