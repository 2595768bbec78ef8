// What a client's body is known to say below the top.
import { among, plain, type KnownFields, type FieldShape } from "../strangers.ts";
import { text } from "../json.ts";

const SOURCES: KnownFields = {
  base64: plain("type media_type data"),
  url: plain("type url"),
  file: plain("type file_id"),
  text: plain("type media_type data"),
};
const SOURCE: FieldShape = (source) => among(SOURCES, source["type"]);

/** A block that is newer than us is opaque, and goes as a whole or not at all. */
const BLOCK: FieldShape = (block) => among(BLOCKS, block["type"]);

const BLOCKS: KnownFields = {
  text: plain("type text cache_control citations"),
  image: { ...plain("type cache_control"), source: SOURCE },
  document: {
    ...plain("type cache_control title context"),
    source: (source) =>
      source["type"] === "content"
        ? { type: null, content: BLOCK }
        : among(SOURCES, source["type"]),
    citations: plain("enabled"),
  },
  search_result: {
    ...plain("type source title cache_control"),
    content: BLOCK,
    citations: plain("enabled"),
  },
  tool_reference: plain("type tool_name cache_control"),
  tool_use: {
    ...plain("type id name input cache_control toolset_name"),
    caller: plain("type"),
  },
  tool_result: {
    ...plain("type tool_use_id is_error cache_control toolset_name"),
    content: BLOCK,
  },
  thinking: plain("type thinking signature"),
  redacted_thinking: plain("type data"),
};

export const KNOWN_INSIDE: KnownFields = {
  messages: { role: null, content: BLOCK },
  system: BLOCK,
  // What a function says beside what all know stands in the tool itself; what is typed goes as a whole.
  tools: (tool) =>
    text(tool["type"])?.startsWith("web_search_")
      ? {
          ...plain("type name max_uses allowed_domains blocked_domains cache_control strict"),
          user_location: plain("type city region country timezone"),
        }
      : null,
  tool_choice: (choice) =>
    ["auto", "any", "none", "tool"].includes(text(choice["type"]) ?? "")
      ? plain("type name disable_parallel_tool_use")
      : null,
  thinking: plain("type budget_tokens display"),
  // The configuration's own strangers ride with it.
  output_config: (config) =>
    Object.fromEntries(Object.keys(config).map((key) => [key, key === "format" ? FORMAT : null])),
  output_format: (format) => (format["type"] === "json_schema" ? plain("type schema") : null),
  cache_control: plain("type ttl"),
};

const FORMAT: FieldShape = (format) =>
  format["type"] === "json_schema" ? plain("type schema") : null;
