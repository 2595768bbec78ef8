// What becomes of a hook that fails: it throws what is no refusal, or it takes longer than the operator lets it. Hooks are
// wrapped once per generation; at run time only a hook that returns a promise costs anything.
import { fault, faultOf, type Fault } from "../model/error.ts";
import type { Call, Reply } from "../plugin/call.ts";
import type { Logger } from "../plugin/context.ts";
import type { AttemptResult, Hooks } from "../plugin/middleware.ts";
import type { Watchable, Watchdog } from "./bounds/watchdog.ts";

/** What the operator wrote beside a middleware, and what keeps it. */
export interface Tolerance {
  /** "middleware.guard" */
  readonly id: string;
  readonly timeoutMs: number;
  readonly onError: "refuse" | "pass";
  readonly log: Logger;
  readonly watchdog: Watchdog;
}

/** The hooks whose failure may be passed over. */
export const PASSABLE = ["rewrite", "inspect", "route", "attempt", "watch"] as const;

const failures = new WeakSet<Fault>();

/** Marks what something lent by the host threw: a hook that lets it through has failed, and has refused nothing. */
export function lent<P>(problem: P): P {
  const said = faultOf(problem);
  if (said) failures.add(said);
  return problem;
}

/** A hook's own word on the request, which stands whatever the operator says of failures. */
function isWord(problem: unknown): boolean {
  const said = faultOf(problem);
  return said !== undefined && said.kind !== "internal" && !failures.has(said);
}

/** Throws a hook's word; anything else the operator lets pass, and reads of. */
function passOver({ id, log }: Tolerance, hook: string, problem: unknown): void {
  if (isWord(problem)) throw problem;
  log.warn({ plugin: id, hook, err: problem }, "a hook failed and was passed over");
}

/** When a hook's time is over, once it is waited for. */
class Deadline implements Watchable {
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
  const code = "middleware_timeout";
  return lent(fault("unavailable", "A check in the gateway took too long.", { code }));
}

const isPromise = <T>(said: T | Promise<T>): said is Promise<T> =>
  typeof (said as { then?: unknown } | undefined)?.then === "function";

/**
 * What a hook that nothing waits for has said. A promise is no answer: what it would still do comes too late, so the hook has
 * failed, and what becomes of the promise ends no process.
 */
export function atOnce<T>(said: T): T {
  if (said === undefined || !isPromise(said)) return said;
  unheeded(said as Promise<unknown>);
  throw new TypeError("A hook that is not waited for gave a promise. It must do its work at once.");
}

/** A hook that is not waited for. */
export const prompt =
  <A extends readonly unknown[], R>(run: (...of: A) => R): ((...of: A) => R) =>
  (...of) =>
    atOnce(run(...of));

function inTime<T>(
  of: Tolerance,
  hook: string,
  waiting: Promise<T>,
  busy?: () => boolean,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const deadline = new Deadline(of, hook, reject, busy);
    deadline.start();
    waiting.then(
      (said) => {
        deadline.stop();
        resolve(said);
      },
      (problem: unknown) => {
        deadline.stop();
        reject(problem as Error);
      },
    );
  });
}

/** A hook of two things that may be waited for. `instead`: what it would have said if it were not there. */
export function tolerated<A, B, R>(
  of: Tolerance,
  hook: string,
  run: (a: A, b: B) => R | Promise<R>,
  more: { instead?: (a: A) => R; busy?: (a: A) => boolean } = {},
): (a: A, b: B) => R | Promise<R> {
  const { instead, busy } = more;
  const timed = (a: A, b: B): R | Promise<R> => {
    const said = run(a, b);
    return isPromise(said) ? inTime(of, hook, said, busy && (() => busy(a))) : said;
  };
  if (!instead || of.onError === "refuse") return timed;
  const passed = (a: A, problem: unknown): R => {
    passOver(of, hook, problem);
    return instead(a);
  };
  return (a, b) => {
    try {
      const said = timed(a, b);
      return isPromise(said) ? said.catch((problem: unknown) => passed(a, problem)) : said;
    } catch (problem) {
      return passed(a, problem);
    }
  };
}

/** An attempt's time stands still while the provider is asked: that has times of its own. */
export function toleratedAttempt(
  of: Tolerance,
  run: NonNullable<Hooks["attempt"]>,
): NonNullable<Hooks["attempt"]> {
  return (call, next) => new Attempt(of, next).run(run, call);
}

class Attempt {
  readonly #of: Tolerance;
  readonly #next: () => Promise<Reply>;
  #resolve!: (said: AttemptResult | Promise<AttemptResult>) => void;
  #reject!: (problem: unknown) => void;
  #deadline: Deadline | undefined;
  #asked: Promise<Reply> | undefined;
  #over = false;

  constructor(of: Tolerance, next: () => Promise<Reply>) {
    this.#of = of;
    this.#next = next;
  }

  run(run: NonNullable<Hooks["attempt"]>, call: Call): Promise<AttemptResult> {
    let said: ReturnType<typeof run>;
    try {
      said = run(call, () => this.#ask());
    } catch (problem) {
      said = Promise.reject(problem as Error);
    }
    // It hands on what it asked for: nothing of its own is waited for.
    return said === this.#asked ? said : this.#waited(said);
  }

  #waited(said: Promise<AttemptResult> | AttemptResult): Promise<AttemptResult> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#deadline = new Deadline(this.#of, "attempt", (why) => this.#failed(why), undefined);
      if (this.#asked) this.#standStill(this.#asked);
      else this.#deadline.start();
      Promise.resolve(said).then(
        (answer) => this.#end(() => resolve(answer)),
        (problem: unknown) => this.#failed(problem),
      );
    });
  }

  #ask(): Promise<Reply> {
    // A hook that does not look at what it asked for would end the process with its failure.
    if (this.#over)
      return unheeded(Promise.reject(fault("internal", "next() after the hook was given up.")));
    const asked = this.#next();
    if (this.#asked) return unheeded(asked);
    this.#asked = asked;
    if (this.#deadline) this.#standStill(asked);
    return asked;
  }

  #standStill(asked: Promise<Reply>): void {
    this.#deadline!.stop();
    const on = () => {
      if (!this.#over) this.#deadline!.start();
    };
    asked.then(on, on);
  }

  /** Passed over: what it has asked for goes on to the client; if it has not asked, that is done in its place. */
  #failed(problem: unknown): void {
    this.#end(() => {
      if (this.#of.onError === "refuse") return this.#reject(problem);
      try {
        passOver(this.#of, "attempt", problem);
      } catch (word) {
        return this.#reject(word);
      }
      return this.#resolve(this.#asked ?? this.#next());
    });
  }

  #end(say: () => void): void {
    if (this.#over) return;
    this.#over = true;
    this.#deadline!.stop();
    say();
  }
}

function unheeded<T>(asked: Promise<T>): Promise<T> {
  asked.catch(() => {});
  return asked;
}

/** A watcher that fails under `pass` watches no longer; the answer goes on. */
export function toleratedWatch(
  of: Tolerance,
  run: NonNullable<Hooks["watch"]>,
): NonNullable<Hooks["watch"]> {
  if (of.onError === "refuse") return run;
  return (call, stop) => {
    let watching: ReturnType<typeof run> | undefined;
    const failed = (problem: unknown) => {
      watching = undefined;
      passOver(of, "watch", problem);
    };
    try {
      watching = atOnce(run(call, stop));
    } catch (problem) {
      failed(problem);
    }
    return (event) => {
      try {
        if (watching) atOnce(watching(event));
      } catch (problem) {
        failed(problem);
      }
    };
  };
}
