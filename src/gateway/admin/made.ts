// Idempotency-Key on the admin API: a command that is repeated under one key is executed once, and later calls get the same result. Results
// are kept in memory for 10 minutes, because the result of keys.create contains the secret. They are keyed by principal, and the gate
// checks role and account again before it hands one out.
import { hash } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { fail, faultOf } from "../../model/error.ts";

const KEPT_MS = 10 * 60_000;
/** Results of one principal. */
const MOST = 100;
const MOST_PRINCIPALS = 1_000;
const FORM = /^[!-~]{1,255}$/;

interface MadeOnce {
  readonly asked: string;
  readonly answer: Promise<unknown>;
  readonly until: number;
}

export class Made {
  /** By principal: no principal takes the place of another one's results. */
  readonly #made = new BoundedMap<string, BoundedMap<string, MadeOnce>>(MOST_PRINCIPALS);

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
    this.#forget();
    const own = this.#made.get(principal) ?? new BoundedMap<string, MadeOnce>(MOST);
    const sum = hash("sha256", JSON.stringify(asked));
    const found = own.get(key);
    if (found)
      return found.asked === sum
        ? found.answer
        : fail("mismatch", "This Idempotency-Key was used for something else.", {
            code: "idempotency_mismatch",
          });
    const answer = make();
    own.set(key, { asked: sum, answer, until: performance.now() + KEPT_MS });
    this.#made.set(principal, own);
    // What went wrong on our side is worth another try; what is refused stays refused.
    answer.catch((error: unknown) => {
      if (!faultOf(error)) own.delete(key);
    });
    return answer;
  }

  /** A result may contain a secret: it is held no longer than for its time. */
  #forget(): void {
    const now = performance.now();
    for (const [principal, own] of this.#made.entries()) {
      for (const [key, { until }] of own.entries()) if (until <= now) own.delete(key);
      if (own.size === 0) this.#made.delete(principal);
    }
  }
}
