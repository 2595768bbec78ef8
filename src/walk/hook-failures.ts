// What becomes of a hook that fails: it throws what is no refusal, or it takes longer than the operator lets it. Hooks are
// wrapped once per generation; at run time only a hook that returns a promise costs anything.
import { fault, faultOf, type Fault } from "../model/error.ts";
import type { Call, Reply } from "../plugin/call.ts";
import type { Logger } from "../plugin/context.ts";
import type { AttemptResult, Hooks } from "../plugin/middleware.ts";
import type { Watchable, Watchdog } from "./bounds/watchdog.ts";
import { clock, note, waited } from "./hook-notes.ts";

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
export function isWord(problem: unknown): boolean {
  const said = faultOf(problem);
  return said !== undefined && said.kind !== "internal" && !failures.has(said);
}

const MAY_PASS: ReadonlySet<string> = new Set(PASSABLE);

/** For observers: what it was that a hook threw. */
export function blamed(
  { id, onError }: Pick<Tolerance, "id" | "onError">,
  hook: keyof Hooks,
  x: unknown,
  problem: unknown,
  since = 0,
): void {
  const lets = onError === "pass" && MAY_PASS.has(hook);
  note(x, id, hook, isWord(problem) ? "refused" : lets ? "passed_over" : "failed", since);
}

/** Throws a hook's word; anything else the operator lets pass, and reads of. */
export function passOver({ id, log }: Tolerance, hook: string, problem: unknown): void {
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

/** A hook that is not waited for. `whose`: the exchange that it is about. */
export const prompt =
  <A extends readonly unknown[], R>(
    of: Tolerance,
    hook: keyof Hooks,
    run: (...of: A) => R,
    whose: (...of: A) => unknown,
  ): ((...of: A) => R) =>
  (...handed) => {
    try {
      return atOnce(run(...handed));
    } catch (problem) {
      blamed(of, hook, whose(...handed), problem);
      throw problem;
    }
  };

function inTime<T>(
  of: Tolerance,
  hook: keyof Hooks,
  x: unknown,
  waiting: Promise<T>,
  busy?: () => boolean,
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
      reject(problem as Error);
    };
    const deadline = new Deadline(of, hook, failed, busy);
    deadline.start();
    waiting.then((said) => {
      deadline.stop();
      if (since && !over) waited(x, of.id, hook, since);
      resolve(said);
    }, failed);
  });
}

/** A hook of two things that may be waited for. `whose`: the exchange that it is about. `instead`: what it would have said if it were not there. */
export function tolerated<A, B, R>(
  of: Tolerance,
  hook: keyof Hooks,
  run: (a: A, b: B) => R | Promise<R>,
  more: { whose: (a: A, b: B) => unknown; instead?: (a: A) => R; busy?: (a: A) => boolean },
): (a: A, b: B) => R | Promise<R> {
  const { whose, instead, busy } = more;
  const timed = (a: A, b: B): R | Promise<R> => {
    let said: R | Promise<R>;
    try {
      said = run(a, b);
    } catch (problem) {
      blamed(of, hook, whose(a, b), problem);
      throw problem;
    }
    if (!isPromise(said)) return said;
    return inTime(of, hook, whose(a, b), said, busy && (() => busy(a)));
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
  return (call, next) => new Attempt(of, call, next).run(run);
}

class Attempt {
  readonly #of: Tolerance;
  readonly #call: Call;
  readonly #next: () => Promise<Reply>;
  #resolve!: (said: AttemptResult | Promise<AttemptResult>) => void;
  #reject!: (problem: unknown) => void;
  #deadline: Deadline | undefined;
  #asked: Promise<Reply> | undefined;
  /** What came of that, where it was no answer: a hook that lets it through has not failed. */
  #refusal: unknown;
  #over = false;

  constructor(of: Tolerance, call: Call, next: () => Promise<Reply>) {
    this.#of = of;
    this.#call = call;
    this.#next = next;
  }

  run(run: NonNullable<Hooks["attempt"]>): Promise<AttemptResult> {
    let said: ReturnType<typeof run>;
    try {
      said = run(this.#call, () => this.#ask());
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
    asked.then(on, (refusal: unknown) => {
      this.#refusal = refusal;
      on();
    });
  }

  /** Passed over: what it has asked for goes on to the client; if it has not asked, that is done in its place. */
  #failed(problem: unknown): void {
    this.#end(() => {
      if (problem !== this.#refusal) blamed(this.#of, "attempt", this.#call.exchange, problem);
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
