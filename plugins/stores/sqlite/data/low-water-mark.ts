// Tracks the start of the oldest open call. The next owner starts to read there. It counts open
// calls per commit, so no state is kept for closed calls.

export interface LowWaterMark {
  /** Called when a commit begins, continues, or is repeated. */
  beginCommit(first: number): void;
  addOpenCall(first: number): void;
  removeOpenCall(first: number): void;
  /** Returns the first entry of the oldest commit with an open call, or `next` if there is none. */
  oldestOpen(next: number): number;
  /** Removes commits without open calls from the start of the list. */
  dropClosed(): void;
}

export function createLowWaterMark(): LowWaterMark {
  let firsts: number[] = [];
  let counts: number[] = [];
  let oldest = 0;

  /** Finds the commit that begins at `first` by binary search. */
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
      // A commit that was rolled back may have moved the position too far.
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
