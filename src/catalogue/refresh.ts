// When live lists are asked for: at once when a line is new, then now and again, sooner after a failure, never twice at
// the same time, never on the way of a request. What asking means is handed in; the clock may be too.
import { wallClock } from "../lib/wall-clock.ts";
import { sayable } from "../model/error.ts";
import type { Lists } from "./lists.ts";

/** One credential of one provider, and how to ask for its list. */
export interface ListSource {
  readonly provider: string;
  readonly credential: string;
  models(signal: AbortSignal): Promise<unknown>;
}

/** Plain data, for `tollgate status`. Times are Unix milliseconds. */
export interface ListStatus {
  readonly provider: string;
  readonly credential: string;
  /** Models in the list that is in force; undefined: never heard. */
  readonly count: number | undefined;
  /** When upstream last said so, this process or an earlier one. */
  readonly lastOk: number | undefined;
  readonly ageMs: number | undefined;
  /** Since the last success. */
  readonly failures: number;
  readonly lastError: { readonly at: number; readonly message: string } | undefined;
  readonly nextAt: number | undefined;
}

/** For people and logs: moments as dates. */
export const datedLine = ({ lastOk, lastError, nextAt, ...line }: ListStatus) => ({
  ...line,
  lastOk: dateOf(lastOk),
  lastError: lastError && { ...lastError, at: dateOf(lastError.at) },
  nextAt: dateOf(nextAt),
});
const dateOf = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString();

export interface Refresh extends Disposable {
  /**
   * These lines from now on, at this pace. One that was there before keeps its rhythm unless that is too slow now; one
   * that is not here any more is let go.
   */
  follow(lines: readonly ListSource[], everyMs?: number): void;
  /** Asks now, all or one provider's; resolves when all have answered or failed. */
  now(provider?: string): Promise<void>;
  status(): readonly ListStatus[];
}

export interface Clock {
  now(): number;
  /** Calls back once, later; returns the undo. Must not keep the process alive. */
  after(ms: number, call: () => void): () => void;
  random(): number;
}

export interface RefreshPace {
  everyMs: number;
  deadlineMs: number;
}

const PACE: RefreshPace = { everyMs: 10 * 60_000, deadlineMs: 30_000 };
/** A quick pace has a quick deadline too, but none shorter than this. */
const LEAST_MS = 1_000;
/** After a first failure; doubles with each one more, up to the usual pace. */
const AGAIN_MS = 5_000;

const CLOCK: Clock = {
  now: wallClock,
  random: Math.random,
  after(ms, call) {
    const timer = setTimeout(call, ms).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * How long to wait. Jitter, so that many gateways, or many lines of one, do not ask in step: ±10 % of the usual pace,
 * between half and all of a pause after failures.
 */
export function pause(failures: number, everyMs: number, random: number): number {
  if (failures === 0) return everyMs * (0.9 + 0.2 * random);
  const backoff = Math.min(everyMs, AGAIN_MS * 2 ** Math.min(failures - 1, 30));
  return backoff * (0.5 + 0.5 * random);
}

interface WatchedList {
  line: ListSource;
  failures: number;
  lastError: { at: number; message: string } | undefined;
  nextAt: number | undefined;
  cancel: () => void;
  asking: Promise<void> | undefined;
  stop: AbortController;
}

export interface RefreshOptions {
  readonly pace?: Partial<RefreshPace>;
  readonly clock?: Clock;
  /** A line fails that did not, or works again. */
  readonly tell?: (status: ListStatus, error?: unknown) => void;
}

export const createRefresh = (lists: Lists, options: RefreshOptions = {}): Refresh =>
  new ListRefresh(lists, options);

class ListRefresh implements Refresh {
  readonly #lists: Lists;
  readonly #clock: Clock;
  readonly #tell: RefreshOptions["tell"];
  readonly #deadlineMs: number;
  #everyMs: number;
  #followed = new Map<string, WatchedList>();

  constructor(lists: Lists, { pace, clock = CLOCK, tell }: RefreshOptions) {
    this.#lists = lists;
    this.#clock = clock;
    this.#tell = tell;
    ({ everyMs: this.#everyMs, deadlineMs: this.#deadlineMs } = { ...PACE, ...pace });
  }

  follow(lines: readonly ListSource[], everyMs: number = this.#everyMs): void {
    const before = this.#followed;
    const quicker = everyMs < this.#everyMs;
    this.#everyMs = everyMs;
    this.#followed = new Map();
    for (const line of lines) {
      const key = JSON.stringify([line.provider, line.credential]);
      const known = before.get(key);
      before.delete(key);
      this.#followed.set(key, known ?? newLine(line));
      if (known) this.#goOn(known, line, quicker);
      else void this.#ask(this.#followed.get(key)!);
    }
    for (const f of before.values()) release(f);
    const byProvider = Map.groupBy(lines, ({ provider }) => provider);
    for (const [provider, mine] of byProvider)
      this.#lists.keep(
        provider,
        mine.map(({ credential }) => credential),
      );
  }

  async now(provider?: string): Promise<void> {
    const wanted = [...this.#followed.values()].filter(
      (f) => provider === undefined || f.line.provider === provider,
    );
    await Promise.all(wanted.map((f) => this.#ask(f)));
  }

  status(): readonly ListStatus[] {
    return [...this.#followed.values()].map((f) => this.#statusOf(f));
  }

  [Symbol.dispose](): void {
    for (const f of this.#followed.values()) release(f);
    this.#followed = new Map();
  }

  /** At its own rhythm, unless that is too slow now. */
  #goOn(f: WatchedList, line: ListSource, quicker: boolean): void {
    f.line = line;
    if (quicker && f.nextAt !== undefined)
      this.#plan(f, Math.min(f.nextAt - this.#clock.now(), this.#pause(f)));
  }

  #plan(f: WatchedList, ms: number): void {
    f.cancel();
    f.nextAt = this.#clock.now() + ms;
    f.cancel = this.#clock.after(ms, () => void this.#ask(f));
  }

  #pause({ failures }: WatchedList): number {
    return pause(failures, this.#everyMs, this.#clock.random());
  }

  #ask(f: WatchedList): Promise<void> {
    f.cancel();
    f.nextAt = undefined;
    return (f.asking ??= this.#asked(f).finally(() => (f.asking = undefined)));
  }

  async #asked(f: WatchedList): Promise<void> {
    const { provider, credential } = f.line;
    const failing = f.failures > 0;
    const deadlineMs = Math.min(this.#deadlineMs, Math.max(this.#everyMs, LEAST_MS));
    let broken: unknown;
    try {
      const models = await within(f, this.#clock, deadlineMs);
      if (f.stop.signal.aborted) return;
      this.#lists.replace(provider, credential, models, this.#clock.now());
      f.failures = 0;
      f.lastError = undefined;
    } catch (error) {
      if (f.stop.signal.aborted) return;
      f.failures++;
      broken = error;
      f.lastError = { at: this.#clock.now(), message: wordsOf(error) };
    }
    this.#plan(f, this.#pause(f));
    if (f.failures > 0 !== failing) this.#tell?.(this.#statusOf(f), broken);
  }

  #statusOf({
    line: { provider, credential },
    failures,
    lastError,
    nextAt,
  }: WatchedList): ListStatus {
    const heard = this.#lists.of(provider)?.find((h) => h.credential === credential);
    return {
      provider,
      credential,
      count: heard?.models.length,
      lastOk: heard?.at,
      ageMs: heard && Math.max(0, this.#clock.now() - heard.at),
      failures,
      lastError,
      nextAt,
    };
  }
}

const newLine = (line: ListSource): WatchedList => ({
  line,
  failures: 0,
  lastError: undefined,
  nextAt: undefined,
  cancel: () => {},
  asking: undefined,
  stop: new AbortController(),
});

function release({ cancel, stop }: WatchedList): void {
  cancel();
  stop.abort();
}

/** The deadline holds even for code that does not listen to its signal. */
function within(f: WatchedList, clock: Clock, deadlineMs: number): Promise<unknown> {
  const { stop, line } = f;
  const late = new AbortController();
  return new Promise((resolve, reject) => {
    const cancel = clock.after(deadlineMs, () => {
      late.abort();
      reject(new Error(`no answer within ${deadlineMs / 1000} s`));
    });
    const over = () => reject(new Error("the gateway let go of it"));
    stop.signal.addEventListener("abort", over, { once: true });
    Promise.resolve()
      .then(() => line.models(AbortSignal.any([stop.signal, late.signal])))
      .then(resolve, reject)
      .finally(() => {
        cancel();
        stop.signal.removeEventListener("abort", over);
      });
  });
}

/** The engine's own words say nothing to an operator; they go to the log, with the place that they come from. */
const wordsOf = (error: unknown): string =>
  sayable(
    error,
    "the plugin could not read the answer, which is its mistake; the log says where",
  ).slice(0, 500);
