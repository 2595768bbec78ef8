// When live lists are asked for: at once when a line is new, then now and again, sooner after a failure, never twice at
// the same time, never on the way of a request. What asking means is handed in; the clock may be too.
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
  now: Date.now,
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

interface Followed {
  line: ListSource;
  failures: number;
  lastError: { at: number; message: string } | undefined;
  nextAt: number | undefined;
  cancel: () => void;
  asking: Promise<void> | undefined;
  stop: AbortController;
}

export function createRefresh(
  lists: Lists,
  options: {
    pace?: Partial<RefreshPace>;
    clock?: Clock;
    /** A line fails that did not, or works again. */
    tell?: (status: ListStatus, error?: unknown) => void;
  } = {},
): Refresh {
  const { deadlineMs } = { ...PACE, ...options.pace };
  let { everyMs } = { ...PACE, ...options.pace };
  const clock = options.clock ?? CLOCK;
  let followed = new Map<string, Followed>();

  const plan = (f: Followed, ms: number): void => {
    f.cancel();
    f.nextAt = clock.now() + ms;
    f.cancel = clock.after(ms, () => void ask(f));
  };

  const ask = (f: Followed): Promise<void> => {
    f.cancel();
    f.nextAt = undefined;
    return (f.asking ??= asked(f).finally(() => (f.asking = undefined)));
  };

  const asked = async (f: Followed): Promise<void> => {
    const { provider, credential } = f.line;
    const failing = f.failures > 0;
    let broken: unknown;
    try {
      const models = await within(f, clock, Math.min(deadlineMs, Math.max(everyMs, LEAST_MS)));
      if (f.stop.signal.aborted) return;
      lists.replace(provider, credential, models, clock.now());
      f.failures = 0;
      f.lastError = undefined;
    } catch (error) {
      if (f.stop.signal.aborted) return;
      f.failures++;
      broken = error;
      f.lastError = { at: clock.now(), message: wordsOf(error) };
    }
    plan(f, pause(f.failures, everyMs, clock.random()));
    if (f.failures > 0 !== failing) options.tell?.(statusOf(f), broken);
  };

  const statusOf = (f: Followed): ListStatus => {
    const { provider, credential } = f.line;
    const heard = lists.of(provider)?.find((h) => h.credential === credential);
    return {
      provider,
      credential,
      count: heard?.models.length,
      lastOk: heard?.at,
      ageMs: heard && Math.max(0, clock.now() - heard.at),
      failures: f.failures,
      lastError: f.lastError,
      nextAt: f.nextAt,
    };
  };

  const release = (f: Followed): void => {
    f.cancel();
    f.stop.abort();
  };

  return {
    follow(lines, pace = everyMs) {
      const before = followed;
      const quicker = pace < everyMs;
      everyMs = pace;
      followed = new Map();
      const credentials = new Map<string, string[]>();
      for (const line of lines) {
        const key = JSON.stringify([line.provider, line.credential]);
        const known = before.get(key);
        before.delete(key);
        const mine = credentials.get(line.provider);
        if (mine) mine.push(line.credential);
        else credentials.set(line.provider, [line.credential]);
        if (known) {
          known.line = line;
          followed.set(key, known);
          if (quicker && known.nextAt !== undefined)
            plan(
              known,
              Math.min(known.nextAt - clock.now(), pause(known.failures, everyMs, clock.random())),
            );
          continue;
        }
        const f: Followed = {
          line,
          failures: 0,
          lastError: undefined,
          nextAt: undefined,
          cancel: () => {},
          asking: undefined,
          stop: new AbortController(),
        };
        followed.set(key, f);
        void ask(f);
      }
      for (const f of before.values()) release(f);
      for (const [provider, names] of credentials) lists.keep(provider, names);
    },
    async now(provider) {
      const wanted = [...followed.values()].filter(
        (f) => provider === undefined || f.line.provider === provider,
      );
      await Promise.all(wanted.map(ask));
    },
    status: () => [...followed.values()].map(statusOf),
    [Symbol.dispose]() {
      for (const f of followed.values()) release(f);
      followed = new Map();
    },
  };
}

/** The deadline holds even for code that does not listen to its signal. */
function within(f: Followed, clock: Clock, deadlineMs: number): Promise<unknown> {
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
