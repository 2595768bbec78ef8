// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import { idsIn } from "../../model/embedding-work.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/protocol.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { inputsIn } from "./vectors.ts";

export function survey(body: Body): Survey {
  // Ids of tokens name nothing, and there are many.
  const { input, ...fields } = body;
  const named = look(fields);
  const { n: _, ...spent } = spending(fields, named, { output: undefined });
  return {
    features: [...featuresOf(named)],
    named,
    ...spent,
    counts: idsIn(inputsIn(input)),
  };
}
