// Analyzes a request body in both modes: what it can cost and which model features it needs.
import { countTokenIds } from "../../model/operations/embedding-operation.ts";
import type { Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { inputsIn } from "./embedding-values.ts";

export function analyze(body: Body): RequestFacts {
  // Inputs are excluded from the search for references. Token IDs contain none, and there are many
  // of them.
  const { input, ...fields } = body;
  const named = findReferences(fields);
  const { n: _, ...spent } = analyzeCost(fields, named, { maxOutput: undefined });
  return {
    features: [...referencedFeatures(named)],
    references: named,
    ...spent,
    exactUsage: countTokenIds(inputsIn(input)),
    media: countMedia(fields),
  };
}

/**
 * Fields in which some backends accept images, audio, or URLs of texts. Only the backend can
 * determine how much input they contain.
 */
const MEDIA_FIELDS: ReadonlySet<string> = new Set(
  "image images image_url image_urls video videos audio audios documents document inputs contents content url urls file files".split(
    " ",
  ),
);

function countMedia(fields: Body): RequestFacts["media"] {
  let count = 0;
  for (const field in fields)
    if (MEDIA_FIELDS.has(field.toLowerCase()) && fields[field] != null) count++;
  return count > 0 ? { count, bytes: 0 } : undefined;
}
