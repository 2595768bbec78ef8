// What becomes of a hook that fails: it throws what is no refusal, or it takes longer than the operator lets it. Hooks are
// wrapped once per generation; at run time only a hook that returns a promise costs anything.
import { isPromise } from "../lib/promise.ts";
import { fault, faultOf, type Fault } from "../model/error.ts";
import type { Logger } from "../plugin/context.ts";
import { HOOKS, type Hooks } from "../plugin/middleware.ts";
import type { Watchable, Watchdog } from "./bounds/watchdog.ts";
import type { Conduct } from "./conduct.ts";
import { clock, note, waited } from "./hook-notes.ts";

/** What the operator wrote beside a middleware, and what keeps it. */
export interface Tolerance {
  /** "middleware.guard" */
  readonly id: string;
  readonly timeoutMs: number;
  readonly onError: "refuse" | "pass";
  readonly log: Logger;
  readonly watchdog: Watchdog;
  /** How each of its hooks has behaved. */
  readonly conducts: { readonly [hook: string]: Conduct | undefined };
}

/** The hooks whose failure may be passed over. */
export const PASSABLE = ["edit", "rewrite", "inspect", "route", "attempt", "watch"] as const;

const failures = new WeakSet<Fault>();

/** Marks what something lent by the host threw: a hook that lets it through has failed, and has refused nothing. */
export function lent<P>(problem: P): P {
  const said = faultOf(problem);
  if (said) failures.add(said);
  return problem;
}

/** A hook's own word on the request, which stands whatever the operator says of failures. */
export function isWord(problem: unknown): boolean {
  const said = faultOf(problem);
  return said !== undefined && said.kind !== "internal" && !failures.has(said);
}

const MAY_PASS: ReadonlySet<string> = new Set(PASSABLE);

/** A middleware's, or what a route is read or served by. */
export type Asked = keyof Hooks | "read" | "serve";

const isHook = (asked: Asked): asked is keyof Hooks => asked in HOOKS;

/** It was not asked, and has not failed once more. */
const unasked = new WeakSet<object>();
const invalid = new WeakSet<object>();
const slow = new WeakSet<object>();

export const isUnasked = (problem: unknown): boolean => unasked.has(problem as object);

/** Where a hook is not asked for now, this is thrown in its place. Only what something is known against is looked at. */
export function entering({ conducts }: Pick<Tolerance, "conducts">, hook: string): void {
  const conduct = conducts[hook];
  if (conduct && !conduct.well && !conduct.enter()) throw notAsked(conduct);
}

/** Thrown before a provider is asked for an answer that would have to pass such a hook. */
export function barring({ conducts, onError }: Tolerance, hook: "event" | "watch"): void {
  if (hook === "watch" && onError === "pass") return;
  const conduct = conducts[hook];
  if (conduct && !conduct.well && conduct.away) throw notAsked(conduct);
}

function notAsked(conduct: Conduct): Error {
  const refusal = lent(conduct.refusal());
  unasked.add(refusal);
  return refusal;
}

/** What a hook gave cannot be used. */
export function unusable(why: string): Error {
  const problem = new TypeError(why);
  invalid.add(problem);
  return problem;
}

/** It has done its work: a refusal of its own is work too. */
export function went({ conducts }: Pick<Tolerance, "conducts">, hook: string): void {
  const conduct = conducts[hook];
  if (conduct && !conduct.well) conduct.went();
}

/** The client that it was asked for. */
const callerOf = (x: unknown): unknown => {
  const { identity, address } = (x ?? {}) as { identity?: { id: string }; address?: string };
  return identity?.id ?? address;
};

/** What it was that a hook threw: for observers, and for how it is seen from now on. */
export function blamed(
  { id, onError, conducts }: Pick<Tolerance, "id" | "onError" | "conducts">,
  hook: Asked,
  x: unknown,
  problem: unknown,
  since = 0,
): void {
  const lets = onError === "pass" && MAY_PASS.has(hook);
  const word = isWord(problem);
  if (isHook(hook)) note(x, id, hook, word ? "refused" : lets ? "passed_over" : "failed", since);
  if (word) return went({ conducts }, hook);
  const kind = problem as object;
  if (!unasked.has(kind)) conducts[hook]?.failed(whyOf(kind), callerOf(x));
}

const whyOf = (problem: object): "invalid" | "slow" | "threw" =>
  invalid.has(problem) ? "invalid" : slow.has(problem) ? "slow" : "threw";

/**
 * As the client is told of a failure, by the plugin's name in gateway.yaml and no word of what it threw; the log has that. A fault
 * keeps its own words.
 */
export function named({ id, log }: Pick<Tolerance, "id" | "log">, hook: string, problem: unknown) {
  if (faultOf(problem)) return problem;
  log.error({ plugin: id, hook, err: problem }, "a hook failed");
  return fault("internal", `${id} failed (${hook}). The request id names it in the log.`, {
    code: "plugin_failed",
    details: { plugin: id, hook },
    cause: problem,
  });
}

/** Throws a hook's word; anything else the operator lets pass, and reads of. */
export function passOver({ id, log }: Tolerance, hook: string, problem: unknown): void {
  if (isWord(problem)) throw problem;
  // One line tells of the whole quarantine.
  if (unasked.has(problem as object)) return;
  log.warn({ plugin: id, hook, err: problem }, "a hook failed and was passed over");
}

/** When a hook's time is over, once it is waited for. */
export class Deadline implements Watchable {
  watchedAt = -1;
  /** Set by the first tick: most hooks are over before it, and reading a clock for each would cost more than they do. */
  #due = -1;
  readonly #of: Tolerance;
  readonly #hook: string;
  readonly #cut: (problem: unknown) => void;
  readonly #busy: (() => boolean) | undefined;

  /** `busy`: it waits for the client and not the other way round. */
  constructor(
    of: Tolerance,
    hook: string,
    cut: (problem: unknown) => void,
    busy: (() => boolean) | undefined,
  ) {
    this.#of = of;
    this.#hook = hook;
    this.#cut = cut;
    this.#busy = busy;
  }

  start(): void {
    this.#due = -1;
    this.#of.watchdog.watch(this);
  }
  stop(): void {
    this.#of.watchdog.leave(this);
  }
  tick(now: number): void {
    if (this.#due < 0) this.#due = now + this.#of.timeoutMs;
    if (now < this.#due) return;
    if (this.#busy?.()) return this.start();
    this.stop();
    this.#cut(late(this.#of, this.#hook));
  }
}

/** The client is told that it was the gateway's own doing; the operator, which hook it was. */
export function late({ id, timeoutMs, log }: Tolerance, hook: string): Error {
  log.warn({ plugin: id, hook, timeout_ms: timeoutMs }, "a hook took too long");
  const problem = fault("unavailable", `${id} took too long (${hook}).`, {
    code: "middleware_timeout",
    details: { plugin: id, hook },
  });
  slow.add(problem);
  return lent(problem);
}

/**
 * What a hook that nothing waits for has said. A promise is no answer: what it would still do comes too late, so the hook has
 * failed, and what becomes of the promise ends no process.
 */
export function atOnce<T>(said: T): T {
  if (said === undefined || !isPromise(said)) return said;
  unheeded(said as Promise<unknown>);
  throw new TypeError("A hook that is not waited for gave a promise. It must do its work at once.");
}

function inTime<T>(
  of: Tolerance,
  hook: Asked,
  x: unknown,
  waiting: Promise<T>,
  more: { instead(problem: unknown): T; busy?: (() => boolean) | undefined },
): Promise<T> {
  const since = clock(x);
  return new Promise((resolve, reject) => {
    let over = false;
    const failed = (problem: unknown) => {
      // It was late, and what it says now is not looked at.
      if (over) return;
      over = true;
      deadline.stop();
      blamed(of, hook, x, problem, since);
      try {
        resolve(more.instead(problem));
      } catch (word) {
        reject(word as Error);
      }
    };
    const deadline = new Deadline(of, hook, failed, more.busy);
    deadline.start();
    waiting.then((said) => {
      if (over) return;
      over = true;
      deadline.stop();
      if (since && isHook(hook)) waited(x, of.id, hook, since);
      went(of, hook);
      resolve(said);
    }, failed);
  });
}

/** A hook of two things that may be waited for. `whose`: the exchange that it is about. `instead`: what it would have said if it were not there. */
export function tolerated<A, B, R>(
  of: Tolerance,
  hook: Asked,
  run: (a: A, b: B) => R | Promise<R>,
  more: {
    whose: (a: A, b: B) => unknown;
    instead?: (a: A) => R;
    busy?: (a: A) => boolean;
    /** Throws where it cannot be used. */
    check?: (said: R, a: A) => void;
    /** What it threw is told of elsewhere. */
    raw?: boolean;
  },
): (a: A, b: B) => R | Promise<R> {
  const { whose, instead, busy, check, raw } = more;
  const refuses = !instead || of.onError === "refuse";
  const without = (a: A, problem: unknown): R => {
    if (refuses) throw raw ? problem : named(of, hook, problem);
    passOver(of, hook, problem);
    return instead(a);
  };
  return (a, b) => {
    let said: R | Promise<R>;
    try {
      entering(of, hook);
      said = run(a, b);
      if (!isPromise(said)) {
        check?.(said, a);
        went(of, hook);
        return said;
      }
    } catch (problem) {
      blamed(of, hook, whose(a, b), problem);
      return without(a, problem);
    }
    const checked = check ? said.then((got) => (check(got, a), got)) : said;
    return inTime(of, hook, whose(a, b), checked, {
      instead: (problem) => without(a, problem),
      busy: busy && (() => busy(a)),
    });
  };
}

/** What becomes of it ends no process. */
export function unheeded<T>(asked: Promise<T>): Promise<T> {
  asked.catch(() => {});
  return asked;
}
