// Lists the request fields that may be sent under zero data retention. They were taken from the
// documentation of OpenAI and of compatible APIs, whose additional fields affect one response.
// Fields that search, store, route, or call another service are not listed.
import type { AllowedContent, FieldAllowlist, AllowedFields } from "../../plugin/index.ts";
import { freeTextFields, valueFields } from "../references/index.ts";

const MARKS: AllowedFields = {
  cache_control: valueFields("type ttl"),
  prompt_cache_breakpoint: valueFields("mode ttl"),
};
const ADDRESS = valueFields("url detail");

const PART: AllowedContent = [
  null,
  {
    text: { ...MARKS, ...valueFields("text") },
    input_text: { ...MARKS, ...valueFields("text") },
    output_text: { ...MARKS, ...valueFields("text") },
    refusal: { ...MARKS, ...valueFields("refusal") },
    thinking: { ...MARKS, ...valueFields("signature closed"), thinking: valueFields("type text") },
    image_url: { ...MARKS, ...valueFields("detail"), image_url: ADDRESS },
    input_image: { ...MARKS, ...valueFields("detail"), image_url: ADDRESS },
    image: { ...MARKS, source: valueFields("type data url media_type") },
    input_audio: { ...MARKS, input_audio: valueFields("data format") },
    audio_url: { ...MARKS, audio_url: valueFields("url") },
    video_url: { ...MARKS, video_url: valueFields("url fps"), ...valueFields("fps") },
    file: { ...MARKS, file: valueFields("file_data filename") },
  },
];

const CALL: AllowedFields = {
  ...valueFields("id type index"),
  ...freeTextFields("extra_content"),
  function: valueFields("name arguments"),
  custom: valueFields("name input"),
};

const MESSAGE: AllowedFields = {
  ...MARKS,
  ...valueFields("role name tool_call_id refusal reasoning reasoning_content prefix partial"),
  ...freeTextFields("annotations extra_content"),
  content: PART,
  tool_calls: CALL,
  function_call: valueFields("name arguments"),
  audio: valueFields("data transcript expires_at"),
  images: { ...valueFields("type index"), image_url: ADDRESS },
  reasoning_details: valueFields("type format index id text summary data signature"),
  thinking_blocks: valueFields("type thinking signature data"),
};

const GRAMMAR = valueFields("syntax definition");
const FUNCTION: AllowedFields = { ...valueFields("name description strict"), parameters: "free" };
const TOOL: AllowedContent = [
  "function",
  {
    function: { ...MARKS, function: FUNCTION },
    custom: {
      ...MARKS,
      custom: {
        ...valueFields("name description"),
        format: { ...valueFields("type syntax definition"), grammar: GRAMMAR },
      },
    },
  },
];
const NAMED: AllowedFields = {
  ...valueFields("type name"),
  function: valueFields("name"),
  custom: valueFields("name"),
};

export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["conversation content", { messages: MESSAGE }],
  ["the client's own tools", { tools: TOOL, functions: FUNCTION }],
  [
    "parameters of a single response",
    {
      ...valueFields(
        "max_tokens max_completion_tokens n stop temperature top_p seed presence_penalty frequency_penalty " +
          "logprobs top_logprobs reasoning_effort verbosity parallel_tool_calls stream modalities",
      ),
      ...freeTextFields("logit_bias"),
      stream_options: valueFields("include_usage include_obfuscation"),
      response_format: {
        ...valueFields("type"),
        schema: "free",
        json_schema: { ...valueFields("name description strict"), schema: "free" },
      },
      tool_choice: { ...NAMED, allowed_tools: { mode: "plain", tools: NAMED } },
      function_call: valueFields("name"),
      audio: valueFields("format voice"),
      prediction: { ...valueFields("type"), content: PART },
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
  ["labels of stored responses; nothing is stored", freeTextFields("metadata")],
  ["processing priority, which stores nothing", valueFields("service_tier")],
  [
    "compatible servers: amount and format of reasoning",
    {
      ...valueFields(
        "enable_thinking thinking_budget include_reasoning reasoning_format reasoning_split preserve_thinking",
      ),
      thinking: valueFields("type budget_tokens clear_thinking keep"),
      reasoning: valueFields("effort max_tokens exclude enabled summary"),
      chat_template_kwargs: "free",
    },
  ],
  [
    "imitators: sampling",
    valueFields(
      "top_k top_a min_p repetition_penalty length_penalty best_of min_tokens ignore_eos stop_token_ids " +
        "skip_special_tokens include_stop_str_in_output random_seed",
    ),
  ],
  [
    "compatible servers: response format",
    {
      ...valueFields(
        "guided_regex guided_choice guided_grammar tool_stream safe_prompt prompt_mode",
      ),
      ...freeTextFields("guided_json structured_outputs"),
    },
  ],
  [
    "routers: choice among providers that are bound by the same data policy",
    {
      provider: {
        ...valueFields(
          "order only ignore allow_fallbacks require_parameters sort quantizations data_collection zdr",
        ),
        max_price: valueFields("prompt completion request image"),
      },
      ...valueFields("route transforms"),
      // Each model named here is checked against its own data policy.
      models: "plain",
      usage: valueFields("include"),
    },
  ],
];
