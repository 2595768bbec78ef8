// An attempt hook that fails: it stands around a call, and what has been asked for may still be handed on.
import { fault } from "../model/error.ts";
import type { Call, Reply } from "../plugin/call.ts";
import type { AttemptResult, Hooks } from "../plugin/middleware.ts";
import {
  blamed,
  Deadline,
  entering,
  named,
  passOver,
  type Tolerance,
  unheeded,
  unusable,
  went,
} from "./hook-failures.ts";

/** An attempt's time stands still while the provider is asked: that has times of its own. */
export function toleratedAttempt(
  of: Tolerance,
  run: NonNullable<Hooks["attempt"]>,
): NonNullable<Hooks["attempt"]> {
  return (call, next) => new Attempt(of, call, next).run(run);
}

/** A reply, a recording or an answer of its own; what is in it is looked at where it is used. */
const isAnswer = (got: unknown): boolean =>
  typeof got === "object" && got !== null && ("headers" in got || "answer" in got || "body" in got);

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
      entering(this.#of, "attempt");
      said = run(this.#call, () => this.#ask());
    } catch (problem) {
      said = Promise.reject(problem as Error);
    }
    // It hands on what it asked for: nothing of its own is waited for.
    if (said !== this.#asked) return this.#waited(said);
    went(this.#of, "attempt");
    return said;
  }

  #waited(said: Promise<AttemptResult> | AttemptResult): Promise<AttemptResult> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#deadline = new Deadline(this.#of, "attempt", (why) => this.#failed(why), undefined);
      if (this.#asked) this.#standStill(this.#asked);
      else this.#deadline.start();
      Promise.resolve(said).then(
        (answer) => {
          if (!isAnswer(answer)) return this.#failed(unusable("attempt gave no answer"));
          this.#end(() => {
            went(this.#of, "attempt");
            resolve(answer);
          });
        },
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
      if (problem === this.#refusal) went(this.#of, "attempt");
      else blamed(this.#of, "attempt", this.#call.exchange, problem);
      if (this.#of.onError === "refuse")
        return this.#reject(
          problem === this.#refusal ? problem : named(this.#of, "attempt", problem),
        );
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
