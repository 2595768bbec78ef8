// Fields that a body may contain although its own protocol does not know them: every documented
// field of every protocol, with markers that are recognized upstream. Written from the
// documentation of the protocols and of compatible APIs, not from the gateway's tables, which are
// tested with it.
//
// A new tripwire (cost, for example) is a new `what`, rows for it below, and a line in `TRIPWIRES`
// of `sent-bodies.test.ts`.
import { bodies as chat } from "../../protocols/chat-completions/fields.ts";
import { bodies as messages } from "../../protocols/messages/fields.ts";
import { bodies as responses } from "../../protocols/responses/fields.ts";

/**
 * state: names stored objects · keeps: requests storage · hosted: runs elsewhere and stores ·
 * models: names another model · account: names the account · unknown: unknown meaning · cache: a
 * prompt cache mark
 */
export type What = "state" | "keeps" | "hosted" | "models" | "account" | "unknown" | "cache";

export interface Foreign {
  readonly what: What;
  readonly name: string;
  readonly fields: { readonly [field: string]: unknown };
}

/** Texts to search for in an upstream's request. */
export const mark = (what: What): string => `trip-${what}`;

const state = mark("state");
const user = (...content: object[]) => [{ role: "user", content }];
const file = { type: "input_file", file_id: state };
const source = { type: "file", file_id: state };

const NAMES: readonly (readonly [What, object])[] = [
  ["state", { previous_response_id: state }],
  ["state", { conversation: state }],
  ["state", { conversation: { id: state } }],
  ["state", { conversation_id: state }],
  ["state", { thread: { type: "continue", previous_message_id: state } }],
  ["state", { thread_id: state }],
  ["state", { diagnostics: { previous_message_id: state } }],
  ["state", { prompt: { id: state } }],
  ["state", { container: state }],
  ["state", { container: { id: state } }],
  ["state", { container: { skills: [{ type: "custom", skill_id: state }] } }],
  ["state", { cachedContent: state }],
  ["state", { cached_content: state }],
  ["state", { continuationToken: state }],
  ["state", { prompt_cache_options: { comparison_response_id: state } }],
  ["state", { generateContentRequest: { cachedContent: state } }],
  ["state", { input: [{ role: "user", content: [file] }] }],
  ["state", { input: [{ type: "function_call_output", call_id: "c", output: [file] }] }],
  ["state", { messages: user({ type: "file", file: { file_id: state } }) }],
  ["state", { messages: [{ role: "assistant", content: "x", audio: { id: state } }] }],
  ["state", { messages: user({ type: "image", source }) }],
  ["state", { messages: user({ type: "container_upload", file_id: state }) }],
  [
    "state",
    {
      messages: user({
        type: "document",
        source: { type: "content", content: [{ type: "image", source }] },
      }),
    },
  ],
  ["keeps", { store: true, keep: mark("keeps") }],
  ["keeps", { deferred: true, keep: mark("keeps") }],
  ["state", { background: true, metadata: { a: state } }],
  ["hosted", { mcp_servers: [{ type: "url", url: "https://e", name: mark("hosted") }] }],
  ["hosted", { plugins: [{ id: "web", engine: mark("hosted") }] }],
  ["hosted", { plugins: [{ id: mark("hosted") }] }],
  ["hosted", { search_parameters: { mode: "on", sources: [mark("hosted")] } }],
  ["hosted", { web_search_options: { search_context_size: mark("hosted") } }],
  ["hosted", { enable_search: true, search_options: { a: mark("hosted") } }],
  ["models", { fallbacks: [{ model: mark("models") }] }],
  ["models", { fallbacks: [mark("models")] }],
  ["models", { models: [mark("models")] }],
  ["models", { models: [`x/${mark("models")}:online`] }],
  ["models", { preset: mark("models") }],
  ["models", { plugins: [{ id: "auto-router", allowed_models: [mark("models")] }] }],
  ["models", { moderation: { model: mark("models") } }],
  ["account", { workspace_id: mark("account") }],
  ["account", { billing_policy: { id: mark("account") } }],
  ["account", { user_profile_id: mark("account") }],
  ["account", { fallback_credit_token: mark("account") }],
  ["account", { organization: mark("account") }],
  ["account", { api_key: mark("account") }],
  ["unknown", { brand_new: mark("unknown") }],
  ["unknown", { brandNew: { deep: [{ a: mark("unknown") }] } }],
  ["unknown", { extra: [[{ a: mark("unknown") }]] }],
];

/** One declaration of a tool, which may be in several positions. */
const TOOLS: readonly (readonly [What, object])[] = [
  ["state", { type: "file_search", vector_store_ids: [state] }],
  ["state", { type: "collections_search", collection_ids: [state] }],
  ["state", { type: "code_interpreter", container: state }],
  ["state", { type: "code_interpreter", container: { type: "auto", file_ids: [state] } }],
  ["state", { type: "image_generation", input_image_mask: { file_id: state } }],
  ["state", { type: "shell", environment: { type: "container_reference", container_id: state } }],
  ["state", { fileSearch: { fileSearchStoreNames: [state] } }],
  ["hosted", { type: "mcp", server_label: mark("hosted"), server_url: "https://e" }],
  ["hosted", { type: "code_interpreter", container: { type: "auto" }, label: mark("hosted") }],
  ["hosted", { type: "file_search", filters: { a: mark("hosted") } }],
  ["hosted", { type: `x_new_${mark("hosted")}` }],
  ["hosted", { type: "code_execution_20260521", name: mark("hosted") }],
  ["hosted", { type: "web_search_20260318", name: mark("hosted") }],
  ["hosted", { type: "openrouter:web_search", parameters: { engine: mark("hosted") } }],
  ["hosted", { googleSearch: { a: mark("hosted") } }],
  ["hosted", { google_search: { a: mark("hosted") } }],
  ["hosted", { urlContext: { a: mark("hosted") } }],
  ["models", { type: "advisor_20260301", name: "advisor", model: mark("models") }],
  ["models", { type: "image_generation", model: mark("models") }],
  ["models", { type: "openrouter:subagent", parameters: { model: mark("models") } }],
];

const say = { role: "user", content: "Hi" };
/**
 * Positions of a tool declaration: at the top, inside another one, and next to conversation items.
 */
const PLACES: readonly (readonly [string, (tool: object) => object])[] = [
  ["tools", (tool) => ({ tools: [tool] })],
  [
    "tools, in a namespace",
    (tool) => ({ tools: [{ type: "namespace", name: "n", description: "d", tools: [tool] }] }),
  ],
  ...["additional_tools", "tool_search_output", "configuration_update"].map(
    (type): readonly [string, (tool: object) => object] => [
      type,
      (tool) => ({ input: [{ type, role: "developer", call_id: "c", tools: [tool] }, say] }),
    ],
  ),
  [
    "configuration_update, one deeper",
    (tool) => ({
      input: [{ type: "configuration_update", configuration: { tools: [tool] } }, say],
    }),
  ],
  [
    "a message that adds a tool",
    (tool) => ({
      messages: [say, { role: "system", content: [{ type: "tool_addition", tool }] }, say],
    }),
  ],
  ["generateContentRequest", (tool) => ({ generateContentRequest: { tools: [tool] } })],
];

const marked = { cache_control: { type: "ephemeral" } };
const CACHED: readonly object[] = [
  marked,
  { prompt_cache_key: "k" },
  { prompt_cache_retention: "24h" },
  { prompt_cache_options: { mode: "explicit" } },
  { tools: [{ name: "f", input_schema: { type: "object" }, ...marked }] },
  { tools: [{ type: "function", function: { name: "f" }, ...marked }] },
  { system: [{ type: "text", text: "x", ...marked }] },
  { messages: user({ type: "text", text: "x", ...marked }) },
  { messages: user({ type: "text", text: "x", prompt_cache_breakpoint: { mode: "explicit" } }) },
  {
    messages: user({
      type: "document",
      source: { type: "content", content: [{ type: "text", text: "x", ...marked }] },
    }),
  },
  {
    input: [
      {
        role: "user",
        content: [{ type: "input_text", text: "x", prompt_cache_breakpoint: { mode: "explicit" } }],
      },
    ],
  },
];

const named = (what: What, fields: object, at = ""): Foreign => ({
  what,
  name: `${what}: ${at}${JSON.stringify(fields)}`,
  fields: fields as Foreign["fields"],
});

/** Everything that triggers a tripwire. */
export const FOREIGN: readonly Foreign[] = [
  ...NAMES.map(([what, fields]) => named(what, fields)),
  ...TOOLS.flatMap(([what, tool]) =>
    PLACES.map(([at, put]) => named(what, put(tool), at === "tools" ? "" : `${at}: `)),
  ),
  ...CACHED.map((fields) => named("cache", fields)),
];

/**
 * Every documented field of every protocol, one at a time: as its own documentation states, in any
 * other body.
 */
export const DOCUMENTED: readonly { readonly [field: string]: unknown }[] = [
  ...new Map(
    [...chat, ...messages, ...responses].flatMap((body) =>
      Object.entries(body)
        .filter(([field]) => !["model", "messages", "input", "system", "stream"].includes(field))
        .map(([field, value]) => [JSON.stringify([field, value]), { [field]: value }] as const),
    ),
  ).values(),
];
