import type { Feature } from "../../model/facts.ts";
import type { Body, Json } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { referencedFeatures, hostedToolFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { isObject, asList, asNumber } from "../json-values.ts";

/**
 * Analyzes a request in both modes: the features that the model needs and the state that the
 * provider would store.
 */
export function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const features = referencedFeatures(named);
  if (body["stream"] === true) features.add("stream");
  if (body["system"] !== undefined && body["system"] !== "") features.add("system");
  if (asList(body["tools"]).some((tool) => isObject(tool) && hostedToolFeatures(tool) === null))
    features.add("tools");
  const thinking = body["thinking"];
  if (isObject(thinking) && thinking["type"] !== "disabled") features.add("reasoning");
  const config = body["output_config"];
  if (isObject(config) && config["format"]) features.add("json_schema");
  if (body["output_format"]) features.add("json_schema");
  const media = { count: 0, bytes: 0 };
  blocks(body["system"], features, media);
  for (const message of asList(body["messages"]))
    if (isObject(message)) blocks(message["content"], features, media);
  return {
    features: [...features],
    references: named,
    ...analyzeCost(body, named, {
      maxOutput: asNumber(body["max_tokens"]),
      zeroOutputField: "max_tokens",
      toolsHaveMaxUses: true,
    }),
    ...(media.count > 0 && { media }),
  };
}

/**
 * Block types whose size in bytes indicates the number of input tokens. The input of other block
 * types cannot be estimated from their size.
 */
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
    switch (block["type"]) {
      case "image":
        features.add("vision");
        break;
      case "document":
        features.add("documents");
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
  }
}
