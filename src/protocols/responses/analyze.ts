import { fail } from "../../model/error.ts";
import type { Body, Feature, Json, JsonObject, RequestFacts } from "../../plugin/index.ts";
import { referencedFeatures, hostedToolFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { asList, asNumber, asObject, asText } from "../json-values.ts";

/**
 * Analyzes a request in both modes: the features that the model needs and the state that the
 * provider would store.
 */
export function analyze(body: Body): RequestFacts {
  const fields = body as JsonObject;
  const named = findReferences(body);
  const features = referencedFeatures(named);
  if (fields["stream"] === true) features.add("stream");
  const tools = asList(fields["tools"]);
  tools.forEach((tool, i) => toolFeature(tool, i, features));
  if (fields["parallel_tool_calls"] === true && features.has("tools"))
    features.add("parallel_tools");
  const instructions = asText(fields["instructions"]);
  if (instructions) features.add("system");
  const media = { count: 0, bytes: 0 };
  for (const raw of asList(fields["input"])) itemFeatures(asObject(raw), features, media);
  const format = asObject(asObject(fields["text"])?.["format"])?.["type"];
  if (format === "json_object") features.add("json");
  if (format === "json_schema") features.add("json_schema");
  const effort = asObject(fields["reasoning"])?.["effort"];
  if (typeof effort === "string" && effort !== "none") features.add("reasoning");
  if (asNumber(fields["top_logprobs"])) features.add("logprobs");
  return {
    features: [...features],
    references: named,
    ...analyzeCost(fields, named, {
      maxOutput: asNumber(fields["max_output_tokens"]),
      maxRunsField: "max_tool_calls",
    }),
    ...(media.count > 0 && { media }),
  };
}

/**
 * Adds the feature of a tool. An unknown type counts as hosted, and translated mode reports it by
 * name.
 */
function toolFeature(raw: Json, i: number, features: Set<Feature>): void {
  const tool = asObject(raw);
  if (!tool || asText(tool["type"]) === undefined)
    return fail("invalid", `tools[${i}] must be an object with a type.`, {
      param: `tools[${i}].type`,
      code: "invalid_type",
    });
  if (hostedToolFeatures(tool) === null) features.add("tools");
}

/** Content part types whose size in bytes indicates the number of input tokens. */
const TEXT_PARTS: ReadonlySet<string> = new Set([
  "input_text",
  "output_text",
  "text",
  "refusal",
  "reasoning_text",
  "summary_text",
]);

/**
 * Item types whose size in bytes indicates the number of input tokens. For all other and unknown
 * types, only the provider can determine the amount of input.
 */
const TEXT_ITEMS: ReadonlySet<string> = new Set([
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "local_shell_call",
  "local_shell_call_output",
  "shell_call",
  "shell_call_output",
  "apply_patch_call",
  "apply_patch_call_output",
  "web_search_call",
  "additional_tools",
  "tool_search_call",
  "tool_search_output",
  "agent_message",
]);

function itemFeatures(
  item: JsonObject | undefined,
  features: Set<Feature>,
  media: { count: number; bytes: number },
): void {
  if (!item) return;
  if (item["role"] === "system" || item["role"] === "developer") features.add("system");
  if (!TEXT_ITEMS.has(asText(item["type"]) ?? "message")) media.count++;
  for (const key of ["content", "output"])
    for (const part of asList(item[key])) {
      const type = asText(asObject(part)?.["type"]) ?? "";
      if (type === "input_image") features.add("vision");
      else if (type === "input_file") features.add("documents");
      else if (type === "input_audio") features.add("audio");
      else if (TEXT_PARTS.has(type)) continue;
      media.count++;
      for (const where of ["image_url", "file_data", "data"])
        media.bytes += asText(asObject(part)?.[where])?.length ?? 0;
    }
}
