// What a client's body is known to say below the top, in this protocol and in the dialects of its imitators.
import { among, plain, type KnownFields, type FieldShape } from "../strangers.ts";
import { object, text } from "../json.ts";

const MARKS: KnownFields = {
  ...plain("type cache_control"),
  prompt_cache_breakpoint: plain("mode ttl"),
};
const ADDRESS = plain("url detail");

const PARTS: KnownFields = {
  text: { ...MARKS, text: null },
  input_text: { ...MARKS, text: null },
  output_text: { ...MARKS, text: null },
  refusal: { ...MARKS, refusal: null },
  thinking: { ...MARKS, thinking: plain("type text") },
  image_url: { ...MARKS, image_url: ADDRESS, detail: null },
  input_image: { ...MARKS, image_url: ADDRESS, detail: null },
  image: { ...MARKS, source: plain("type data url media_type") },
  input_audio: { ...MARKS, input_audio: plain("data format") },
  video_url: { ...MARKS, video_url: plain("url") },
  audio_url: { ...MARKS, audio_url: plain("url") },
  file: { ...MARKS, file: plain("file_data file_id filename") },
};

/** A part that is newer than us is opaque, and goes as a whole or not at all. */
const PART: FieldShape = (part) => among(PARTS, text(part["type"]));

const FUNCTION = plain("name description parameters strict");
const FORMAT = { ...plain("type syntax definition"), grammar: plain("syntax definition") };

const TOOL: FieldShape = (tool) =>
  object(tool["function"]) || object(tool["custom"])
    ? {
        ...plain("type cache_control"),
        function: FUNCTION,
        custom: { ...plain("name description"), format: FORMAT },
      }
    : null;

const CALL: KnownFields = {
  ...plain("id type index extra_content"),
  function: plain("name arguments"),
  custom: plain("name input"),
};

const CITED = "url_citation";
const CITATION = plain("url title start_index end_index");

const ANY: KnownFields = { ...plain("role name"), content: PART };
const MESSAGES: KnownFields = {
  system: ANY,
  developer: ANY,
  user: ANY,
  tool: { ...ANY, tool_call_id: null },
  function: ANY,
  assistant: {
    ...ANY,
    ...plain("refusal extra_content reasoning reasoning_content"),
    tool_calls: (call) => (object(call["function"]) || object(call["custom"]) ? CALL : null),
    function_call: plain("name arguments"),
    annotations: (note) => {
      const type = text(note["type"]) ?? "";
      return object(note[type]) ? { type: null, [type]: type === CITED ? CITATION : null } : null;
    },
    audio: plain("id data transcript expires_at"),
    images: { ...plain("type index"), image_url: ADDRESS },
    reasoning_details: plain("type format index id text summary data signature"),
    thinking_blocks: plain("type thinking signature data"),
  },
};

const NAMED: KnownFields = {
  ...plain("type name"),
  function: plain("name"),
  custom: plain("name"),
};

export const KNOWN_INSIDE: KnownFields = {
  messages: (message) => among(MESSAGES, text(message["role"])),
  tools: TOOL,
  functions: FUNCTION,
  function_call: plain("name"),
  tool_choice: { ...NAMED, allowed_tools: { mode: null, tools: NAMED } },
  response_format: (format) =>
    ["text", "json_object", "json_schema"].includes(text(format["type"]) ?? "")
      ? { type: null, json_schema: plain("name schema strict description") }
      : null,
  stream_options: plain("include_usage include_obfuscation"),
  web_search_options: {
    search_context_size: null,
    user_location: { type: null, approximate: plain("country region city timezone") },
  },
  thinking: plain("type budget_tokens"),
  reasoning: plain("effort max_tokens exclude enabled summary"),
};
