// Calls that are not calls of models, such as calls of tools. A plugin makes the call itself, and
// the host reserves it before and settles it afterwards, like a call of a model.
import type { ErrorKind } from "../../model/error.ts";
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { Opt } from "../../model/values.ts";
import type { RequestHead } from "../exchange.ts";

/** A call that a plugin wants to make on behalf of a client's request. */
export interface OpenCallOptions {
  /** The client's request. Its key is charged, and its limits, scopes, and privacy apply. */
  readonly parentRequest: RequestHead;
  /** Name of the called service in the ledger, such as "mcp:github". */
  readonly provider: string;
  /** Name of the called function in the ledger, such as the name of a tool. */
  readonly model: string;
  /** ID of the protocol of the call, such as "mcp". */
  readonly protocol: string;
  /** Name of the credential, never its value. Default: "default". */
  readonly credential?: Opt<string>;
  /** Price of the call. It is pinned when the call is reserved. Default: the call is free. */
  readonly price?: Opt<Price>;
  /** Usage that is reserved. Default: one run of a tool. */
  readonly usage?: Opt<Usage>;
  /**
   * Keyed hash of the arguments, which the reserve row contains. It identifies equal calls without
   * the content. At most 64 characters. Default: none.
   */
  readonly argumentsHash?: Opt<string>;
  /**
   * Whether the called service stores no content. If not, the call is rejected for a request that
   * requires zero data retention. Default: false.
   */
  readonly hasZeroRetention?: Opt<boolean>;
}

/** A reserved call. Its ledger row is durable. */
export interface OpenCall {
  /** ID of the call. Ledger rows refer to it. */
  readonly id: string;
  /**
   * Settles the call once. Resolves when the row is durable, or after at most 2 s. Never rejects.
   * Later calls have no effect. A call that is not settled when its request ends is settled as
   * estimated.
   */
  settle(result: OpenCallResult): Promise<void>;
}

/** Result of a call that a plugin made. */
export interface OpenCallResult {
  /** How the call ended: `ok`, or the kind of the error. */
  readonly outcome: "ok" | ErrorKind;
  /**
   * How certain the cost is. `exact`: the service reported the result. `estimated`: the service may
   * have run the call. `void`: the service did not run the call, so nothing is billed.
   */
  readonly state: "exact" | "estimated" | "void";
  /** Units that the call used. Default: the reserved usage, and nothing for `void`. */
  readonly usage?: Opt<Usage>;
  /** The service's ID of the result. At most 256 characters. */
  readonly upstreamId?: Opt<string>;
  /** Time from the start of the call to the first byte of the result, in milliseconds. */
  readonly headersMs?: Opt<number>;
}
