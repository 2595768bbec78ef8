// Known fields of a request body below the top level, in this protocol and in the dialects of its
// compatible APIs.
import { shapeByName, valueFields, type KnownFields, type FieldShape } from "../unknown-fields.ts";
import { asObject, asText } from "../json-values.ts";

const MARKS: KnownFields = {
  ...valueFields("type cache_control"),
  prompt_cache_breakpoint: valueFields("mode ttl"),
};
const ADDRESS = valueFields("url detail");

const PARTS: KnownFields = {
  text: { ...MARKS, text: null },
  input_text: { ...MARKS, text: null },
  output_text: { ...MARKS, text: null },
  refusal: { ...MARKS, refusal: null },
  thinking: { ...MARKS, thinking: valueFields("type text") },
  image_url: { ...MARKS, image_url: ADDRESS, detail: null },
  input_image: { ...MARKS, image_url: ADDRESS, detail: null },
  image: { ...MARKS, source: valueFields("type data url media_type") },
  input_audio: { ...MARKS, input_audio: valueFields("data format") },
  video_url: { ...MARKS, video_url: valueFields("url") },
  audio_url: { ...MARKS, audio_url: valueFields("url") },
  file: { ...MARKS, file: valueFields("file_data file_id filename") },
};

/** An unknown part type is opaque: it is sent as a whole or not at all. */
const PART: FieldShape = (part) => shapeByName(PARTS, asText(part["type"]));

const FUNCTION = valueFields("name description parameters strict");
const FORMAT = {
  ...valueFields("type syntax definition"),
  grammar: valueFields("syntax definition"),
};

const TOOL: FieldShape = (tool) =>
  asObject(tool["function"]) || asObject(tool["custom"])
    ? {
        ...valueFields("type cache_control"),
        function: FUNCTION,
        custom: { ...valueFields("name description"), format: FORMAT },
      }
    : null;

const CALL: KnownFields = {
  ...valueFields("id type index extra_content"),
  function: valueFields("name arguments"),
  custom: valueFields("name input"),
};

const CITED = "url_citation";
const CITATION = valueFields("url title start_index end_index");

const ANY: KnownFields = { ...valueFields("role name"), content: PART };
const MESSAGES: KnownFields = {
  system: ANY,
  developer: ANY,
  user: ANY,
  tool: { ...ANY, tool_call_id: null },
  function: ANY,
  assistant: {
    ...ANY,
    ...valueFields("refusal extra_content reasoning reasoning_content"),
    tool_calls: (call) => (asObject(call["function"]) || asObject(call["custom"]) ? CALL : null),
    function_call: valueFields("name arguments"),
    annotations: (note) => {
      const type = asText(note["type"]) ?? "";
      return asObject(note[type]) ? { type: null, [type]: type === CITED ? CITATION : null } : null;
    },
    audio: valueFields("id data transcript expires_at"),
    images: { ...valueFields("type index"), image_url: ADDRESS },
    reasoning_details: valueFields("type format index id text summary data signature"),
    thinking_blocks: valueFields("type thinking signature data"),
  },
};

const NAMED: KnownFields = {
  ...valueFields("type name"),
  function: valueFields("name"),
  custom: valueFields("name"),
};

export const KNOWN_FIELDS: KnownFields = {
  messages: (message) => shapeByName(MESSAGES, asText(message["role"])),
  tools: TOOL,
  functions: FUNCTION,
  function_call: valueFields("name"),
  tool_choice: { ...NAMED, allowed_tools: { mode: null, tools: NAMED } },
  response_format: (format) =>
    ["text", "json_object", "json_schema"].includes(asText(format["type"]) ?? "")
      ? { type: null, json_schema: valueFields("name schema strict description") }
      : null,
  stream_options: valueFields("include_usage include_obfuscation"),
  web_search_options: {
    search_context_size: null,
    user_location: { type: null, approximate: valueFields("country region city timezone") },
  },
  thinking: valueFields("type budget_tokens"),
  reasoning: valueFields("effort max_tokens exclude enabled summary"),
};
