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
   * and carries no credential. `own`: an origin from the operator's config. URLs with this origin
   * are requested without the guard. The target of each redirect is checked in the same way.
   */
  fetch(
    url: string,
    signal: AbortSignal,
    own: string | undefined,
  ): Promise<{ bytes: Buffer; contentType: string }>;
}
