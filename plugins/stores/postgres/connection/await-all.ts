/** Waits until all promises have settled. Returns all results or throws the first error. */
export async function awaitAll<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const answers = await Promise.allSettled(promises);
  for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
  return answers.map((answer) => (answer as PromiseFulfilledResult<T>).value);
}
