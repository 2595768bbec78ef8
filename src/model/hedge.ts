/**
 * Delays after which the next candidate is also called if a call has returned no content, in
 * milliseconds.
 */
export interface HedgeDelays {
  /** Delay for classes that are not in `classes`. Undefined: no hedging. */
  readonly allMs: number | undefined;
  /** Delay by class of call, as in `timeouts.classes`. */
  readonly classes: ReadonlyMap<string, number>;
}
