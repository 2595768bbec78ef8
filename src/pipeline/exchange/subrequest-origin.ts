/** The request that a subrequest is made for, and the plugins that make it. */
export interface SubrequestOrigin<X> {
  readonly parentRequest: X;
  /**
   * IDs of the plugins that make the subrequest: the current one last, preceded by those of its
   * parents. None of their hooks runs for the subrequest.
   */
  readonly pluginIds: readonly string[];
}
