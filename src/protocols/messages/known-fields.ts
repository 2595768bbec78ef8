// Known members of a client's request below the top level.
import { shapeByName, valueFields, type KnownFields, type FieldShape } from "../unknown-fields.ts";
import { asText } from "../json-values.ts";

const SOURCES: KnownFields = {
  base64: valueFields("type media_type data"),
  url: valueFields("type url"),
  file: valueFields("type file_id"),
  text: valueFields("type media_type data"),
};
const SOURCE: FieldShape = (source) => shapeByName(SOURCES, source["type"]);

/** A block of an unknown type is opaque. It is sent whole or not at all. */
const BLOCK: FieldShape = (block) => shapeByName(BLOCKS, block["type"]);

const BLOCKS: KnownFields = {
  text: valueFields("type text cache_control citations"),
  image: { ...valueFields("type cache_control"), source: SOURCE },
  document: {
    ...valueFields("type cache_control title context"),
    source: (source) =>
      source["type"] === "content"
        ? { type: null, content: BLOCK }
        : shapeByName(SOURCES, source["type"]),
    citations: valueFields("enabled"),
  },
  search_result: {
    ...valueFields("type source title cache_control"),
    content: BLOCK,
    citations: valueFields("enabled"),
  },
  tool_reference: valueFields("type tool_name cache_control"),
  tool_use: {
    ...valueFields("type id name input cache_control toolset_name"),
    caller: valueFields("type"),
  },
  tool_result: {
    ...valueFields("type tool_use_id is_error cache_control toolset_name"),
    content: BLOCK,
  },
  thinking: valueFields("type thinking signature"),
  redacted_thinking: valueFields("type data"),
};

export const KNOWN_FIELDS: KnownFields = {
  messages: { role: null, content: BLOCK },
  system: BLOCK,
  // Members of a function tool that only this protocol has are kept in the tool itself. A tool with
  // a `type` is sent whole.
  tools: (tool) =>
    asText(tool["type"])?.startsWith("web_search_")
      ? {
          ...valueFields("type name max_uses allowed_domains blocked_domains cache_control strict"),
          user_location: valueFields("type city region country timezone"),
        }
      : null,
  tool_choice: (choice) =>
    ["auto", "any", "none", "tool"].includes(asText(choice["type"]) ?? "")
      ? valueFields("type name disable_parallel_tool_use")
      : null,
  thinking: valueFields("type budget_tokens display"),
  // Unknown members of `output_config` are sent with it.
  output_config: (config) =>
    Object.fromEntries(Object.keys(config).map((key) => [key, key === "format" ? FORMAT : null])),
  output_format: (format) => (format["type"] === "json_schema" ? valueFields("type schema") : null),
  cache_control: valueFields("type ttl"),
};

const FORMAT: FieldShape = (format) =>
  format["type"] === "json_schema" ? valueFields("type schema") : null;
