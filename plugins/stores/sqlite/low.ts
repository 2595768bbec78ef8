// Where the oldest open call begins: what a next owner has to read again. Counted by commits, so that a call that is over
// leaves nothing behind.

export interface Low {
  /** A commit begins, or goes on, or begins again. */
  commit(first: number): void;
  opened(first: number): void;
  closed(first: number): void;
  /** The first entry of the oldest commit that has an open call; `next`, if none has. */
  at(next: number): number;
  /** Forgets what is over. */
  done(): void;
}

export function createLow(): Low {
  let firsts: number[] = [];
  let counts: number[] = [];
  let oldest = 0;

  /** Mostly it is among the newest. */
  function place(first: number): number {
    let [low, high] = [0, firsts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (firsts[middle]! <= first) low = middle;
      else high = middle - 1;
    }
    return low;
  }
  const add = (first: number, n: number): void => {
    const i = place(first);
    counts[i] = counts[i]! + n;
  };
  function seek(): number {
    let i = oldest;
    while (i < counts.length && counts[i] === 0) i++;
    return i;
  }

  return {
    commit(first) {
      if (firsts.at(-1) !== first) {
        firsts.push(first);
        counts.push(0);
      }
      // One that was undone may have been passed over.
      oldest = Math.min(oldest, firsts.length - 1);
    },
    opened: (first) => add(first, 1),
    closed: (first) => add(first, -1),
    at: (next) => firsts[seek()] ?? next,
    done() {
      oldest = seek();
      if (oldest < 1_024) return;
      firsts = firsts.slice(oldest);
      counts = counts.slice(oldest);
      oldest = 0;
    },
  };
}
