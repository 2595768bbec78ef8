// Implements the Idempotency-Key header of the admin API. A command that is repeated with the same
// key is executed once, and later requests get the same result. Results are kept in memory for 10
// minutes, because the result of keys.create contains the secret. They are stored by principal. The
// dispatcher checks role and account again before it returns a stored result.
import { hash } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { fail, getFault } from "../../model/error.ts";

const TTL_MS = 10 * 60_000;
/** Maximum number of results per principal. */
const MAX_PER_PRINCIPAL = 100;
const MAX_PRINCIPALS = 1_000;
const KEY_PATTERN = /^[!-~]{1,255}$/;

interface CachedResult {
  readonly requestHash: string;
  readonly result: Promise<unknown>;
  readonly expiresAt: number;
}

export class IdempotencyCache {
  /** Results by principal, so that no principal displaces the results of another. */
  readonly #results = new BoundedMap<string, BoundedMap<string, CachedResult>>(MAX_PRINCIPALS);

  /**
   * Returns the stored result, or runs the command. `principal`: from `principalId`. `request`: the
   * command, and all data on which its result depends.
   */
  getOrRun(
    { principal, key }: { readonly principal: string; readonly key: string },
    request: readonly unknown[],
    run: () => Promise<unknown>,
  ): Promise<unknown> {
    if (!KEY_PATTERN.test(key))
      fail("invalid", "Idempotency-Key must be 1 to 255 printable characters.", {
        code: "bad_idempotency_key",
      });
    this.#evictExpired();
    const own =
      this.#results.get(principal) ?? new BoundedMap<string, CachedResult>(MAX_PER_PRINCIPAL);
    const sum = hash("sha256", JSON.stringify(request));
    const found = own.get(key);
    if (found)
      return found.requestHash === sum
        ? found.result
        : fail("mismatch", "This Idempotency-Key was already used for a different request.", {
            code: "idempotency_mismatch",
          });
    const answer = run();
    own.set(key, { requestHash: sum, result: answer, expiresAt: performance.now() + TTL_MS });
    this.#results.set(principal, own);
    // A command that failed with an internal error may run again. A rejection remains stored.
    answer.catch((error: unknown) => {
      if (!getFault(error)) own.delete(key);
    });
    return answer;
  }

  /**
   * Drops expired results. A result may contain a secret, so it is stored only as long as
   * necessary.
   */
  #evictExpired(): void {
    const now = performance.now();
    for (const [principal, own] of this.#results.entries()) {
      for (const [key, { expiresAt }] of own.entries()) if (expiresAt <= now) own.delete(key);
      if (own.size === 0) this.#results.delete(principal);
    }
  }
}
