// Virtual time: `performance.now` and timers of this process, controlled by the test. Nothing waits
// for a real clock.
interface Due {
  readonly at: number;
  readonly n: number;
  run(): void;
  off: boolean;
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

export class VirtualClock implements Disposable {
  #now = 1_000;
  #n = 0;
  readonly #heap: Due[] = [];
  readonly #real = { now: performance.now, setTimeout, clearTimeout, random: Math.random };

  /** `chance`: replaces Math.random. */
  constructor(chance: () => number) {
    performance.now = () => this.#now;
    Math.random = chance;
    globalThis.setTimeout = ((run: () => void, ms = 0) => this.at(this.#now + ms, run)) as never;
    globalThis.clearTimeout = ((due: Due | undefined) => {
      if (due) due.off = true;
    }) as never;
  }

  get now(): number {
    return this.#now;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.at(this.#now + ms, resolve));
  }

  at(at: number, run: () => void): Due {
    const due: Due & { unref(): Due } = { at, n: this.#n++, run, off: false, unref: () => due };
    const heap = this.#heap;
    let i = heap.push(due) - 1;
    while (i > 0) {
      const up = (i - 1) >> 1;
      if (before(heap[up]!, due)) break;
      heap[i] = heap[up]!;
      i = up;
    }
    heap[i] = due;
    return due;
  }

  /** Until nothing is due. All promises settle between two moments. */
  async run(): Promise<void> {
    for (let due = this.#pop(); due; due = this.#pop()) {
      if (due.off) {
        if (this.#heap.length === 0) await turn();
        continue;
      }
      if (due.at > this.#now) {
        await turn();
        const [first] = this.#heap;
        // Settled promises may have added an earlier timer.
        if (first && before(first, due)) {
          this.at(due.at, due.run);
          continue;
        }
        this.#now = due.at;
      }
      due.run();
      if (this.#heap.length === 0) await turn();
    }
  }

  #pop(): Due | undefined {
    const heap = this.#heap;
    const [top] = heap;
    const last = heap.pop();
    if (!top || !last || top === last) return top;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (before(last, heap[child]!)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
    return top;
  }

  [Symbol.dispose](): void {
    const { now, random, ...timers } = this.#real;
    performance.now = now;
    Math.random = random;
    Object.assign(globalThis, timers);
  }
}

const before = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.n < b.n);
