// Valid requests with random changes: bytes, values, names, headers. Each gets a valid response.
import type { Chance } from "../rig.ts";
import type { Attack } from "./target.ts";

const GOOD: readonly (readonly [path: string, body: object])[] = [
  [
    "/v1/chat/completions",
    {
      model: "chat/m",
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
          ],
        },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
        },
        { role: "tool", tool_call_id: "c", content: "1" },
      ],
      tools: [
        {
          type: "function",
          function: {
            name: "f",
            parameters: {
              type: "object",
              properties: { a: { $ref: "#/$defs/x" } },
              $defs: { x: { type: "string" } },
            },
          },
        },
      ],
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 5,
      temperature: 0.5,
      n: 1,
      response_format: {
        type: "json_schema",
        json_schema: { name: "s", schema: { type: "object" } },
      },
    },
  ],
  [
    "/v1/messages",
    {
      model: "messages/m",
      max_tokens: 10,
      system: [{ type: "text", text: "s", cache_control: { type: "ephemeral" } }],
      messages: [
        { role: "user", content: "a" },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "t", signature: "c2ln" },
            { type: "tool_use", id: "t", name: "f", input: { a: 1 } },
          ],
        },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: "r" }] },
      ],
      tools: [{ name: "f", input_schema: { type: "object" } }],
      thinking: { type: "enabled", budget_tokens: 1024 },
      stream: false,
    },
  ],
  [
    "/v1/responses",
    {
      model: "gemini/m",
      store: false,
      instructions: "i",
      input: [
        { type: "message", role: "user", content: [{ type: "input_text", text: "a" }] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "r" },
      ],
      tools: [
        {
          type: "function",
          name: "f",
          parameters: {
            type: "object",
            allOf: [{ $ref: "#/$defs/a" }],
            $defs: { a: { type: "object" } },
          },
        },
      ],
      reasoning: { effort: "low" },
      stream: true,
    },
  ],
  ["/v1/images/generations", { model: "chat/draw", prompt: "a", n: 1, size: "512x512" }],
  [
    "/v1/messages/count_tokens",
    { model: "messages/m", messages: [{ role: "user", content: "a" }] },
  ],
];
const MODELS = [
  "chat/m",
  "messages/m",
  "responses/m",
  "gemini/m",
  "chat/draw",
  "demo",
  "",
  "../m",
  "chat/m\u0000",
];
const VALUES: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  1e-9,
  2 ** 53,
  "",
  "a",
  "__proto__",
  "constructor",
  "x".repeat(5_000),
  "\ud800",
  [],
  {},
  [[[]]],
  { toString: 1 },
  { __proto__: null, length: -1 },
  Array(300).fill("a"),
];
const NAMES = [
  "__proto__",
  "constructor",
  "hasOwnProperty",
  "toJSON",
  "then",
  "length",
  "type",
  "model",
  "Model",
  "stream",
  "n",
  "best_of",
  "$ref",
  "store",
  "tools",
  "previous_response_id",
  "x".repeat(300),
  "",
];

/** Every place in a value, as its parent object and key. */
function places(value: unknown, found: [Record<string, unknown>, string][] = []) {
  if (typeof value === "object" && value !== null)
    for (const key of Object.keys(value)) {
      found.push([value as Record<string, unknown>, key]);
      places((value as Record<string, unknown>)[key], found);
    }
  return found;
}

function changed(chance: Chance, good: object): string {
  const body = structuredClone(good) as Record<string, unknown>;
  if (chance.often(0.5)) body["model"] = chance.one(MODELS);
  for (let n = 1 + chance.below(3); n > 0; n--) {
    const all = places(body);
    if (all.length === 0) break;
    const [of, key] = chance.one(all);
    const [other, name] = chance.one(all);
    const what = chance.below(6);
    if (what === 0) delete of[key];
    else if (what === 1) of[key] = structuredClone(chance.one(VALUES));
    else if (what === 2 && !Array.isArray(of))
      Object.defineProperty(of, chance.one(NAMES), {
        value: structuredClone(chance.one(VALUES)),
        enumerable: true,
        configurable: true,
        writable: true,
      });
    else if (what === 3 && Array.isArray(of))
      of.push(...Array.from({ length: chance.below(40) }, () => structuredClone(of[0]) as unknown));
    else if (what === 4) of[key] = structuredClone(other[name]);
    else of[key] = { [chance.one(NAMES)]: of[key] };
  }
  let text: string;
  try {
    text = JSON.stringify(body);
  } catch {
    return "{}";
  }
  if (chance.often(0.85)) return text;
  // And its bytes.
  const at = chance.below(text.length + 1);
  const odd = chance.one([
    "",
    '"',
    "{",
    "}",
    "]",
    ",",
    "\\",
    "\u0000",
    "\ufeff",
    "1e999",
    '"a":1,',
    "//",
  ]);
  return text.slice(0, at) + odd + text.slice(chance.often(0.5) ? at : at + chance.below(20));
}

const HEADERS: readonly Record<string, string>[] = [
  {},
  {},
  {},
  {},
  { "service-zdr": "required" },
  { "service-zdr": "strict" },
  { "x-tollgate-strict": "true" },
  { "anthropic-version": "2023-06-01" },
  { "anthropic-beta": "x,y" },
  { "content-type": "text/plain" },
  { "x-stainless-timeout": "0.001" },
  { "service-zdr": "maybe" },
];
const AT_ONCE = 24;

export const mutantsAttack = (requests: number): Attack => ({
  name: `${requests} mutated requests`,
  async run(site) {
    const wrong: string[] = [];
    let left = requests;
    const one = async () => {
      while (left-- > 0) {
        const [path, good] = site.chance.one(GOOD);
        const body = changed(site.chance, good);
        const headers = site.chance.one(HEADERS);
        const { status, body: told } = await site.post(path, body, { headers });
        const mine = status === 500 || status === 0;
        if (mine && wrong.length < 50)
          wrong.push(`${path}: ${status} ${told.slice(0, 100)} for ${body.slice(0, 600)}`);
      }
    };
    await site.gauge();
    await Promise.all(Array.from({ length: AT_ONCE }, one));
    site.worst((await site.gauge()).held);
    return wrong;
  },
});
