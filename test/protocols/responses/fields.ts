// Fields of a responses request: rows of docs/reference/translation/requests.md.
import { fromClients, type Row } from "../tables/verdicts.ts";

const base = { model: "m", max_output_tokens: 4000 };
const hi = { role: "user", content: "?" };
const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
const part = (content: object) => ({
  input: [{ role: "user", content: [content, { type: "input_text", text: "?" }] }],
});
const returned = (output: unknown) => ({
  input: [hi, call, { type: "function_call_output", call_id: "c", output }],
});
const before = (...items: object[]) => ({ input: [hi, ...items, hi] });
const tool = (...tools: object[]) => ({
  tools: [{ type: "function", name: "f", strict: false }, ...tools],
});

/** In the form of a responses client, and its comparison. */
const OWN: readonly Row<object>[] = [
  ["instructions", { instructions: "x" }],
  ["role system or developer, first", { input: [{ role: "developer", content: "x" }, hi] }],
  [
    "role system or developer, later",
    { input: [hi, { role: "developer", content: "x" }, hi] },
    { input: [hi, hi] },
  ],
  ["temperature", { temperature: 0.5 }],
  ["top_p", { top_p: 0.5 }],
  ["top_logprobs", { top_logprobs: 2 }],
  ["text.format: json_object", { text: { format: { type: "json_object" } } }],
  [
    "text.format: json_schema",
    { text: { format: { type: "json_schema", name: "n", schema: {} } } },
  ],
  ["text.verbosity", { text: { verbosity: "low" } }],
  ["reasoning.effort", { reasoning: { effort: "high" } }],
  ["reasoning.effort: none", { reasoning: { effort: "none" } }],
  [
    "reasoning.summary",
    { reasoning: { effort: "high", summary: "auto" } },
    { reasoning: { effort: "high" } },
  ],
  ["metadata", { metadata: { a: "b" } }],
  ["safety_identifier, user", { safety_identifier: "u1" }],
  ["service_tier", { service_tier: "flex" }],
  ["prompt_cache_key", { prompt_cache_key: "k" }],
  ["store: true", { store: true }],
  ["previous_response_id, conversation", { previous_response_id: "resp_1" }],
  ["background: true", { background: true }],
  ["prompt", { prompt: { id: "pmpt_1" } }],
  ["context_management, moderation, …", { context_management: [{}] }],
  ["truncation: auto, max_tool_calls", { truncation: "auto" }],
  [
    "include, stream_options, client_metadata",
    { client_metadata: { a: "b" }, include: ["reasoning.encrypted_content"] },
  ],
  ["unknown top-level fields", { brand_new: 1 }],
  ["parallel_tool_calls: false", { ...tool(), parallel_tool_calls: false }, tool()],
  ["tools: function, strict", { tools: [{ type: "function", name: "f", strict: true }] }, tool()],
  ["tools: custom", tool({ type: "custom", name: "c" }), tool()],
  [
    "tools: custom, grammar",
    tool({
      type: "custom",
      name: "c",
      format: { type: "grammar", syntax: "lark", definition: "x" },
    }),
    tool(),
  ],
  [
    "tools: namespace",
    tool({ type: "namespace", name: "n", tools: [{ type: "function", name: "g" }] }),
    tool(),
  ],
  ["tools: web_search", tool({ type: "web_search" }), tool()],
  [
    "tools: web_search without web access",
    tool({ type: "web_search", external_web_access: false }),
    tool(),
  ],
  ["tools: tool_search", tool({ type: "tool_search" }), tool()],
  [
    "tools: other hosted tools",
    tool({ type: "code_interpreter", container: { type: "auto" } }),
    tool(),
  ],
  [
    "tool_choice: allowed_tools",
    {
      ...tool({ type: "function", name: "g" }),
      tool_choice: {
        type: "allowed_tools",
        mode: "auto",
        tools: [{ type: "function", name: "f" }],
      },
    },
    tool({ type: "function", name: "g" }),
  ],
  [
    "input_image",
    part({ type: "input_image", image_url: "https://e/a.png" }),
    part({ type: "input_text", text: "" }),
  ],
  [
    "input_image: detail",
    part({ type: "input_image", image_url: "https://e/a.png", detail: "high" }),
    part({ type: "input_image", image_url: "https://e/a.png" }),
  ],
  [
    "input_file, bytes",
    part({ type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" }),
    part({ type: "input_text", text: "" }),
  ],
  [
    "input_file, URL",
    part({ type: "input_file", file_url: "https://e/a.pdf" }),
    part({ type: "input_text", text: "" }),
  ],
  ["file_id", part({ type: "input_file", file_id: "file_1" })],
  [
    "input_audio",
    part({ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }),
    part({ type: "input_text", text: "" }),
  ],
  ["unknown content parts", part({ type: "input_new" })],
  [
    "tool outputs with images",
    returned([{ type: "input_image", image_url: "https://e/a.png" }]),
    returned(""),
  ],
  [
    "tool outputs with audio",
    returned([{ type: "input_audio", input_audio: { data: "AA==", format: "wav" } }]),
    returned(""),
  ],
  [
    "custom_tool_call and output",
    before(
      { type: "custom_tool_call", call_id: "c", name: "c", input: "x" },
      { type: "custom_tool_call_output", call_id: "c", output: "y" },
    ),
    before(),
  ],
  [
    "phase",
    before({ role: "assistant", content: "x", phase: "commentary" }),
    before({ role: "assistant", content: "x" }),
  ],
  [
    "reasoning, encrypted by a provider",
    before(
      { type: "reasoning", summary: [], encrypted_content: "e" },
      { role: "assistant", content: "x" },
    ),
    before({ role: "assistant", content: "x" }),
  ],
  [
    "items of hosted tools, unknown items",
    before({ type: "web_search_call", id: "ws_1" }),
    before(),
  ],
  [
    "unknown fields of nested objects",
    before({ role: "assistant", content: "x", new: 1 }),
    before({ role: "assistant", content: "x" }),
  ],
  ["unresolved item_reference", before({ type: "item_reference", id: "msg_1" })],
];

const LEAST = { ...base, input: [hi] };

/** Every row as a separate body. */
export const bodies: readonly object[] = OWN.map(([, more]) => ({ ...LEAST, ...more }));

export const table = (): string => fromClients("responses", LEAST, OWN);
