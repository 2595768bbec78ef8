// What of a request may leave under Service-ZDR: read in OpenAI's documentation and in that of its imitators, whose knobs
// steer one answer. What searches, keeps, routes or calls another service is not here.
import type { Inside, Review, Reviewed } from "../../plugin/index.ts";
import { free, plain } from "../look/index.ts";

const MARKS: Reviewed = {
  cache_control: plain("type ttl"),
  prompt_cache_breakpoint: plain("mode ttl"),
};
const ADDRESS = plain("url detail");

const PART: Inside = [
  null,
  {
    text: { ...MARKS, ...plain("text") },
    input_text: { ...MARKS, ...plain("text") },
    output_text: { ...MARKS, ...plain("text") },
    refusal: { ...MARKS, ...plain("refusal") },
    thinking: { ...MARKS, ...plain("signature closed"), thinking: plain("type text") },
    image_url: { ...MARKS, ...plain("detail"), image_url: ADDRESS },
    input_image: { ...MARKS, ...plain("detail"), image_url: ADDRESS },
    image: { ...MARKS, source: plain("type data url media_type") },
    input_audio: { ...MARKS, input_audio: plain("data format") },
    audio_url: { ...MARKS, audio_url: plain("url") },
    video_url: { ...MARKS, video_url: plain("url fps"), ...plain("fps") },
    file: { ...MARKS, file: plain("file_data filename") },
  },
];

const CALL: Reviewed = {
  ...plain("id type index"),
  ...free("extra_content"),
  function: plain("name arguments"),
  custom: plain("name input"),
};

const MESSAGE: Reviewed = {
  ...MARKS,
  ...plain("role name tool_call_id refusal reasoning reasoning_content prefix partial"),
  ...free("annotations extra_content"),
  content: PART,
  tool_calls: CALL,
  function_call: plain("name arguments"),
  audio: plain("data transcript expires_at"),
  images: { ...plain("type index"), image_url: ADDRESS },
  reasoning_details: plain("type format index id text summary data signature"),
  thinking_blocks: plain("type thinking signature data"),
};

const GRAMMAR = plain("syntax definition");
const FUNCTION: Reviewed = { ...plain("name description strict"), parameters: "free" };
const TOOL: Inside = [
  "function",
  {
    function: { ...MARKS, function: FUNCTION },
    custom: {
      ...MARKS,
      custom: {
        ...plain("name description"),
        format: { ...plain("type syntax definition"), grammar: GRAMMAR },
      },
    },
  },
];
const NAMED: Reviewed = {
  ...plain("type name"),
  function: plain("name"),
  custom: plain("name"),
};

export const REVIEWED: Review = [
  ["which model", plain("model")],
  ["the conversation itself", { messages: MESSAGE }],
  ["the client's own tools", { tools: TOOL, functions: FUNCTION }],
  [
    "steers one answer and is gone with it",
    {
      ...plain(
        "max_tokens max_completion_tokens n stop temperature top_p seed presence_penalty frequency_penalty " +
          "logprobs top_logprobs reasoning_effort verbosity parallel_tool_calls stream modalities",
      ),
      ...free("logit_bias"),
      stream_options: plain("include_usage include_obfuscation"),
      response_format: {
        ...plain("type"),
        schema: "free",
        json_schema: { ...plain("name description strict"), schema: "free" },
      },
      tool_choice: { ...NAMED, allowed_tools: { mode: "plain", tools: NAMED } },
      function_call: plain("name"),
      audio: plain("format voice"),
      prediction: { ...plain("type"), content: PART },
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
  ["labels of what would be kept, and nothing is", free("metadata")],
  ["how it is ranked, which keeps nothing", plain("service_tier")],
  [
    "imitators: how much to think, and how thoughts are shown",
    {
      ...plain(
        "enable_thinking thinking_budget include_reasoning reasoning_format reasoning_split preserve_thinking",
      ),
      thinking: plain("type budget_tokens clear_thinking keep"),
      reasoning: plain("effort max_tokens exclude enabled summary"),
      chat_template_kwargs: "free",
    },
  ],
  [
    "imitators: sampling",
    plain(
      "top_k top_a min_p repetition_penalty length_penalty best_of min_tokens ignore_eos stop_token_ids " +
        "skip_special_tokens include_stop_str_in_output random_seed",
    ),
  ],
  [
    "imitators: the form of the answer",
    {
      ...plain("guided_regex guided_choice guided_grammar tool_stream safe_prompt prompt_mode"),
      ...free("guided_json structured_outputs"),
    },
  ],
  [
    "routers: which of those behind them, all of whom the same promise binds",
    {
      provider: {
        ...plain(
          "order only ignore allow_fallbacks require_parameters sort quantizations data_collection zdr",
        ),
        max_price: plain("prompt completion request image"),
      },
      ...plain("route transforms"),
      // Each that is named there is asked for its own policy.
      models: "plain",
      usage: plain("include"),
    },
  ],
];
