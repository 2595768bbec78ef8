// Request fields that may be sent under `Service-ZDR`, reviewed against Anthropic's documentation
// and the requests of its SDKs and Claude Code.
import type { AllowedContent, FieldAllowlist, AllowedFields } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";

const CACHED: AllowedFields = { cache_control: valueFields("type ttl scope") };
const SOURCE: AllowedContent = [
  null,
  {
    base64: valueFields("media_type data"),
    url: valueFields("url"),
    text: valueFields("media_type data"),
    content: { content: [null, { text: { text: "plain", ...CACHED }, image: "free" }] },
  },
];
const CITED: AllowedFields = { citations: valueFields("enabled") };

const SEARCH: AllowedFields = {
  ...CACHED,
  ...valueFields(
    "name max_uses allowed_domains blocked_domains strict defer_loading allowed_callers",
  ),
  user_location: valueFields("type city region country timezone"),
};
const OWN_TOOL: AllowedFields = {
  ...CACHED,
  ...valueFields("name description strict defer_loading eager_input_streaming allowed_callers"),
  ...freeTextFields("input_schema input_examples"),
};
/** Tools that the provider defines and the client runs. */
const TYPED: AllowedFields = {
  ...OWN_TOOL,
  ...valueFields("max_characters display_width_px display_height_px display_number enable_zoom"),
};

/**
 * Fields of a hosted tool's declaration that are allowed. Whether the tool may run is decided by
 * the data policy of the provider.
 */
const TOOL: AllowedContent = [
  "custom",
  {
    custom: OWN_TOOL,
    "bash_*": TYPED,
    "text_editor_*": TYPED,
    "memory_*": TYPED,
    "computer_*": TYPED,
    "computer_toolset_*": TYPED,
    "browser_toolset_*": TYPED,
    "web_search_*": SEARCH,
    "web_fetch_*": { ...SEARCH, ...CITED, ...valueFields("max_content_tokens use_cache") },
    "tool_search_tool_regex_*": OWN_TOOL,
    "tool_search_tool_bm25_*": OWN_TOOL,
    "code_execution_*": OWN_TOOL,
  },
];

/** The output of a hosted tool in the conversation is free text. */
const RECORD = "free";

const TYPES: { readonly [type: string]: AllowedFields | "free" } = {
  text: { ...CACHED, ...valueFields("text"), ...freeTextFields("citations") },
  image: { ...CACHED, source: SOURCE, transformations: "free" },
  document: { ...CACHED, ...CITED, ...valueFields("title context"), source: SOURCE },
  tool_reference: { ...CACHED, ...valueFields("tool_name") },
  tool_use: {
    ...CACHED,
    ...valueFields("id name toolset_name"),
    ...freeTextFields("input"),
    caller: valueFields("type tool_id"),
  },
  thinking: valueFields("thinking signature"),
  redacted_thinking: valueFields("data"),
  compaction: { ...CACHED, ...valueFields("content signature encrypted_content") },
  server_tool_use: RECORD,
  web_search_tool_result: RECORD,
  web_fetch_tool_result: RECORD,
  tool_search_tool_result: RECORD,
  code_execution_tool_result: RECORD,
  bash_code_execution_tool_result: RECORD,
  text_editor_code_execution_tool_result: RECORD,
  advisor_tool_result: RECORD,
  mcp_tool_use: RECORD,
  mcp_tool_result: RECORD,
  fallback: RECORD,
  tool_addition: { ...CACHED, ...valueFields("name tool_name"), tool: TOOL, tools: TOOL },
  tool_removal: {
    ...CACHED,
    ...valueFields("name tool_name tool_names"),
    tool: valueFields("type name"),
  },
};
const INNER: AllowedContent = [
  null,
  { ...TYPES, search_result: { ...CACHED, ...CITED, ...valueFields("source title content") } },
];
const BLOCK: AllowedContent = [
  null,
  {
    ...TYPES,
    search_result: { ...CACHED, ...CITED, ...valueFields("source title"), content: INNER },
    tool_result: { ...CACHED, ...valueFields("tool_use_id is_error toolset_name"), content: INNER },
  },
];

const FORMAT: AllowedFields = { type: "plain", schema: "free" };
const EDIT: AllowedFields = {
  ...valueFields("type exclude_tools clear_tool_inputs instructions pause_after_compaction"),
  trigger: valueFields("type value"),
  keep: valueFields("type value"),
  clear_at_least: valueFields("type value"),
};

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  [
    "additional models, each checked against its own data policy",
    { fallbacks: valueFields("model") },
  ],
  ["conversation content", { system: BLOCK, messages: { role: "plain", content: BLOCK } }],
  ["the client's own tools, and hosted tools with a known data policy", { tools: TOOL }],
  [
    "parameters of a single response",
    {
      ...valueFields("max_tokens stop_sequences stream temperature top_p top_k"),
      thinking: valueFields("type budget_tokens display"),
      tool_choice: valueFields("type name disable_parallel_tool_use"),
      output_config: {
        effort: "plain",
        format: FORMAT,
        task_budget: valueFields("type total remaining"),
      },
      output_format: FORMAT,
    },
  ],
  [
    "processing priority and region, which store nothing",
    valueFields("service_tier speed inference_geo"),
  ],
  ["a prompt cache stores content; `strict` rejects it separately", CACHED],
  ["the user identifier, sent as a hash", { metadata: valueFields("user_id") }],
  [
    "parts of the conversation removed before the model reads it",
    { context_management: { edits: EDIT } },
  ],
  ["safety settings that Claude Code sends to its vendor", freeTextFields("safeguards")],
  ["API version names", valueFields("anthropic_beta anthropic_version betas")],
];

/**
 * Headers that may be sent, with their reviewed values: versions, and betas that change how a
 * request is read or answered. Two groups of betas are excluded. The first are betas whose feature
 * stores data: files, batches, code execution, skills, MCP connectors, agents, memory, and
 * profiles. The second are betas whose data retention no public page documents.
 *
 * Sources, read on 2026-11-28: the type `AnthropicBeta` of @anthropic-ai/sdk 1.12.0, and
 * platform.claude.com/docs/en/build-with-claude/api-and-data-retention. A test compares this list
 * with that type. Four values are not in the type. One is `advanced-tool-use`, from the docs on
 * tool use, whose hosted tools are reviewed as tools. The others are `claude-code`, `effort`, and
 * `fine-grained-tool-streaming`, which Claude Code sends.
 */
export const ZDR_ALLOWED_HEADERS: { readonly [header: string]: readonly string[] } = {
  "anthropic-version": ["2023-01-01", "2023-06-01"],
  "anthropic-dangerous-direct-browser-access": ["true"],
  "anthropic-beta": [
    "advanced-tool-use-2025-11-20",
    "claude-code-20250219",
    "computer-use-2024-10-22",
    "computer-use-2025-01-24",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "effort-2025-11-24",
    "extended-cache-ttl-2025-04-11",
    "fine-grained-tool-streaming-2025-05-14",
    "interleaved-thinking-2025-05-14",
    "model-context-window-exceeded-2025-08-26",
    "output-128k-2025-02-19",
    "pdfs-2024-09-25",
    "prompt-caching-2024-07-31",
    "structured-outputs-2025-11-13",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
  ],
};
