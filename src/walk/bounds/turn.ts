// A large body is worked on in turns: what has to be done with it at once is short, and between two of its steps other
// requests have their turn.

/** From here on. */
export const LARGE = 1024 * 1024;

export const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

/** Nothing to wait for where nothing is large. */
export const breath = (bytes: number): Promise<void> | undefined =>
  bytes < LARGE ? undefined : turn();
