// Analyzes a request in both modes: its possible cost and the features that the model needs.
import { estimateRerankUsage } from "../../model/operations/rerank-operation.ts";
import type { Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { isObject, asList, asText } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";

export function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const { n: _, ...spent } = analyzeCost(body, named, { maxOutput: undefined });
  return {
    features: [...referencedFeatures(named)],
    references: named,
    ...spent,
    ...estimateRerankUsage(asText(body["query"]) ?? "", documentsIn(body)),
  };
}

/**
 * Returns the documents. Validation rejects an entry that is neither a string nor an object. Here
 * such an entry counts as an empty document.
 */
const documentsIn = (body: Body) =>
  asList(body["documents"]).map((one) => (typeof one === "string" || isObject(one) ? one : ""));
