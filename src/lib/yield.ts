// A large body is worked on in turns: what has to be done with it at once is short, and between two of its steps other
// requests have their turn.

/** A body of this size is worked on in turns. */
export const LARGE_BODY_BYTES = 1024 * 1024;

export const yieldToEventLoop = (): Promise<void> =>
  new Promise((resolve) => void setImmediate(resolve));

/** A turn for the other requests; nothing for a small body, which costs no promise. */
export const yieldForLargeBody = (bytes: number): Promise<void> | undefined =>
  bytes < LARGE_BODY_BYTES ? undefined : yieldToEventLoop();
