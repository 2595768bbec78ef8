// An Idempotency-Key: what was asked under one name is done once, and asked again it has the same answer. In memory, for a while: the
// answer to what makes a key has its secret.
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

  once(key: string, asked: readonly unknown[], make: () => Promise<unknown>): Promise<unknown> {
    if (!FORM.test(key))
      fail("invalid", "An Idempotency-Key is 1 to 255 printable characters.", {
        code: "bad_idempotency_key",
      });
    const name = JSON.stringify([asked[0], key]);
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
