/** Waits until all promises have settled. Returns all results or throws the first error. */
export async function awaitAll<T>(asked: readonly Promise<T>[]): Promise<T[]> {
  const answers = await Promise.allSettled(asked);
  for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  return answers.map((answer) => (answer as PromiseFulfilledResult<T>).value);
}
