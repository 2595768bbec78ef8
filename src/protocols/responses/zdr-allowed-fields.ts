// Request fields that may be sent under `Service-ZDR`, reviewed against OpenAI's documentation and
// the requests of its SDKs and Codex.
import type { AllowedContent, FieldAllowlist, AllowedFields } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";

const MARK: AllowedFields = { prompt_cache_breakpoint: valueFields("mode ttl") };
const WORDS: AllowedFields = {
  ...MARK,
  ...valueFields("text"),
  ...freeTextFields("annotations logprobs"),
};

const PART: AllowedContent = [
  null,
  {
    input_text: WORDS,
    output_text: WORDS,
    text: WORDS,
    summary_text: WORDS,
    reasoning_text: WORDS,
    refusal: { ...MARK, ...valueFields("refusal") },
    input_image: { ...MARK, ...valueFields("image_url detail") },
    input_file: { ...MARK, ...valueFields("file_data file_url filename detail") },
    input_audio: { ...MARK, input_audio: valueFields("data format") },
  },
];

const GRAMMAR = valueFields("syntax definition");
const WHERE = valueFields("type city region country timezone");
const OWN_TOOL: AllowedFields = {
  ...valueFields("name description strict async defer_loading allowed_callers"),
  ...freeTextFields("parameters output_schema"),
  format: { ...valueFields("type syntax definition"), grammar: GRAMMAR },
};
const SEARCH: AllowedFields = {
  ...valueFields(
    "search_context_size external_web_access search_content_types return_token_budget",
  ),
  filters: valueFields("allowed_domains blocked_domains"),
  user_location: { ...WHERE, approximate: WHERE },
  image_settings: valueFields("max_results caption"),
};
const LOCAL: AllowedFields = valueFields("name description");

const SIMPLE: { readonly [type: string]: AllowedFields | "free" } = {
  function: OWN_TOOL,
  custom: OWN_TOOL,
  web_search: SEARCH,
  "web_search_*": SEARCH,
  web_search_preview: SEARCH,
  "web_search_preview_*": SEARCH,
  tool_search: { ...valueFields("execution description"), parameters: "free" },
  local_shell: LOCAL,
  apply_patch: LOCAL,
};
/**
 * Fields of a hosted tool's declaration that are allowed. Whether the tool may run is decided by
 * the data policy of the provider.
 */
const TOOL: AllowedContent = [
  null,
  { ...SIMPLE, namespace: { ...valueFields("name description"), tools: [null, SIMPLE] } },
];

const ITEM = valueFields("id status call_id name namespace");
const CALLER: AllowedFields = { caller: valueFields("type caller_id") };
/** The output of a hosted tool in the conversation is free text. */
const RECORD = "free";

const INPUT: AllowedContent = [
  "message",
  {
    message: { ...ITEM, ...valueFields("role phase"), content: PART },
    reasoning: { ...ITEM, ...valueFields("encrypted_content"), summary: PART, content: PART },
    function_call: { ...ITEM, ...CALLER, ...valueFields("arguments async") },
    function_call_output: { ...ITEM, ...CALLER, output: PART },
    custom_tool_call: { ...ITEM, ...CALLER, ...valueFields("input") },
    custom_tool_call_output: { ...ITEM, ...CALLER, output: PART },
    tool_search_call: { ...ITEM, ...valueFields("execution"), arguments: "free" },
    tool_search_output: { ...ITEM, ...valueFields("execution"), tools: TOOL },
    additional_tools: { ...ITEM, ...valueFields("role"), tools: TOOL },
    compaction: { ...ITEM, ...valueFields("encrypted_content") },
    compaction_trigger: ITEM,
    local_shell_call: RECORD,
    local_shell_call_output: RECORD,
    shell_call: RECORD,
    shell_call_output: RECORD,
    apply_patch_call: RECORD,
    apply_patch_call_output: RECORD,
    computer_call: RECORD,
    computer_call_output: RECORD,
    web_search_call: RECORD,
    file_search_call: RECORD,
    code_interpreter_call: RECORD,
    image_generation_call: RECORD,
    mcp_list_tools: RECORD,
    mcp_call: RECORD,
    mcp_approval_request: RECORD,
    program: RECORD,
    program_output: RECORD,
  },
];

const CHOICE: AllowedFields = valueFields("type name namespace");

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["conversation content", { ...valueFields("instructions"), input: INPUT }],
  ["the client's own tools, and hosted tools with a known data policy", { tools: TOOL }],
  [
    "parameters of a single response",
    {
      ...valueFields(
        "max_output_tokens max_tool_calls parallel_tool_calls stream temperature top_p top_k top_logprobs " +
          "presence_penalty frequency_penalty truncation include background",
      ),
      stream_options: valueFields("include_obfuscation"),
      tool_choice: { ...CHOICE, ...valueFields("mode"), tools: CHOICE },
      text: {
        ...valueFields("verbosity"),
        format: { ...valueFields("type name description strict"), schema: "free" },
      },
      reasoning: valueFields("effort summary generate_summary context mode"),
      thinking: valueFields("type"),
    },
  ],
  ["requests that nothing is stored; other values are rejected separately", valueFields("store")],
  [
    "a prompt cache stores content; `strict` rejects it separately",
    {
      ...valueFields("prompt_cache_key prompt_cache_retention"),
      prompt_cache_options: valueFields("mode ttl prewarm"),
    },
  ],
  ["the user identifier, sent as a hash", valueFields("user safety_identifier")],
  ["labels of stored responses; nothing is stored", freeTextFields("metadata client_metadata")],
  ["processing priority, which stores nothing", valueFields("service_tier")],
  [
    "parts of the conversation removed before the model reads it",
    { context_management: valueFields("type compact_threshold") },
  ],
  [
    "routers: choice among providers that are bound by the same data policy",
    {
      provider: valueFields(
        "order only ignore allow_fallbacks require_parameters sort quantizations data_collection zdr",
      ),
      // The data policy of each model in the list is checked separately.
      models: "plain",
    },
  ],
];
