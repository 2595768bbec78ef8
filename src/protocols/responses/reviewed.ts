// What of a request may leave under Service-ZDR: read in OpenAI's documentation, and in what its SDKs and Codex send.
import type { Inside, Review, Reviewed } from "../../plugin/index.ts";
import { free, plain } from "../look/index.ts";

const MARK: Reviewed = { prompt_cache_breakpoint: plain("mode ttl") };
const WORDS: Reviewed = { ...MARK, ...plain("text"), ...free("annotations logprobs") };

const PART: Inside = [
  null,
  {
    input_text: WORDS,
    output_text: WORDS,
    text: WORDS,
    summary_text: WORDS,
    reasoning_text: WORDS,
    refusal: { ...MARK, ...plain("refusal") },
    input_image: { ...MARK, ...plain("image_url detail") },
    input_file: { ...MARK, ...plain("file_data file_url filename detail") },
    input_audio: { ...MARK, input_audio: plain("data format") },
  },
];

const GRAMMAR = plain("syntax definition");
const WHERE = plain("type city region country timezone");
const OWN_TOOL: Reviewed = {
  ...plain("name description strict async defer_loading allowed_callers"),
  ...free("parameters output_schema"),
  format: { ...plain("type syntax definition"), grammar: GRAMMAR },
};
const SEARCH: Reviewed = {
  ...plain("search_context_size external_web_access search_content_types return_token_budget"),
  filters: plain("allowed_domains blocked_domains"),
  user_location: { ...WHERE, approximate: WHERE },
  image_settings: plain("max_results caption"),
};
const LOCAL: Reviewed = plain("name description");

const SIMPLE: { readonly [type: string]: Reviewed | "free" } = {
  function: OWN_TOOL,
  custom: OWN_TOOL,
  web_search: SEARCH,
  "web_search_*": SEARCH,
  web_search_preview: SEARCH,
  "web_search_preview_*": SEARCH,
  tool_search: { ...plain("execution description"), parameters: "free" },
  local_shell: LOCAL,
  apply_patch: LOCAL,
};
/** What runs elsewhere is told apart by the policies of providers: here stands what it may say. */
const TOOL: Inside = [
  null,
  { ...SIMPLE, namespace: { ...plain("name description"), tools: [null, SIMPLE] } },
];

const ITEM = plain("id status call_id name namespace");
const CALLER: Reviewed = { caller: plain("type caller_id") };
/** What hosted tools did stands in the conversation as its words. */
const RECORD = "free";

const INPUT: Inside = [
  "message",
  {
    message: { ...ITEM, ...plain("role phase"), content: PART },
    reasoning: { ...ITEM, ...plain("encrypted_content"), summary: PART, content: PART },
    function_call: { ...ITEM, ...CALLER, ...plain("arguments async") },
    function_call_output: { ...ITEM, ...CALLER, output: PART },
    custom_tool_call: { ...ITEM, ...CALLER, ...plain("input") },
    custom_tool_call_output: { ...ITEM, ...CALLER, output: PART },
    tool_search_call: { ...ITEM, ...plain("execution"), arguments: "free" },
    tool_search_output: { ...ITEM, ...plain("execution"), tools: TOOL },
    additional_tools: { ...ITEM, ...plain("role"), tools: TOOL },
    compaction: { ...ITEM, ...plain("encrypted_content") },
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

const CHOICE: Reviewed = plain("type name namespace");

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["the conversation itself", { ...plain("instructions"), input: INPUT }],
  ["the client's own tools, and hosted ones whose policy is known", { tools: TOOL }],
  [
    "steers one answer and is gone with it",
    {
      ...plain(
        "max_output_tokens max_tool_calls parallel_tool_calls stream temperature top_p top_k top_logprobs " +
          "presence_penalty frequency_penalty truncation include background",
      ),
      stream_options: plain("include_obfuscation"),
      tool_choice: { ...CHOICE, ...plain("mode"), tools: CHOICE },
      text: {
        ...plain("verbosity"),
        format: { ...plain("type name description strict"), schema: "free" },
      },
      reasoning: plain("effort summary generate_summary context mode"),
      thinking: plain("type"),
    },
  ],
  ["asks that nothing be kept; the opposite is refused by itself", plain("store")],
  [
    "a prompt cache is memory, which `strict` rules out by itself",
    {
      ...plain("prompt_cache_key prompt_cache_retention"),
      prompt_cache_options: plain("mode ttl prewarm"),
    },
  ],
  ["the user: told hashed", plain("user safety_identifier")],
  ["labels of what would be kept, and nothing is", free("metadata client_metadata")],
  ["how it is ranked, which keeps nothing", plain("service_tier")],
  [
    "what is left out of the conversation before the model reads it",
    { context_management: plain("type compact_threshold") },
  ],
  [
    "routers: which of those behind them, all of whom the same promise binds",
    {
      provider: plain(
        "order only ignore allow_fallbacks require_parameters sort quantizations data_collection zdr",
      ),
      // Each that is named there is asked for its own policy.
      models: "plain",
    },
  ],
];
