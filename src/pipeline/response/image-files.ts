/** Where pictures are kept for clients that want an address, and fetched for clients that want bytes. */
export interface ImageFiles {
  /** The address at which these bytes are found for a while; `who` is the key whose share of the room they take. */
  store(bytes: Buffer, mime: string | undefined, who: string | undefined): Promise<string>;
  /**
   * From an address that a provider wrote, through the egress guard, without any credential. `own` is an origin that the
   * operator wrote: an address there is dialled as it is, wherever a redirect then leads.
   */
  fetch(
    url: string,
    signal: AbortSignal,
    own: string | undefined,
  ): Promise<{ bytes: Buffer; contentType: string }>;
}
