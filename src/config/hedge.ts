// `hedge:` of a model's route: how long a call may stay without content before the next candidate is called as well.
import { parseDuration, sayDuration } from "../lib/duration.ts";
import type { HedgeDelays } from "../model/hedge.ts";
import type { Schema } from "./dialect.ts";
import { duration, either, name } from "./shapes.ts";
import { below, isMapping } from "./tree.ts";

export const HEDGE: Schema = {
  ...either(duration("For every class of calls"), {
    type: "object",
    minProperties: 1,
    propertyNames: name("a class of calls: quick, thinking, or a kind of model such as image"),
    additionalProperties: duration("For this class of calls"),
  }),
  description:
    "How long a call may stay without content before the next candidate is called as well. The first call with content answers, and the other one is canceled. Both are billed. Default: off",
};

/** `said`: as in gateway.yaml. */
export function hedgeOf(said: unknown): HedgeDelays | undefined {
  if (typeof said === "string") return { allMs: parseDuration(said)!, classes: new Map() };
  if (!isMapping(said)) return undefined;
  const classes = Object.entries(said).map(
    ([of, each]) => [of, parseDuration(each as string)!] as const,
  );
  return { allMs: undefined, classes: new Map(classes) };
}

/** As gateway.yaml writes it. */
export const hedgeView = ({ allMs, classes }: HedgeDelays): string | { [of: string]: string } =>
  allMs === undefined
    ? Object.fromEntries([...classes].map(([of, ms]) => [of, sayDuration(ms)]))
    : sayDuration(allMs);

/** Every duration in the `hedge` of every model, with its place. */
export function hedgeDurations(models: unknown): readonly (readonly [unknown, string])[] {
  if (!isMapping(models)) return [];
  return Object.entries(models).flatMap(([model, route]) => {
    const said = isMapping(route) ? route["hedge"] : undefined;
    const at = below(below("/models", model), "hedge");
    return isMapping(said)
      ? Object.entries(said).map(([of, each]) => [each, below(at, of)] as const)
      : [[said, at] as const];
  });
}
