/**
 * Waits for a promise. Returns false if the time limit is reached before it settles, and rejects if
 * the promise rejects.
 */
export async function settlesWithin(ms: number, promise: Promise<unknown>): Promise<boolean> {
  if (ms === Infinity) return promise.then(() => true);
  const { promise: late, resolve } = Promise.withResolvers<false>();
  const timer = setTimeout(() => resolve(false), ms);
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
