// One look at a body, on both lanes: what the host must know without decoding it.
import type { Body, Feature, JsonObject, Survey } from "../../../plugin/index.ts";
import { list, number, object, text } from "../words.ts";

const PARTS: Readonly<Record<string, Feature>> = {
  image_url: "vision",
  input_image: "vision",
  image: "vision",
  video_url: "vision",
  input_audio: "audio",
  audio_url: "audio",
  file: "documents",
};

export function survey(body: Body): Survey {
  const fields = body as JsonObject;
  const found = new Set<Feature>();
  if (fields["stream"] === true) found.add("stream");
  const media = { count: 0, bytes: 0 };
  for (const message of list(fields["messages"])) look(object(message), found, media);
  const tools = list(fields["tools"]);
  if (tools.length > 0 || list(fields["functions"]).length > 0) found.add("tools");
  for (const tool of tools) {
    const type = text(object(tool)?.["type"]);
    if (type !== undefined && type !== "function" && type !== "custom") found.add(`hosted.${type}`);
  }
  if (object(fields["web_search_options"])) found.add("hosted.web_search");
  if (fields["parallel_tool_calls"] === true) found.add("parallel_tools");
  const format = object(fields["response_format"])?.["type"];
  if (format === "json_object") found.add("json");
  if (format === "json_schema") found.add("json_schema");
  if (fields["logprobs"] === true) found.add("logprobs");
  if (list(fields["modalities"]).includes("audio")) found.add("audio");
  const effort = text(fields["reasoning_effort"]);
  if (object(fields["thinking"])?.["type"] === "enabled" || (effort && effort !== "none"))
    found.add("reasoning");
  if (fields["store"] === true) found.add("state.store");
  if (fields["prompt_cache_retention"] === "24h") found.add("cache.extended");
  const n = number(fields["n"]);
  if (n !== undefined && n > 1) found.add("n");
  return {
    features: [...found],
    maxOutput: larger(number(fields["max_completion_tokens"]), number(fields["max_tokens"])),
    n,
    tier: text(fields["service_tier"]),
    media: media.count > 0 ? media : undefined,
  };
}

/** Of two bounds nobody knows which one upstream reads, and a client may send both. */
const larger = (a: number | undefined, b: number | undefined): number | undefined =>
  a !== undefined && b !== undefined ? Math.max(a, b) : (a ?? b);

function look(
  message: JsonObject | undefined,
  found: Set<Feature>,
  media: { count: number; bytes: number },
): void {
  const role = message?.["role"];
  if (role === "system" || role === "developer") found.add("system");
  const content = message?.["content"];
  if (!Array.isArray(content)) return;
  for (const raw of content) {
    const part = object(raw);
    const type = text(part?.["type"]);
    const feature = type === undefined ? undefined : PARTS[type];
    if (feature) {
      found.add(feature);
      media.count++;
      media.bytes += dataIn(part![type!]);
    }
    if (object(part?.["file"])?.["file_id"] !== undefined) found.add("state.file");
  }
}

/** Bytes of base64, wherever this kind of part has them. */
const dataIn = (part: unknown): number =>
  typeof part === "string"
    ? part.length
    : Math.max(
        ...["url", "data", "file_data"].map(
          (key) => text(object(part as never)?.[key])?.length ?? 0,
        ),
      );
