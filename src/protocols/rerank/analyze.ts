// One look at a body of this protocol, in both modes: what it may cost, and what a model must be able to do.
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

/** What is neither a text nor an object is refused as a request; here it is one short document. */
const documentsIn = (body: Body) =>
  asList(body["documents"]).map((one) => (typeof one === "string" || isObject(one) ? one : ""));
