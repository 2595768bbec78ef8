// Puts the clocks and timers of this process under the control of a test, which can skip hours in
// no time. Threads and other processes keep their own.
import { syncBuiltinESMExports } from "node:module";
import promises from "node:timers/promises";
import { onTestFinished } from "vitest";

export interface TestClock {
  /**
   * Moves the clock forward and runs all timers that become due, each at its own time and in their
   * order.
   */
  skip(ms: number): void;
  /** Stops the clock: only `skip` moves it and fires timers. */
  stop(): void;
  /** Starts the clock again. */
  go(): void;
  /** Milliseconds, as the tested code reads them. */
  now(): number;
}

export interface ClockOptions {
  /** Whether `Date.now` moves, too. Default: only `performance.now` does. */
  readonly wall?: boolean;
}

interface Due {
  at: number;
  readonly every: number | undefined;
  readonly run: () => void;
  /** Whether its time passed while the clock was stopped. */
  late?: boolean;
}

type Timers = Map<NodeJS.Timeout, Due>;

/**
 * Replaces the clock and the timers until the test ends. Time also passes by itself, as before.
 * Existing timers are not moved.
 */
export function installTestClock({ wall = false }: ClockOptions = {}): TestClock {
  const now = performance.now.bind(performance);
  let ahead = 0;
  let stoppedAt: number | undefined;
  const passed = () => (stoppedAt ?? now()) + ahead;
  const due: Timers = new Map();
  const undo = [
    put(performance, "now", passed),
    ...timers(due, passed, () => stoppedAt !== undefined),
    ...(wall ? [put(Date, "now", wallOf(passed, Date.now() - passed()))] : []),
  ];
  syncBuiltinESMExports();
  const time: TestClock = {
    skip(ms) {
      const end = passed() + ms;
      for (let next = first(due, end); next; next = first(due, end)) {
        const [timer, one] = next;
        ahead += Math.max(0, one.at - passed());
        if (one.every === undefined) {
          due.delete(timer);
          clearTimeout(timer);
        } else one.at += Math.max(1, one.every);
        one.run();
      }
      ahead += Math.max(0, end - passed());
    },
    stop() {
      stoppedAt ??= now();
    },
    go() {
      if (stoppedAt === undefined) return;
      ahead -= now() - stoppedAt;
      stoppedAt = undefined;
      for (const [timer, { late }] of due) if (late) timer.refresh();
    },
    now: passed,
  };
  onTestFinished(() => {
    time.go();
    for (const back of undo) back();
    syncBuiltinESMExports();
  });
  return time;
}

function first(due: Timers, end: number) {
  let found: [NodeJS.Timeout, Due] | undefined;
  for (const one of due)
    if (one[1].at <= end && (found === undefined || one[1].at < found[1].at)) found = one;
  return found;
}

const wallOf = (passed: () => number, began: number) => () => Math.floor(began + passed());

/** Replaces a property by `value`. Returns a function that restores it. */
function put<T extends object, K extends keyof T>(of: T, name: K, value: T[K]): () => void {
  const real = of[name];
  of[name] = value;
  return () => void (of[name] = real);
}

/** Timers that fire by themselves as usual, and that the clock knows. */
function timers(due: Timers, passed: () => number, stopped: () => boolean): (() => void)[] {
  const real = { setTimeout, setInterval, clearTimeout };
  const known = (timer: NodeJS.Timeout, ms: number, every: boolean, run: () => void) => {
    due.set(timer, { at: passed() + ms, every: every ? ms : undefined, run });
    const refresh = timer.refresh.bind(timer);
    timer.refresh = () => {
      due.set(timer, { at: passed() + ms, every: every ? ms : undefined, run });
      return refresh();
    };
    return timer;
  };
  const isHeld = (timer: NodeJS.Timeout) => {
    const one = due.get(timer);
    if (one) one.late = stopped();
    return stopped();
  };
  const timeout = (run: (...args: any[]) => void, ms = 1, ...args: unknown[]) => {
    const timer = real.setTimeout(() => {
      if (isHeld(timer)) return;
      due.delete(timer);
      run(...args);
    }, ms);
    return known(timer, ms, false, () => run(...args));
  };
  const interval = (run: (...args: any[]) => void, ms = 1, ...args: unknown[]) => {
    const timer = real.setInterval(() => {
      if (isHeld(timer)) return;
      const one = due.get(timer);
      if (one) one.at = passed() + ms;
      run(...args);
    }, ms);
    return known(timer, ms, true, () => run(...args));
  };
  const clear = (timer?: NodeJS.Timeout | string | number) => {
    due.delete(timer as NodeJS.Timeout);
    real.clearTimeout(timer);
  };
  return [
    put(globalThis, "setTimeout", timeout as never),
    put(globalThis, "setInterval", interval as never),
    put(globalThis, "clearTimeout", clear),
    put(globalThis, "clearInterval", clear),
    put(promises, "setTimeout", sleepBy(timeout) as never),
    put(AbortSignal, "timeout", (ms) => {
      const over = new AbortController();
      timeout(() => over.abort(new DOMException("It took too long", "TimeoutError")), ms).unref();
      return over.signal;
    }),
  ];
}

/** `setTimeout` of node:timers/promises. */
const sleepBy =
  (timeout: (run: () => void, ms?: number) => NodeJS.Timeout) =>
  (
    ms?: number,
    value?: unknown,
    { signal, ref = true }: { signal?: AbortSignal; ref?: boolean } = {},
  ) =>
    new Promise((resolve, reject) => {
      const aborted = () => {
        // The clock's own.
        globalThis.clearTimeout(timer);
        const error = new DOMException("The operation was aborted", "AbortError");
        reject(Object.assign(error, { cause: signal!.reason }));
      };
      const timer = timeout(() => {
        signal?.removeEventListener("abort", aborted);
        resolve(value);
      }, ms);
      if (!ref) timer.unref();
      if (signal?.aborted) aborted();
      else signal?.addEventListener("abort", aborted, { once: true });
    });
