// Schedules requests for live model lists. A new source is queried immediately, then periodically,
// and sooner after a failure. A source is never queried twice at the same time, and never during a
// request. The query function is passed in, and so can be the clock.
import { wallClock } from "../lib/time/wall-clock.ts";
import { publicErrorText } from "../model/error.ts";
import type { ModelLists } from "./model-lists.ts";

/** One credential of one provider, and the function that fetches its model list. */
export interface ListSource {
  readonly provider: string;
  readonly credential: string;
  fetchModels(signal: AbortSignal): Promise<unknown>;
}

/** Plain data for `tollgate status`. Times are Unix milliseconds. */
export interface ListStatus {
  readonly provider: string;
  readonly credential: string;
  /** Number of models in the current list. Undefined: no list was ever received. */
  readonly modelCount: number | undefined;
  /** When the upstream last returned the list, to this process or an earlier process. */
  readonly lastSuccessAt: number | undefined;
  readonly ageMs: number | undefined;
  /** Failures since the last success. */
  readonly failures: number;
  readonly lastError: { readonly at: number; readonly message: string } | undefined;
  readonly nextRefreshAt: number | undefined;
}

/** Converts times to ISO dates for people and logs. */
export const withIsoDates = ({ lastSuccessAt, lastError, nextRefreshAt, ...line }: ListStatus) => ({
  ...line,
  lastSuccessAt: isoDateOf(lastSuccessAt),
  lastError: lastError && { ...lastError, at: isoDateOf(lastError.at) },
  nextRefreshAt: isoDateOf(nextRefreshAt),
});
const isoDateOf = (at: number | undefined): string | undefined =>
  at === undefined ? undefined : new Date(at).toISOString();

export interface ListRefresher extends Disposable {
  /**
   * Refreshes exactly these sources from now on, at this interval. A source that is already
   * followed keeps its schedule, unless its next refresh is later than the new interval allows. A
   * source that is not in the list is dropped.
   */
  follow(lines: readonly ListSource[], everyMs?: number): void;
  /**
   * Queries all sources, or the sources of one provider, immediately. Resolves when all sources
   * have responded or failed.
   */
  refreshNow(provider?: string): Promise<void>;
  status(): readonly ListStatus[];
}

export interface Clock {
  now(): number;
  /**
   * Calls back once after a delay. Returns a function that cancels the call. The timer must not
   * keep the process running.
   */
  after(ms: number, call: () => void): () => void;
  random(): number;
}

export interface RefreshTimes {
  everyMs: number;
  deadlineMs: number;
}

const DEFAULT_TIMES: RefreshTimes = { everyMs: 10 * 60_000, deadlineMs: 30_000 };
/**
 * Minimum deadline in milliseconds. The deadline is shortened to the interval, but not below this
 * value.
 */
const MIN_DEADLINE_MS = 1_000;
/**
 * Backoff in milliseconds after the first failure. Doubles with each further failure, up to the
 * usual interval.
 */
const FIRST_RETRY_MS = 5_000;

const SYSTEM_CLOCK: Clock = {
  now: wallClock,
  random: Math.random,
  after(ms, call) {
    const timer = setTimeout(call, ms).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Returns the delay in milliseconds. Jitter prevents gateways, or sources of one gateway, from
 * sending queries at the same time: ±10% of the usual interval, and 50% to 100% of the backoff
 * after failures.
 */
export function refreshDelay(failures: number, everyMs: number, random: number): number {
  if (failures === 0) return everyMs * (0.9 + 0.2 * random);
  const backoff = Math.min(everyMs, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 30));
  return backoff * (0.5 + 0.5 * random);
}

interface TrackedList {
  source: ListSource;
  failures: number;
  lastError: { at: number; message: string } | undefined;
  nextAt: number | undefined;
  cancel: () => void;
  refreshing: Promise<void> | undefined;
  abort: AbortController;
}

export interface RefresherOptions {
  readonly times?: Partial<RefreshTimes>;
  readonly clock?: Clock;
  /** Called when a line starts to fail or recovers. */
  readonly onStatusChange?: (status: ListStatus, error?: unknown) => void;
}

export const createListRefresher = (
  lists: ModelLists,
  options: RefresherOptions = {},
): ListRefresher => new PeriodicListRefresher(lists, options);

class PeriodicListRefresher implements ListRefresher {
  readonly #lists: ModelLists;
  readonly #clock: Clock;
  readonly #onStatusChange: RefresherOptions["onStatusChange"];
  readonly #deadlineMs: number;
  #everyMs: number;
  #tracked = new Map<string, TrackedList>();

  constructor(
    lists: ModelLists,
    { times, clock = SYSTEM_CLOCK, onStatusChange }: RefresherOptions,
  ) {
    this.#lists = lists;
    this.#clock = clock;
    this.#onStatusChange = onStatusChange;
    ({ everyMs: this.#everyMs, deadlineMs: this.#deadlineMs } = { ...DEFAULT_TIMES, ...times });
  }

  follow(lines: readonly ListSource[], everyMs: number = this.#everyMs): void {
    const before = this.#tracked;
    const quicker = everyMs < this.#everyMs;
    this.#everyMs = everyMs;
    this.#tracked = new Map();
    for (const line of lines) {
      const key = JSON.stringify([line.provider, line.credential]);
      const known = before.get(key);
      before.delete(key);
      this.#tracked.set(key, known ?? createTracked(line));
      if (known) this.#reschedule(known, line, quicker);
      else void this.#refresh(this.#tracked.get(key)!);
    }
    for (const f of before.values()) release(f);
    const byProvider = Map.groupBy(lines, ({ provider }) => provider);
    for (const [provider, mine] of byProvider)
      this.#lists.retainCredentials(
        provider,
        mine.map(({ credential }) => credential),
      );
  }

  async refreshNow(provider?: string): Promise<void> {
    const wanted = [...this.#tracked.values()].filter(
      (f) => provider === undefined || f.source.provider === provider,
    );
    await Promise.all(wanted.map((f) => this.#refresh(f)));
  }

  status(): readonly ListStatus[] {
    return [...this.#tracked.values()].map((f) => this.#statusOf(f));
  }

  [Symbol.dispose](): void {
    for (const f of this.#tracked.values()) release(f);
    this.#tracked = new Map();
  }

  /**
   * Updates the source of a followed list. Its schedule is kept, unless the next refresh would be
   * too late.
   */
  #reschedule(f: TrackedList, line: ListSource, quicker: boolean): void {
    f.source = line;
    if (quicker && f.nextAt !== undefined)
      this.#schedule(f, Math.min(f.nextAt - this.#clock.now(), this.#delayOf(f)));
  }

  #schedule(f: TrackedList, ms: number): void {
    f.cancel();
    f.nextAt = this.#clock.now() + ms;
    f.cancel = this.#clock.after(ms, () => void this.#refresh(f));
  }

  #delayOf({ failures }: TrackedList): number {
    return refreshDelay(failures, this.#everyMs, this.#clock.random());
  }

  #refresh(f: TrackedList): Promise<void> {
    f.cancel();
    f.nextAt = undefined;
    return (f.refreshing ??= this.#fetchAndUpdate(f).finally(() => (f.refreshing = undefined)));
  }

  async #fetchAndUpdate(f: TrackedList): Promise<void> {
    const { provider, credential } = f.source;
    const failing = f.failures > 0;
    const deadlineMs = Math.min(this.#deadlineMs, Math.max(this.#everyMs, MIN_DEADLINE_MS));
    let broken: unknown;
    try {
      const models = await withDeadline(f, this.#clock, deadlineMs);
      if (f.abort.signal.aborted) return;
      this.#lists.update(provider, credential, models, this.#clock.now());
      f.failures = 0;
      f.lastError = undefined;
    } catch (error) {
      if (f.abort.signal.aborted) return;
      f.failures++;
      broken = error;
      f.lastError = { at: this.#clock.now(), message: errorTextOf(error) };
    }
    this.#schedule(f, this.#delayOf(f));
    if (f.failures > 0 !== failing) this.#onStatusChange?.(this.#statusOf(f), broken);
  }

  #statusOf({
    source: { provider, credential },
    failures,
    lastError,
    nextAt,
  }: TrackedList): ListStatus {
    const list = this.#lists.of(provider)?.find((h) => h.credential === credential);
    return {
      provider,
      credential,
      modelCount: list?.models.length,
      lastSuccessAt: list?.at,
      ageMs: list && Math.max(0, this.#clock.now() - list.at),
      failures,
      lastError,
      nextRefreshAt: nextAt,
    };
  }
}

const createTracked = (line: ListSource): TrackedList => ({
  source: line,
  failures: 0,
  lastError: undefined,
  nextAt: undefined,
  cancel: () => {},
  refreshing: undefined,
  abort: new AbortController(),
});

function release({ cancel, abort }: TrackedList): void {
  cancel();
  abort.abort();
}

/** Enforces the deadline even if the plugin's code ignores its signal. */
function withDeadline(f: TrackedList, clock: Clock, deadlineMs: number): Promise<unknown> {
  const { abort, source } = f;
  const timeout = new AbortController();
  return new Promise((resolve, reject) => {
    const cancel = clock.after(deadlineMs, () => {
      timeout.abort();
      reject(new Error(`no answer within ${deadlineMs / 1000} s`));
    });
    const onAbort = () => reject(new Error("the refresh was canceled"));
    abort.signal.addEventListener("abort", onAbort, { once: true });
    Promise.resolve()
      .then(() => source.fetchModels(AbortSignal.any([abort.signal, timeout.signal])))
      .then(resolve, reject)
      .finally(() => {
        cancel();
        abort.signal.removeEventListener("abort", onAbort);
      });
  });
}

/**
 * Returns an error text for operators. Internal messages of the JavaScript engine go to the log
 * instead, with their location.
 */
const errorTextOf = (error: unknown): string =>
  publicErrorText(
    error,
    "the plugin failed to parse the response because of a bug in the plugin; see the gateway log",
  ).slice(0, 500);
