// Fields of a chat-completions request: rows of docs/reference/translation/requests.md.
import { fromClients, type Row } from "../tables/verdicts.ts";

const hi = { role: "user", content: "?" };
const f = { type: "function", function: { name: "f", parameters: { type: "object" } } };
const g = { type: "function", function: { name: "g", parameters: { type: "object" } } };
const call = { id: "c", type: "function", function: { name: "f", arguments: "{}" } };
const text = { type: "text", text: "?" };

const freeform = [
  {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "custom", custom: { name: "c", input: "x" } }],
  },
  { role: "tool", tool_call_id: "c", content: "y" },
];
const cited = { type: "url_citation", url_citation: { url: "https://e", title: "t" } };

const part = (...content: object[]) => ({
  messages: [{ role: "user", content: [...content, text] }],
});
const before = (...messages: object[]) => ({ messages: [hi, ...messages, hi] });
const said = (more: object) => before({ role: "assistant", content: "x", ...more });
const tools = (...more: object[]) => ({ tools: [f, ...more] });
const returned = (content: unknown) =>
  before(
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "c", content },
  );

const ROWS: readonly Row<object>[] = [
  ["role system or developer, first", { messages: [{ role: "developer", content: "x" }, hi] }],
  ["role system or developer, later", before({ role: "system", content: "x" }), before()],
  ["name of a message", { messages: [{ ...hi, name: "n" }] }],
  ["max_tokens, max_completion_tokens", { max_completion_tokens: 300 }],
  ["temperature", { temperature: 0.5 }],
  ["top_p", { top_p: 0.5 }],
  ["top_k", { top_k: 5 }],
  ["stop", { stop: ["END"] }],
  ["n > 1", { n: 2 }],
  ["presence_penalty, frequency_penalty", { presence_penalty: 1 }],
  ["logit_bias", { logit_bias: { 1: 1 } }],
  ["logprobs, top_logprobs", { logprobs: true, top_logprobs: 2 }],
  ["seed", { seed: 1 }],
  ["response_format: json_object", { response_format: { type: "json_object" } }],
  [
    "response_format: json_schema",
    { response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } } },
  ],
  ["unknown response_format", { response_format: { type: "new" } }],
  ["verbosity", { verbosity: "low" }],
  ["modalities: audio", { modalities: ["text", "audio"], audio: { voice: "v", format: "wav" } }],
  ["prediction", { prediction: { type: "content", content: "x" } }],
  ["web_search_options", { web_search_options: {} }],
  ["thinking: enabled", { thinking: { type: "enabled" } }],
  ["thinking: disabled", { thinking: { type: "disabled" } }],
  ["thinking.budget_tokens", { thinking: { type: "enabled", budget_tokens: 2000 } }],
  ["reasoning_effort", { reasoning_effort: "high" }],
  ["reasoning_effort: none", { reasoning_effort: "none" }],
  ["metadata", { metadata: { a: "b" } }],
  ["store: true", { store: true }],
  ["service_tier", { service_tier: "flex" }],
  ["prompt_cache_key", { prompt_cache_key: "k" }],
  ["safety_identifier, user", { user: "u1" }],
  ["unknown top-level fields", { brand_new: 1 }],
  ["stream_options", { stream: true, stream_options: { include_usage: true } }, { stream: true }],
  ["tools", tools()],
  ["tools: strict", { tools: [{ ...f, function: { ...f.function, strict: true } }] }, tools()],
  ["tools: custom", tools({ type: "custom", custom: { name: "c" } }), tools()],
  ["tools: other types", tools({ type: "new_tool" }), tools()],
  ["functions, function_call", { functions: [f.function], function_call: "auto" }],
  ["tool_choice: required", { ...tools(), tool_choice: "required" }, tools()],
  [
    "tool_choice: one",
    { ...tools(), tool_choice: { type: "function", function: { name: "f" } } },
    tools(),
  ],
  [
    "tool_choice: allowed_tools",
    {
      ...tools(g),
      tool_choice: {
        type: "allowed_tools",
        allowed_tools: { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] },
      },
    },
    tools(g),
  ],
  ["parallel_tool_calls: false", { ...tools(), parallel_tool_calls: false }, tools()],
  ["image_url", part({ type: "image_url", image_url: { url: "https://e/a.png" } }), part()],
  [
    "image_url.detail",
    part({ type: "image_url", image_url: { url: "https://e/a.png", detail: "high" } }),
    part({ type: "image_url", image_url: { url: "https://e/a.png" } }),
  ],
  [
    "input_audio",
    part({ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }),
    part(),
  ],
  ["video_url", part({ type: "video_url", video_url: { url: "https://e/a.mp4" } }), part()],
  [
    "file, bytes",
    part({
      type: "file",
      file: { file_data: "data:application/pdf;base64,AA==" },
    }),
    part(),
  ],
  ["file.file_id", part({ type: "file", file: { file_id: "file_1" } }), part()],
  ["unknown content parts", part({ type: "new_part" }), part()],
  ["cache_control of a part", part({ ...text, cache_control: { type: "ephemeral" } }), part(text)],
  ["refusal", said({ content: null, refusal: "No." }), said({ content: "" })],
  ["assistant audio by ID", said({ audio: { id: "a" } }), said({})],
  ["tool_calls and results", returned("x"), before()],
  [
    "tool result: image",
    returned([{ type: "image_url", image_url: { url: "https://e/a.png" } }]),
    returned("x"),
  ],
  ["reasoning_content", said({ reasoning_content: "r" }), said({})],
  [
    "reasoning_details of a provider",
    said({ reasoning_details: [{ type: "reasoning.encrypted", data: "e" }] }),
    said({}),
  ],
  ["unknown fields of messages", said({ brand_new: 1 }), said({})],
  ["unknown fields of content parts", part({ ...text, brand_new: 1 }), part(text)],
  ["unknown fields of tools", tools({ ...g, brand_new: 1 }), tools(g)],
  ["custom tool calls and results", before(...freeform), before()],
  ["citations in assistant messages", said({ annotations: [cited] }), said({})],
];

const LEAST = { model: "m", max_completion_tokens: 4000, messages: [hi] };

/** Every row as a separate body. */
export const bodies: readonly object[] = ROWS.map(([, more]) => ({ ...LEAST, ...more }));

export const table = (): string => fromClients("chat-completions", LEAST, ROWS);
