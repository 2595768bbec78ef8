/** On behalf of which request another one is made, and by which plugins. */
export interface Asker<X> {
  readonly parent: X;
  /** The one that asks, last, and those that asked before it: none of them is asked about a request of its own. */
  readonly askers: readonly string[];
}
