// Tracks requests with an Idempotency-Key: requests in progress, and the outcomes of finished ones.
// No content of requests or responses is stored.
import type { Usage } from "../../model/usage.ts";

/** The claim of one request. It contains only hashes and IDs. */
export interface IdempotencyClaim {
  /** The key that sent the request. Idempotency keys of different keys do not collide. */
  readonly keyId: string;
  readonly idempotencyKeyHash: string;
  /** Hash of the request's body. */
  readonly bodyHash: string;
  readonly requestId: string;
}

/** The outcome of a request. It is plain data, so that it can be sent between processes. */
export interface IdempotencyOutcome {
  readonly requestId: string;
  readonly status: number;
  readonly usage: Usage;
  /** Cost in nanodollars. Null if the price is unknown. */
  readonly costNano: string | null;
}

export type ClaimResult =
  | { readonly state: "new" | "running" | "mismatch" }
  | { readonly state: "completed"; readonly outcome: IdempotencyOutcome };

/**
 * Registry of the whole gateway. One process holds it, and the other processes send requests to
 * that process.
 */
export interface IdempotencyRegistry {
  /**
   * Claims an idempotency key. `owner`: the process that serves the request, if it is not this one.
   */
  claim(claim: IdempotencyClaim, owner?: object): ClaimResult | Promise<ClaimResult>;
  /**
   * Completes a claim. If `outcome` is undefined, nothing was billed and the idempotency key can be
   * used again.
   */
  complete(
    claim: Pick<IdempotencyClaim, "keyId" | "idempotencyKeyHash" | "requestId">,
    outcome: IdempotencyOutcome | undefined,
  ): void | Promise<void>;
  /**
   * Called when a process exits. Its requests in progress may have been billed, so they count as
   * completed with an unknown outcome.
   */
  ownerExited(owner: object): void;
}
