/** How long a call may stay without content before the next candidate is called as well, in milliseconds. */
export interface HedgeDelays {
  /** For classes that are not in `classes`; undefined: they are not hedged. */
  readonly allMs: number | undefined;
  /** By class of call, as in `timeouts.classes`. */
  readonly classes: ReadonlyMap<string, number>;
}
