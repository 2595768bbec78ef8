// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import { rankedIn } from "../../model/rerank-work.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { isObject, list, text } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";

export function survey(body: Body): Survey {
  const named = look(body);
  const { n: _, ...spent } = spending(body, named, { output: undefined });
  return {
    features: [...featuresOf(named)],
    named,
    ...spent,
    ...rankedIn(text(body["query"]) ?? "", documentsIn(body)),
  };
}

/** What is neither a text nor an object is refused as a request; here it is one short document. */
const documentsIn = (body: Body) =>
  list(body["documents"]).map((one) => (typeof one === "string" || isObject(one) ? one : ""));
