// Analyzes a request in both modes: its possible cost and the features that the model needs.
import type { Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { isObject, asList } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";

export function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const pictures = asList(body["input"]).filter(
    (one) => isObject(one) && one["type"] === "image_url",
  );
  return {
    features: [...referencedFeatures(named), ...(pictures.length > 0 ? (["vision"] as const) : [])],
    references: named,
    exactUsage: { requests: 1 },
    ...(pictures.length > 0 && {
      media: { count: pictures.length, bytes: JSON.stringify(pictures).length },
    }),
  };
}
