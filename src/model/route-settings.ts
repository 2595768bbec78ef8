/**
 * Values of `pick:` for a name under `models:`. The value determines which candidate is called
 * first.
 */
export const ROUTING_STRATEGIES = ["ordered", "weighted", "fastest", "cheapest", "sticky"] as const;
/** A routing strategy. */
export type RoutingStrategy = (typeof ROUTING_STRATEGIES)[number];

/**
 * Delays after which the next candidate is also called if a call has returned no content, in
 * milliseconds.
 */
export interface HedgeDelays {
  /** Delay for classes that are not in `classes`. Undefined if calls are not hedged. */
  readonly allMs: number | undefined;
  /** Delay by class of call, as in `timeouts.classes`. */
  readonly classes: ReadonlyMap<string, number>;
}
