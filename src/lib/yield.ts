// Yields to the event loop while a large body is processed. Each step is short, and other requests
// run between two steps.

/** Size in bytes from which a body is processed in steps. */
export const LARGE_BODY_BYTES = 1024 * 1024;

export const yieldToEventLoop = (): Promise<void> =>
  new Promise((resolve) => void setImmediate(resolve));

/** Allows other requests to run. Returns undefined for a small body, which avoids a promise. */
export const yieldForLargeBody = (bytes: number): Promise<void> | undefined =>
  bytes < LARGE_BODY_BYTES ? undefined : yieldToEventLoop();
