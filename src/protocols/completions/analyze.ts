// One look at a body of this protocol, in both modes: what it may cost, and what a model must be able to do.
import type { Feature } from "../../model/facts.ts";
import type { Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { isTruthyFlag, asNumber } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { promptsIn } from "./server/request.ts";

export function analyze(body: Body): RequestFacts {
  // Ids of tokens name nothing, and there are many.
  const { prompt, ...fields } = body;
  const named = findReferences(fields);
  const prompts = promptsIn(prompt);
  const bound = asNumber(body["max_tokens"]);
  // What is said again is written again; no token is less than a byte of it.
  const again = isTruthyFlag(body["echo"]) ? longestPromptTokens(prompts) : 0;
  const spent = analyzeCost(fields, named, {
    maxOutput: bound === undefined ? undefined : bound + again,
  });
  const each = spent.n ?? 1;
  const features: Feature[] = [];
  if (body["stream"] === true) features.push("stream");
  if (each > 1 || prompts.length > 1) features.push("n");
  return {
    features: [...features, ...referencedFeatures(named)],
    references: named,
    ...spent,
    n: each * prompts.length,
  };
}

const longestPromptTokens = (prompts: readonly (string | readonly number[])[]): number =>
  prompts.reduce(
    (most, one) => Math.max(most, typeof one === "string" ? Buffer.byteLength(one) : one.length),
    0,
  );
