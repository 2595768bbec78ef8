// Idempotency-Key on the admin API: a command that is repeated under one key is executed once, and later calls get the same result. Results
// are kept in memory for 10 minutes, because the result of keys.create contains the secret. They are keyed by principal, and the gate
// checks role and account again before it hands one out.
import { hash } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { fail, faultOf } from "../../model/error.ts";

const KEPT_MS = 10 * 60_000;
const MOST = 500;
const FORM = /^[!-~]{1,255}$/;

interface MadeOnce {
  readonly asked: string;
  readonly answer: Promise<unknown>;
  readonly until: number;
}

export class Made {
  readonly #made = new BoundedMap<string, MadeOnce>(MOST);

  /** `principal`: from `principalId`. `asked`: the command and everything its result depends on. */
  once(
    { principal, key }: { readonly principal: string; readonly key: string },
    asked: readonly unknown[],
    make: () => Promise<unknown>,
  ): Promise<unknown> {
    if (!FORM.test(key))
      fail("invalid", "An Idempotency-Key is 1 to 255 printable characters.", {
        code: "bad_idempotency_key",
      });
    const name = JSON.stringify([principal, key]);
    const sum = hash("sha256", JSON.stringify(asked));
    const found = this.#made.get(name);
    if (found && found.until > performance.now())
      return found.asked === sum
        ? found.answer
        : fail("mismatch", "This Idempotency-Key was used for something else.", {
            code: "idempotency_mismatch",
          });
    const answer = make();
    this.#made.set(name, { asked: sum, answer, until: performance.now() + KEPT_MS });
    // What went wrong on our side is worth another try; what is refused stays refused.
    answer.catch((error: unknown) => {
      if (!faultOf(error)) this.#made.delete(name);
    });
    return answer;
  }
}
