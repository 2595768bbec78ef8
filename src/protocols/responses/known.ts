// What a client's body is known to say below the top.
import { among, plain, type KnownFields, type FieldShape } from "../strangers.ts";
import { text } from "../json.ts";

const MARKED: KnownFields = { type: null, prompt_cache_breakpoint: plain("mode ttl") };
const WORDS: KnownFields = {
  ...MARKED,
  ...plain("text logprobs"),
  annotations: (note) =>
    note["type"] === "url_citation" ? plain("type url title start_index end_index") : null,
};
const PARTS: KnownFields = {
  input_text: WORDS,
  output_text: WORDS,
  text: WORDS,
  refusal: { ...MARKED, refusal: null },
  input_image: { ...MARKED, ...plain("image_url file_id detail") },
  input_file: { ...MARKED, ...plain("file_data file_url file_id filename detail") },
  input_audio: { ...MARKED, input_audio: plain("data format") },
};

/** A part or an item that is newer than us is opaque, and goes as a whole or not at all. */
const PART: FieldShape = (part) => among(PARTS, text(part["type"]));

const ITEM = plain("type id status");
const CALL: KnownFields = { ...ITEM, ...plain("call_id name namespace") };
// A result that is an object is told as the JSON text it is.
const RESULT: KnownFields = {
  ...ITEM,
  ...plain("call_id name"),
  output: (one) => (text(one["type"]) === undefined ? null : among(PARTS, text(one["type"]))),
};
const MESSAGE: KnownFields = { ...ITEM, ...plain("role phase"), content: PART };
const ITEMS: KnownFields = {
  message: MESSAGE,
  reasoning: {
    ...ITEM,
    encrypted_content: null,
    summary: plain("type text"),
    content: plain("type text"),
  },
  function_call: { ...CALL, arguments: null },
  custom_tool_call: { ...CALL, input: null },
  function_call_output: RESULT,
  custom_tool_call_output: RESULT,
};

const TOOLS: KnownFields = {
  function: plain("type name description parameters strict"),
  custom: {
    ...plain("type name description"),
    format: { ...plain("type syntax definition"), grammar: plain("syntax definition") },
  },
};
const INNER: FieldShape = (tool) => among(TOOLS, text(tool["type"]));

const NAMED = plain("type name namespace server_label");

export const KNOWN_INSIDE: KnownFields = {
  input: (item) =>
    item["type"] === undefined && item["role"] !== undefined
      ? MESSAGE
      : among(ITEMS, text(item["type"])),
  // A search of the web is told of as a whole wherever it goes.
  tools: (tool) => {
    const type = text(tool["type"]) ?? "";
    if (type === "namespace") return { ...plain("type name description"), tools: INNER };
    return among(TOOLS, type);
  },
  tool_choice: (choice) =>
    choice["type"] === "mcp" ? null : { ...NAMED, mode: null, tools: NAMED },
  text: (words) =>
    // The member's own strangers ride with it.
    Object.fromEntries(Object.keys(words).map((key) => [key, key === "format" ? FORMAT : null])),
  conversation: plain("id"),
  stream_options: plain("include_obfuscation"),
};

const FORMAT: FieldShape = (format) =>
  ["text", "json_object", "json_schema"].includes(text(format["type"]) ?? "")
    ? plain("type name schema strict description")
    : null;
