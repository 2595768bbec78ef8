import { fail } from "../../model/error.ts";
import type { Body, Feature, Json, JsonObject, Survey } from "../../plugin/index.ts";
import { featuresOf, hostedBy, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { list, number, object, text } from "../json.ts";

/** One look, both lanes: what the request needs of a model, and what it would have an upstream keep. */
export function survey(body: Body): Survey {
  const fields = body as JsonObject;
  const named = look(body);
  const features = featuresOf(named);
  if (fields["stream"] === true) features.add("stream");
  const tools = list(fields["tools"]);
  tools.forEach((tool, i) => toolFeature(tool, i, features));
  if (fields["parallel_tool_calls"] === true && features.has("tools"))
    features.add("parallel_tools");
  const instructions = text(fields["instructions"]);
  if (instructions) features.add("system");
  const media = { count: 0, bytes: 0 };
  for (const raw of list(fields["input"])) itemFeatures(object(raw), features, media);
  const format = object(object(fields["text"])?.["format"])?.["type"];
  if (format === "json_object") features.add("json");
  if (format === "json_schema") features.add("json_schema");
  const effort = object(fields["reasoning"])?.["effort"];
  if (typeof effort === "string" && effort !== "none") features.add("reasoning");
  if (number(fields["top_logprobs"])) features.add("logprobs");
  return {
    features: [...features],
    named,
    ...spending(fields, named, {
      output: number(fields["max_output_tokens"]),
      runs: "max_tool_calls",
    }),
    ...(media.count > 0 && { media }),
  };
}

/** A type that is newer than us is taken for hosted; on the translated lane it is named. */
function toolFeature(raw: Json, i: number, features: Set<Feature>): void {
  const tool = object(raw);
  if (!tool || text(tool["type"]) === undefined)
    return fail("invalid", `tools[${i}] must be an object with a type.`, {
      param: `tools[${i}].type`,
      code: "invalid_type",
    });
  if (hostedBy(tool) === null) features.add("tools");
}

/** Parts whose bytes are what is read. */
const WORDS: ReadonlySet<string> = new Set([
  "input_text",
  "output_text",
  "text",
  "refusal",
  "reasoning_text",
  "summary_text",
]);

/** The same of items. Of any other, and of what is newer than us, only upstream knows how much there is to read. */
const SAID: ReadonlySet<string> = new Set([
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
  if (!SAID.has(text(item["type"]) ?? "message")) media.count++;
  for (const key of ["content", "output"])
    for (const part of list(item[key])) {
      const type = text(object(part)?.["type"]) ?? "";
      if (type === "input_image") features.add("vision");
      else if (type === "input_file") features.add("documents");
      else if (type === "input_audio") features.add("audio");
      else if (WORDS.has(type)) continue;
      media.count++;
      for (const where of ["image_url", "file_data", "data"])
        media.bytes += text(object(part)?.[where])?.length ?? 0;
    }
}
