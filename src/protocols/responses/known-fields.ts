// Known members of a client's request below the top level.
import { shapeByName, valueFields, type KnownFields, type FieldShape } from "../unknown-fields.ts";
import { asText } from "../json-values.ts";

const MARKED: KnownFields = { type: null, prompt_cache_breakpoint: valueFields("mode ttl") };
const WORDS: KnownFields = {
  ...MARKED,
  ...valueFields("text logprobs"),
  annotations: (note) =>
    note["type"] === "url_citation" ? valueFields("type url title start_index end_index") : null,
};
const PARTS: KnownFields = {
  input_text: WORDS,
  output_text: WORDS,
  text: WORDS,
  refusal: { ...MARKED, refusal: null },
  input_image: { ...MARKED, ...valueFields("image_url file_id detail") },
  input_file: { ...MARKED, ...valueFields("file_data file_url file_id filename detail") },
  input_audio: { ...MARKED, input_audio: valueFields("data format") },
};

/** A part or item of an unknown type is opaque. It is sent whole or not at all. */
const PART: FieldShape = (part) => shapeByName(PARTS, asText(part["type"]));

const ITEM = valueFields("type id status");
const CALL: KnownFields = { ...ITEM, ...valueFields("call_id name namespace") };
// A result that is an object is sent as JSON text.
const RESULT: KnownFields = {
  ...ITEM,
  ...valueFields("call_id name"),
  output: (one) =>
    asText(one["type"]) === undefined ? null : shapeByName(PARTS, asText(one["type"])),
};
const MESSAGE: KnownFields = { ...ITEM, ...valueFields("role phase"), content: PART };
const ITEMS: KnownFields = {
  message: MESSAGE,
  reasoning: {
    ...ITEM,
    encrypted_content: null,
    summary: valueFields("type text"),
    content: valueFields("type text"),
  },
  function_call: { ...CALL, arguments: null },
  custom_tool_call: { ...CALL, input: null },
  function_call_output: RESULT,
  custom_tool_call_output: RESULT,
};

const TOOLS: KnownFields = {
  function: valueFields("type name description parameters strict"),
  custom: {
    ...valueFields("type name description"),
    format: { ...valueFields("type syntax definition"), grammar: valueFields("syntax definition") },
  },
};
const INNER: FieldShape = (tool) => shapeByName(TOOLS, asText(tool["type"]));

const NAMED = valueFields("type name namespace server_label");

export const KNOWN_FIELDS: KnownFields = {
  input: (item) =>
    item["type"] === undefined && item["role"] !== undefined
      ? MESSAGE
      : shapeByName(ITEMS, asText(item["type"])),
  // Web search is always reported as a whole.
  tools: (tool) => {
    const type = asText(tool["type"]) ?? "";
    if (type === "namespace") return { ...valueFields("type name description"), tools: INNER };
    return shapeByName(TOOLS, type);
  },
  tool_choice: (choice) =>
    choice["type"] === "mcp" ? null : { ...NAMED, mode: null, tools: NAMED },
  text: (words) =>
    // Unknown members of `text` are sent with it.
    Object.fromEntries(Object.keys(words).map((key) => [key, key === "format" ? FORMAT : null])),
  conversation: valueFields("id"),
  stream_options: valueFields("include_obfuscation"),
};

const FORMAT: FieldShape = (format) =>
  ["text", "json_object", "json_schema"].includes(asText(format["type"]) ?? "")
    ? valueFields("type name schema strict description")
    : null;
