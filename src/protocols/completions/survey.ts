// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import type { Feature } from "../../model/facts.ts";
import type { Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { isOn, number } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { promptsIn } from "./server/request.ts";

export function survey(body: Body): Survey {
  // Ids of tokens name nothing, and there are many.
  const { prompt, ...fields } = body;
  const named = look(fields);
  const prompts = promptsIn(prompt);
  const bound = number(body["max_tokens"]);
  // What is said again is written again; no token is less than a byte of it.
  const again = isOn(body["echo"]) ? longest(prompts) : 0;
  const spent = spending(fields, named, {
    output: bound === undefined ? undefined : bound + again,
  });
  const each = spent.n ?? 1;
  const features: Feature[] = [];
  if (body["stream"] === true) features.push("stream");
  if (each > 1 || prompts.length > 1) features.push("n");
  return {
    features: [...features, ...featuresOf(named)],
    named,
    ...spent,
    n: each * prompts.length,
  };
}

const longest = (prompts: readonly (string | readonly number[])[]): number =>
  prompts.reduce(
    (most, one) => Math.max(most, typeof one === "string" ? Buffer.byteLength(one) : one.length),
    0,
  );
