// Where the oldest open call begins: what a next owner has to read again. Counted by commits, so that a call that is over
// leaves nothing behind.

export interface LowWaterMark {
  /** A commit begins, or goes on, or begins again. */
  beginCommit(first: number): void;
  addOpenCall(first: number): void;
  removeOpenCall(first: number): void;
  /** The first entry of the oldest commit that has an open call; `next`, if none has. */
  oldestOpen(next: number): number;
  /** Forgets what is over. */
  dropClosed(): void;
}

export function createLowWaterMark(): LowWaterMark {
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
    beginCommit(first) {
      if (firsts.at(-1) !== first) {
        firsts.push(first);
        counts.push(0);
      }
      // One that was undone may have been passed over.
      oldest = Math.min(oldest, firsts.length - 1);
    },
    addOpenCall: (first) => add(first, 1),
    removeOpenCall: (first) => add(first, -1),
    oldestOpen: (next) => firsts[seek()] ?? next,
    dropClosed() {
      oldest = seek();
      if (oldest < 1_024) return;
      firsts = firsts.slice(oldest);
      counts = counts.slice(oldest);
      oldest = 0;
    },
  };
}
