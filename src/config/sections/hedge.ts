// The `hedge` setting of a model's route: how long a call may wait for its first token before the
// next candidate is called in parallel.
import { formatDuration, parseDuration } from "../../lib/time/units.ts";
import type { HedgeDelays } from "../../model/route-settings.ts";
import type { Schema } from "../schema-dialect.ts";
import { durationOr, name, optionalDuration } from "../schema-builders.ts";
import { childPointer, isMapping } from "../source/config-tree.ts";

export const HEDGE_SCHEMA: Schema = {
  ...durationOr(optionalDuration("Hedging delay for all call classes"), {
    type: "object",
    minProperties: 1,
    propertyNames: name("a call class: quick, reasoning, or an operation such as image"),
    additionalProperties: optionalDuration("Hedging delay for this call class"),
  }),
  description:
    "Delay after which the next candidate is called as well if a call has returned " +
    "no content. The first call with content is used, and the other call is canceled. " +
    "Both calls are billed. Default: off",
};

/**
 * @param raw The value in gateway.yaml.
 */
export function toHedgeDelays(raw: unknown): HedgeDelays | undefined {
  if (typeof raw === "string") return { allMs: parseDuration(raw)!, classes: new Map() };
  if (!isMapping(raw)) return undefined;
  const classes = Object.entries(raw).map(
    ([of, each]) => [of, parseDuration(each as string)!] as const,
  );
  return { allMs: undefined, classes: new Map(classes) };
}

/** Returns the value for gateway.yaml. */
export const formatHedge = ({ allMs, classes }: HedgeDelays): string | { [of: string]: string } =>
  allMs === undefined
    ? Object.fromEntries([...classes].map(([of, ms]) => [of, formatDuration(ms)]))
    : formatDuration(allMs);

/** Returns every duration in the `hedge` of every model, with its pointer. */
export function listHedgeDurations(models: unknown): readonly (readonly [unknown, string])[] {
  if (!isMapping(models)) return [];
  return Object.entries(models).flatMap(([model, route]) => {
    const raw = isMapping(route) ? route["hedge"] : undefined;
    const at = childPointer(childPointer("/models", model), "hedge");
    return isMapping(raw)
      ? Object.entries(raw).map(([of, each]) => [each, childPointer(at, of)] as const)
      : [[raw, at] as const];
  });
}
