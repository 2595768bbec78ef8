// Analyzes a request body, in passthrough and translated mode, without decoding it.
import type { Body, Feature, JsonObject, RequestFacts } from "../../plugin/index.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { asList, asNumber, asObject, asText } from "../json-values.ts";

const PARTS: Readonly<Record<string, Feature>> = {
  image_url: "vision",
  input_image: "vision",
  image: "vision",
  video_url: "vision",
  input_audio: "audio",
  audio_url: "audio",
  file: "documents",
};

/** Content parts that consist of text. Their bytes are what the model reads. */
const WORDS: ReadonlySet<string> = new Set([
  "text",
  "input_text",
  "output_text",
  "refusal",
  "thinking",
  "reasoning",
]);

export function analyze(body: Body): RequestFacts {
  const fields = body as JsonObject;
  const named = findReferences(body);
  const found = referencedFeatures(named);
  if (fields["stream"] === true) found.add("stream");
  const media = { count: 0, bytes: 0 };
  for (const message of asList(fields["messages"])) needs(asObject(message), found, media);
  if (asList(fields["tools"]).length > 0 || asList(fields["functions"]).length > 0)
    found.add("tools");
  if (fields["parallel_tool_calls"] === true) found.add("parallel_tools");
  const format = asObject(fields["response_format"])?.["type"];
  if (format === "json_object") found.add("json");
  if (format === "json_schema") found.add("json_schema");
  if (fields["logprobs"] === true) found.add("logprobs");
  if (asList(fields["modalities"]).includes("audio")) found.add("audio");
  const effort = asText(fields["reasoning_effort"]);
  if (asObject(fields["thinking"])?.["type"] === "enabled" || (effort && effort !== "none"))
    found.add("reasoning");
  const bound = asNumber(fields["max_completion_tokens"]) ?? asNumber(fields["max_tokens"]);
  if ((asNumber(fields["n"]) ?? 1) > 1) found.add("n");
  return {
    features: [...found],
    references: named,
    ...analyzeCost(fields, named, { maxOutput: bound }),
    media: media.count > 0 ? media : undefined,
  };
}

function needs(
  message: JsonObject | undefined,
  found: Set<Feature>,
  media: { count: number; bytes: number },
): void {
  const role = message?.["role"];
  if (role === "system" || role === "developer") found.add("system");
  const content = message?.["content"];
  if (!Array.isArray(content)) return;
  for (const raw of content) {
    const part = asObject(raw);
    if (!part) continue;
    const type = asText(part["type"]) ?? "";
    if (WORDS.has(type)) continue;
    // An unknown part type may be newer than the gateway. It counts as media, because only the
    // provider can determine how much input it is.
    media.count++;
    if (!Object.hasOwn(PARTS, type)) continue;
    found.add(PARTS[type]!);
    media.bytes += dataIn(part[type]);
  }
}

/** Returns the length of the base64 or URL text in a content part. */
const dataIn = (part: unknown): number =>
  typeof part === "string"
    ? part.length
    : Math.max(
        ...["url", "data", "file_data"].map(
          (key) => asText(asObject(part as never)?.[key])?.length ?? 0,
        ),
      );
