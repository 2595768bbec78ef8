// Virtual time. While it is installed, it provides clocks, timers, and random numbers to the tested
// code: a wait takes no time, and the same seed gives the same order of events. Each timer belongs
// to the process (a simulated gateway) that started it, so a process can be paused or killed.
import { AsyncLocalStorage } from "node:async_hooks";
import { syncBuiltinESMExports } from "node:module";
import promises from "node:timers/promises";

/** A simulated process with its timers and its wall clock. */
export interface Process {
  readonly name: string;
  alive: boolean;
  paused: boolean;
  /** Offset of its wall clock, in milliseconds. */
  clockOffset: number;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly owner: Process | undefined;
  readonly run: () => void;
  canceled: boolean;
}

/** A later event. */
export interface Later {
  cancel(): void;
}

/** Unix time at which each simulation starts. */
const EPOCH = Date.UTC(2026, 5, 3, 9);
const drained = setImmediate;

export class VirtualTime {
  now = 0;
  #events: Event[] = [];
  #order = 0;
  readonly #running = new AsyncLocalStorage<Process>();
  readonly #held = new Map<Process, Event[]>();
  /** Offset of the database's clock. */
  serverOffset = 0;
  #inServer = false;

  /** `owner`: undefined for the network and the database. */
  later(ms: number, run: () => void, owner?: Process): Later {
    const at = this.now + Math.max(0, ms);
    const event = { at, order: this.#order++, owner, run, canceled: false };
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#events[middle]!.at <= at) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
    return { cancel: () => void (event.canceled = true) };
  }

  as<T>(owner: Process, work: () => T): T {
    return this.#running.run(owner, work);
  }

  /** Runs the database: it has its own clock, and its timers are not used. */
  inServer<T>(work: () => T): T {
    this.#inServer = true;
    try {
      return work();
    } finally {
      this.#inServer = false;
    }
  }

  resume(owner: Process): void {
    owner.paused = false;
    for (const { run, canceled } of this.#held.get(owner) ?? [])
      if (!canceled) this.later(0, run, owner);
    this.#held.delete(owner);
  }

  /** Runs events until `done` holds, or this much time has passed. Returns whether it holds. */
  async until(done: () => boolean, withinMs: number): Promise<boolean> {
    const end = this.now + withinMs;
    await settled();
    while (!done()) {
      const next = this.#events[0];
      if (!next || next.at > end) {
        this.now = end;
        return done();
      }
      this.#events.shift();
      if (next.canceled || next.owner?.alive === false) continue;
      this.now = Math.max(this.now, next.at);
      if (next.owner?.paused) this.#hold(next.owner, next);
      else if (next.owner) this.#running.run(next.owner, next.run);
      else this.#running.exit(next.run);
      await settled();
    }
    return true;
  }

  async pass(ms: number): Promise<void> {
    await this.until(() => false, ms);
  }

  #hold(owner: Process, event: Event): void {
    const held = this.#held.get(owner);
    if (held) held.push(event);
    else this.#held.set(owner, [event]);
  }

  /**
   * Replaces the clocks, timers, and random numbers of this thread. Returns a function that
   * restores them.
   */
  install(random: () => number): () => void {
    const real = {
      setTimeout: globalThis.setTimeout,
      setInterval: globalThis.setInterval,
      setImmediate: globalThis.setImmediate,
      clearTimeout: globalThis.clearTimeout,
      clearInterval: globalThis.clearInterval,
      clearImmediate: globalThis.clearImmediate,
    };
    const { now: date } = Date;
    const { random: chance } = Math;
    const sleep = promises.setTimeout;
    Object.assign(globalThis, this.#timers(real));
    Date.now = () => this.#wallClock();
    performance.now = () => this.now;
    Math.random = random;
    promises.setTimeout = ((ms?: number, value?: unknown, options?: { signal?: AbortSignal }) =>
      this.#running.getStore()
        ? this.#sleep(ms ?? 0, value, options?.signal)
        : sleep(ms, value, options)) as typeof sleep;
    syncBuiltinESMExports();
    return () => {
      Object.assign(globalThis, real);
      Date.now = date;
      Math.random = chance;
      delete (performance as { now?: () => number }).now;
      promises.setTimeout = sleep;
      syncBuiltinESMExports();
    };
  }

  #wallClock(): number {
    const offset = this.#inServer
      ? this.serverOffset
      : (this.#running.getStore()?.clockOffset ?? 0);
    return EPOCH + Math.floor(this.now) + offset;
  }

  #sleep(ms: number, value: unknown, signal: AbortSignal | undefined): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers();
    const timer = setTimeout(resolve, ms, value);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
    return promise;
  }

  #timers(real: Pick<typeof globalThis, "setTimeout" | "setInterval" | "setImmediate"> & object) {
    const start = (every: boolean, run: (...args: unknown[]) => void, ms = 0, args: unknown[]) => {
      const owner = this.#running.getStore()!;
      const fire = () => {
        if (every) timer.later = this.later(Math.max(1, ms), fire, owner);
        run(...args);
      };
      const timer: FakeTimer = {
        later: this.later(every ? Math.max(1, ms) : ms, fire, owner),
        ref: () => timer,
        unref: () => timer,
        hasRef: () => true,
      };
      return timer;
    };
    const fake =
      (name: "setTimeout" | "setInterval" | "setImmediate") =>
      (run: (...args: unknown[]) => void, ...rest: unknown[]) => {
        if (this.#inServer) return 0;
        if (!this.#running.getStore()) return (real[name] as Function)(run, ...rest) as unknown;
        const [ms, ...args] = name === "setImmediate" ? [0, ...rest] : rest;
        return start(name === "setInterval", run, ms as number, args);
      };
    const clear = (name: "clearTimeout" | "clearInterval" | "clearImmediate") => {
      const before = (real as unknown as Record<string, (timer: unknown) => void>)[name]!;
      return (timer: unknown) => {
        if (isFake(timer)) timer.later.cancel();
        else before(timer);
      };
    };
    return {
      setTimeout: fake("setTimeout"),
      setInterval: fake("setInterval"),
      setImmediate: fake("setImmediate"),
      clearTimeout: clear("clearTimeout"),
      clearInterval: clear("clearInterval"),
      clearImmediate: clear("clearImmediate"),
    };
  }
}

interface FakeTimer {
  later: Later;
  ref(): FakeTimer;
  unref(): FakeTimer;
  hasRef(): boolean;
}

const isFake = (timer: unknown): timer is FakeTimer =>
  typeof timer === "object" && timer !== null && "later" in timer;

/** Everything that follows from the last event without a wait has happened. */
const settled = (): Promise<void> => new Promise((resolve) => drained(resolve));
