// Analyzes a request body in both modes: what it can cost and which model features it needs.
import type { Feature } from "../../model/facts.ts";
import type { Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { isTruthyFlag, asNumber } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { promptsIn } from "./server/request.ts";

export function analyze(body: Body): RequestFacts {
  // Prompts are excluded from the search for references. Token IDs contain none, and there are many
  // of them.
  const { prompt, ...fields } = body;
  const named = findReferences(fields);
  const prompts = promptsIn(prompt);
  const bound = asNumber(body["max_tokens"]);
  // With `echo`, the prompt is output again. A token is at least one byte, so the prompt's bytes
  // are an upper limit of its tokens.
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
