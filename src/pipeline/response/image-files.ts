/**
 * Stores images for clients that request a URL, and fetches images for clients that request bytes.
 */
export interface ImageFiles {
  /**
   * Stores the bytes and returns a temporary URL for them. `who`: the key whose share of the
   * storage they use.
   */
  store(bytes: Buffer, mime: string | undefined, who: string | undefined): Promise<string>;
  /**
   * Fetches an image from a URL that a provider returned. The request goes through the egress guard
   * and carries no credential. `own`: an origin from the operator's config. A URL with this origin
   * is requested without the guard, wherever a redirect then leads.
   */
  fetch(
    url: string,
    signal: AbortSignal,
    own: string | undefined,
  ): Promise<{ bytes: Buffer; contentType: string }>;
}
