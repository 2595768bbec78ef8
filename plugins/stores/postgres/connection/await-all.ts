// Waits for several answers.

/** All of them, or the first that went wrong, once all are answered. */
export async function awaitAll<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  const answers = await Promise.allSettled(asked);
  for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  return answers.map((answer) => (answer as PromiseFulfilledResult<T>).value);
}
