// Analyzes an outgoing body for its possible cost and its references.
import type { Body, JsonObject, RequestFacts } from "tollgate/plugin";
import { referencedFeatures, findReferences } from "tollgate/protocols/references";
import { countOf, listOf, objectOf, textOf } from "../json.ts";

/** Block members with content other than text, and the feature that each requires. */
const MEDIA = { image: "vision", video: undefined, audio: "audio", document: "documents" } as const;

export function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const features = referencedFeatures(named);
  const media = { count: 0, bytes: 0 };
  const seen = (raw: unknown): void => {
    const block = objectOf(raw);
    for (const name of Object.keys(MEDIA) as (keyof typeof MEDIA)[]) {
      const of = objectOf(block?.[name]);
      if (!of) continue;
      const feature = MEDIA[name];
      if (feature) features.add(feature);
      media.count++;
      media.bytes += textOf(objectOf(of["source"])?.["bytes"])?.length ?? 0;
    }
    for (const inner of listOf(objectOf(block?.["toolResult"])?.["content"])) seen(inner);
  };
  for (const message of listOf(body["messages"]))
    for (const block of listOf(objectOf(message)?.["content"])) seen(block);
  if (objectOf(body["toolConfig"])) features.add("tools");
  if (listOf(body["system"]).length > 0) features.add("system");
  const output = objectOf(body["outputConfig"]) ?? ({} as JsonObject);
  if (output["textFormat"]) features.add("json_schema");
  if (output["effort"]) features.add("reasoning");
  return {
    features: [...features],
    references: named,
    maxOutput: countOf(objectOf(body["inferenceConfig"])?.["maxTokens"]),
    tier: textOf(objectOf(body["serviceTier"])?.["type"]),
    ...(media.count > 0 && { media }),
  };
}
