import type { Feature } from "../../model/facts.ts";
import type { Body, Json } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { hostedIn, spending } from "../spending.ts";
import { isObject, num } from "./words.ts";

/** One look over the body, on both lanes: what a model must be able to do, and what upstream would keep. */
export function survey(body: Body): Survey {
  const features = new Set<Feature>();
  if (body["stream"] === true) features.add("stream");
  if (body["system"] !== undefined && body["system"] !== "") features.add("system");
  for (const tool of list(body["tools"])) {
    features.add(ofTool(tool));
    // Since 2026 the search filters what it found by running code, and that keeps things.
    if (isObject(tool) && DYNAMIC.test(String(tool["type"])))
      features.add("hosted.web_search_dynamic");
  }
  for (const hosted of hostedIn(body)) features.add(hosted);
  const thinking = body["thinking"];
  if (isObject(thinking) && thinking["type"] !== "disabled") features.add("reasoning");
  const config = body["output_config"];
  if (isObject(config) && config["format"]) features.add("json_schema");
  if (body["output_format"]) features.add("json_schema");
  if (body["thread"]) features.add("state.thread");
  if (body["container"]) features.add("state.container");
  if (list(body["mcp_servers"]).length > 0) features.add("hosted.mcp");
  if (body["cache_control"]) features.add(ofCache(body["cache_control"]));
  const media = { count: 0, bytes: 0 };
  blocks(body["system"], features, media);
  for (const message of list(body["messages"]))
    if (isObject(message)) blocks(message["content"], features, media);
  return {
    features: [...features],
    ...spending(body, { output: num(body["max_tokens"]) }),
    ...(media.count > 0 && { media }),
  };
}

const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? value : []);

/** `web_search_20260209` is the web search; a tool without a type is the client's own. */
function ofTool(tool: Json): Feature {
  const type = isObject(tool) ? tool["type"] : undefined;
  if (typeof type !== "string" || type === "custom") return "tools";
  const name = type.replace(/_\d{8}$/, "");
  return CLIENTS.has(name) ? "tools" : `hosted.${name}`;
}

const DYNAMIC = /^web_search_20(?:2[6-9]|[3-9]\d)\d{4}$/;

/** Typed by the protocol, run by the client. */
const CLIENTS: ReadonlySet<string> = new Set([
  "bash",
  "text_editor",
  "memory",
  "computer",
  "computer_toolset",
  "browser_toolset",
]);

const ofCache = (cache: unknown): Feature =>
  `cache.${isObject(cache) && typeof cache["ttl"] === "string" ? cache["ttl"] : "5m"}`;

/** Blocks whose bytes are what is read. Of what is newer than us, only upstream knows how much there is to read. */
const WORDS: ReadonlySet<string> = new Set([
  "text",
  "thinking",
  "redacted_thinking",
  "tool_use",
  "tool_result",
  "tool_reference",
  "search_result",
  "document",
  "server_tool_use",
  "web_search_tool_result",
  "mcp_tool_use",
  "mcp_tool_result",
]);

function blocks(
  content: unknown,
  features: Set<Feature>,
  media: { count: number; bytes: number },
): void {
  if (!Array.isArray(content)) return;
  for (const block of content as readonly Json[]) {
    if (!isObject(block)) continue;
    if (block["cache_control"]) features.add(ofCache(block["cache_control"]));
    switch (block["type"]) {
      case "image":
        features.add("vision");
        break;
      case "document":
        features.add("documents");
        break;
      case "container_upload":
        features.add("state.file");
        break;
      case "tool_result":
        blocks(block["content"], features, media);
    }
    const source = block["source"];
    const binary = isObject(source) && source["type"] !== "text" && source["type"] !== "content";
    if (binary) {
      media.count++;
      media.bytes += typeof source["data"] === "string" ? source["data"].length : 0;
    } else if (!WORDS.has(String(block["type"]))) media.count++;
    if (isObject(source)) blocks(source["content"], features, media);
    if (isObject(source) && source["type"] === "file") features.add("state.file");
  }
}
