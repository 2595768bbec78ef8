/** On behalf of which request another one is made, and by which plugins. */
export interface SubrequestOrigin<X> {
  readonly parentRequest: X;
  /** The one that asks, last, and those that asked before it: none of them is asked about a request of its own. */
  readonly pluginIds: readonly string[];
}
