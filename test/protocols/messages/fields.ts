// Fields of a messages request: rows of docs/reference/translation/requests.md.
import { fromClients, type Row } from "../tables/verdicts.ts";

const said = (content: object): object => ({
  messages: [{ role: "user", content: [content, { type: "text", text: "?" }] }],
});
const done = (content: object): object => ({
  messages: [
    { role: "assistant", content: [content, { type: "text", text: "?" }] },
    { role: "user", content: "?" },
  ],
});
const result = (more: object): object => ({
  messages: [
    { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: {} }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: "c", ...more }] },
  ],
});
const image = { type: "image", source: { type: "url", url: "https://e/a.png" } };
const document = (source: object, more = {}) => said({ type: "document", source, ...more });
const pdf = { type: "base64", media_type: "application/pdf", data: "AA==" };

const f = { name: "f", input_schema: { type: "object" } };

/** In the form of a messages client. */
const OWN: readonly Row<object>[] = [
  ["temperature", { temperature: 0.5 }],
  ["top_k", { top_k: 5 }],
  ["stop_sequences", { stop_sequences: ["END"] }],
  ["system", { system: "x" }],
  [
    "system with cache_control",
    { system: [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }] },
  ],
  [
    "role system",
    {
      messages: [
        { role: "system", content: "x" },
        { role: "user", content: "?" },
      ],
    },
  ],
  ["thinking: adaptive", { thinking: { type: "adaptive" } }],
  ["thinking: enabled", { thinking: { type: "enabled", budget_tokens: 2000 } }],
  ["thinking: between_tools", { thinking: { type: "between_tools" } }],
  ["thinking: disabled", { thinking: { type: "disabled" } }],
  ["output_config.effort", { thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
  ["output_config.effort without thinking", { output_config: { effort: "high" } }],
  ["output_config.format", { output_config: { format: { type: "json_schema", schema: {} } } }],
  ["metadata.user_id", { metadata: { user_id: "u1" } }],
  ["service_tier", { service_tier: "standard_only" }],
  ["cache_control", { cache_control: { type: "ephemeral" } }],
  ["speed, container, context_management, …", { speed: "fast" }],
  ["unknown top-level fields", { brand_new: 1 }],
  ["tools", { tools: [f] }],
  [
    "tools: defer_loading, input_examples, …",
    { tools: [{ ...f, defer_loading: true }] },
    { tools: [f] },
  ],
  ["tools: default values", { tools: [{ ...f, allowed_callers: ["direct"] }] }, { tools: [f] }],
  [
    "unknown fields of nested objects",
    { thinking: { type: "adaptive", new: 1 } },
    { thinking: { type: "adaptive" } },
  ],
  ["tools: web_search", { tools: [{ type: "web_search_20250305", name: "web_search" }] }],
  ["tools: other built-in types", { tools: [{ type: "bash_20250124", name: "bash" }] }],
  [
    "disable_parallel_tool_use",
    {
      tools: [f],
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    },
    { tools: [f] },
  ],
  ["image", said(image)],
  ["image by file ID", said({ type: "image", source: { type: "file", file_id: "x" } })],
  ["document, PDF", document(pdf)],
  ["document by URL", document({ type: "url", url: "https://e/a.pdf" })],
  ["document, text", document({ type: "text", media_type: "text/plain", data: "x" })],
  ["document: citations", document(pdf, { citations: { enabled: true } })],
  [
    "search_result",
    said({
      type: "search_result",
      source: "s",
      title: "t",
      content: [{ type: "text", text: "x" }],
    }),
  ],
  ["tool_result", result({ content: "x" })],
  ["tool_result: is_error", result({ content: "x", is_error: true })],
  ["tool_result: image", result({ content: [image] })],
  [
    "tool_result: tool_reference",
    result({ content: [{ type: "tool_reference", tool_name: "f" }] }),
  ],
  ["thinking, signed by Anthropic", done({ type: "thinking", thinking: "x", signature: "s" })],
  [
    "server_tool_use and results",
    done({ type: "server_tool_use", id: "s", name: "web_search", input: {} }),
  ],
];

/** The same without the field in question. */
const bare = (body: { messages?: any; tools?: any }): object => ({
  ...(body.messages && {
    messages: (body.messages as readonly { role: string; content: any }[]).map(
      ({ role, content }) => ({
        role: role === "system" ? "user" : role,
        content: Array.isArray(content) ? content.flatMap(bareBlock) : content,
      }),
    ),
  }),
});
const bareBlock = (b: any): object[] => {
  if (b.type === "tool_result")
    return [{ type: b.type, tool_use_id: "c", content: b.is_error ? b.content : [] }];
  return b.type === "text" || b.type === "tool_use" ? [b] : [];
};

const LEAST = { model: "m", max_tokens: 4000, messages: [{ role: "user", content: "?" }] };

/** Every row as a separate body. */
export const bodies: readonly object[] = OWN.map(([, more]) => ({ ...LEAST, ...more }));

export const table = (): string =>
  fromClients(
    "messages",
    LEAST,
    OWN.map(([name, more, plain]): Row<object> => [name, more, plain ?? bare(more)]),
  );
