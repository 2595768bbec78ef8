// Requests that carry an Idempotency-Key: which are under way, and what became of those that are over. Nothing of what was asked
// or answered is kept.
import type { Usage } from "../model/usage.ts";

/** One request, as it is claimed. All of it is hashes and ids. */
export interface ClaimedRequest {
  /** Of the key that asks and the name that it gave. */
  readonly who: string;
  readonly name: string;
  /** Of what was asked. */
  readonly body: string;
  readonly request: string;
}

/** What became of a request. Plain data: it crosses processes. */
export interface ClaimOutcome {
  readonly request: string;
  readonly status: number;
  readonly usage: Usage;
  /** Null: its price is not known. */
  readonly costNano: string | null;
}

export type Claimed =
  | { readonly state: "new" | "running" | "other" }
  | { readonly state: "over"; readonly outcome: ClaimOutcome };

/** Of the whole gateway: one process knows, and the others ask it. */
export interface Claims {
  /** `owner`: the process that serves it, where that is another one. */
  begin(claim: ClaimedRequest, owner?: object): Claimed | Promise<Claimed>;
  /** Undefined: nothing was billed, and the name is free again. */
  end(
    claim: Pick<ClaimedRequest, "who" | "name" | "request">,
    outcome: ClaimOutcome | undefined,
  ): void | Promise<void>;
  /** A process has ended. What it had under way may have been billed: it is over, and how is not known. */
  gone(owner: object): void;
}
