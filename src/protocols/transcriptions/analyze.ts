// Analyzes a request in both modes: its possible cost and its references.
import { estimateAudioUsage } from "../../model/operations/transcript-operation.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { isTruthyFlag } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";

export function analyze(body: Body): RequestFacts {
  const { file, ...fields } = body;
  const named = findReferences(fields);
  const { n: _, ...spent } = analyzeCost(fields, named, { maxOutput: undefined });
  return {
    features: [
      ...(isTruthyFlag(body["stream"]) ? (["stream"] as const) : []),
      ...referencedFeatures(named),
    ],
    references: named,
    ...spent,
    ...(isFilePart(file) && estimateAudioUsage(file.data, textIn(fields))),
  };
}

/** Returns the text that a model may read in addition to the audio. */
const textIn = (fields: object): string =>
  Object.values(fields)
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)))
    .join(" ");
