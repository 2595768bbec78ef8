// Requests that carry an Idempotency-Key: which are under way, and what became of those that are over. Nothing of what was asked
// or answered is kept.
import type { Usage } from "../../model/usage.ts";

/** One request, as it is claimed. All of it is hashes and ids. */
export interface IdempotencyClaim {
  /** Of the key that asks and the name that it gave. */
  readonly keyId: string;
  readonly idempotencyKeyHash: string;
  /** Of what was asked. */
  readonly bodyHash: string;
  readonly requestId: string;
}

/** What became of a request. Plain data: it crosses processes. */
export interface IdempotencyOutcome {
  readonly requestId: string;
  readonly status: number;
  readonly usage: Usage;
  /** Null: its price is not known. */
  readonly costNano: string | null;
}

export type ClaimResult =
  | { readonly state: "new" | "running" | "mismatch" }
  | { readonly state: "completed"; readonly outcome: IdempotencyOutcome };

/** Of the whole gateway: one process knows, and the others ask it. */
export interface IdempotencyRegistry {
  /** `owner`: the process that serves it, where that is another one. */
  claim(claim: IdempotencyClaim, owner?: object): ClaimResult | Promise<ClaimResult>;
  /** Undefined: nothing was billed, and the name is free again. */
  complete(
    claim: Pick<IdempotencyClaim, "keyId" | "idempotencyKeyHash" | "requestId">,
    outcome: IdempotencyOutcome | undefined,
  ): void | Promise<void>;
  /** A process has ended. What it had under way may have been billed: it is over, and how is not known. */
  ownerExited(owner: object): void;
}
