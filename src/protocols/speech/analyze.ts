// Analyzes a request in both modes: its possible cost and its references.
import { estimateSpeechUsage } from "../../model/operations/speech-operation.ts";
import type { Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { asText } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { STREAM_FORMAT } from "./constants.ts";

export function analyze(body: Body): RequestFacts {
  const { input, ...fields } = body;
  const named = findReferences(fields);
  const { n: _, ...spent } = analyzeCost(fields, named, { maxOutput: undefined });
  return {
    features: [...referencedFeatures(named)],
    references: named,
    ...spent,
    ...estimateSpeechUsage(asText(input) ?? "", textIn(fields)),
  };
}

/** Fields whose text no backend speaks. */
const NON_SPOKEN_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "voice",
  "response_format",
  "speed",
  "stream",
  STREAM_FORMAT,
]);

/** Returns the text outside `input` that a backend may speak or bill. */
const textIn = (fields: Body): string =>
  Object.entries(fields)
    .filter(([field]) => !NON_SPOKEN_FIELDS.has(field))
    .map(([, value]) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join("");
