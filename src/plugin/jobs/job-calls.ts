// Calls that end long after their request, such as the generation of a video. A job engine polls the
// provider, and bills the call once when it has ended.
import type { ModelRequest } from "../../model/request.ts";
import type { Price } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { BatchClient } from "../batch.ts";
import type { RequestHead } from "../exchange.ts";
import type { EndpointVideos } from "./video.ts";
import type { Limit } from "../store/limit.ts";

/** Plans, reserves, and bills calls that are jobs. */
export interface JobCalls {
  /**
   * Routes a request to a provider that can run it as a job, and calculates its reservation. The
   * hooks `rewrite`, `inspect`, `route`, and `charge` of middleware apply. Throws the error for the
   * client. It sends nothing, and writes nothing to the ledger.
   */
  planCall(request: ModelRequest, of: PlanCallOptions): Promise<PlannedCall>;
  /**
   * Reserves the call for the client of the request. Throws the error of the limit that denies it.
   * Repeating it changes nothing.
   */
  reserveCall(
    attempt: string,
    call: PlannedCall,
    of: { readonly parentRequest: RequestHead },
  ): Promise<void>;
  /**
   * Bills a call that has ended, and releases the rest of its reservation. Repeating it bills
   * nothing again. Returns the cost.
   */
  settleCall(attempt: string, end: JobCallEnd): Promise<JobCallCost>;
  /**
   * Returns the videos of the provider for which a call was planned. Undefined if gateway.yaml does
   * not contain the provider any more.
   */
  openVideos(target: JobTarget, signal: AbortSignal): OpenVideos | undefined;
}

/** Options of `planCall`. */
export interface PlanCallOptions {
  /** The client's request that creates the job. Its key, limits, and privacy apply. */
  readonly parentRequest: RequestHead;
  /** The only target that can run the request, because it stores an object that is named in it. */
  readonly target?: Opt<JobTarget>;
}

/** The provider, model, and credential of a job's call. It is plain data. */
export interface JobTarget {
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Name of the credential, never its value. */
  readonly credential: string;
}

/** A call that was planned. */
export interface PlannedCall {
  /** Provider, model, and credential of the call. */
  readonly target: JobTarget;
  /** The request, after the hooks of middleware. */
  readonly request: ModelRequest;
  /** Limits that the call counts against, with the amount to take from each. */
  readonly claims: readonly (Limit & { take: bigint })[];
  /** Highest cost of the call in billionths of a US dollar. `null` if no price is known. */
  readonly holdNano: bigint | null;
  /**
   * Price of the model now. Keep it with the job and pass it to `settleCall`, so that a later change
   * of the catalog does not change the bill.
   */
  readonly price?: Opt<Price>;
  /** Time whose prices apply, in Unix milliseconds. */
  readonly pricedAt: number;
  /** Labels for the row of the call. */
  readonly labels: HeadersOut;
}

/** How a job's call ended. */
export interface JobCallEnd {
  /** Price that `planCall` returned. */
  readonly price: Opt<Price>;
  /** Time whose prices apply, as `planCall` returned it. */
  readonly pricedAt: number;
  /**
   * Usage that the provider reported, or an empty object if it bills nothing. `unknown`: the
   * provider may have billed the call, so its reservation is billed as an estimate.
   */
  readonly usage: Usage | "unknown";
  /** Size that selects the price, such as `1280x720`. */
  readonly size?: Opt<string>;
  /** Reservation of the call, which is billed if the usage is unknown. */
  readonly holdNano: bigint | null;
  /** How the job ended, as its engine names it, such as `ok` or `failed`. */
  readonly outcome: string;
  /** The provider's ID of the call. */
  readonly upstreamId?: Opt<string>;
}

/** Cost of a job's call. */
export interface JobCallCost {
  /**
   * `exact`: the price lists each unit of the usage. `estimated`: the cost is an estimate. `void`:
   * nothing was billed. `unpriced`: no price is known.
   */
  readonly state: "exact" | "estimated" | "void" | "unpriced";
  /** Cost in billionths of a US dollar. `null` if no price is known. */
  readonly costNano: bigint | null;
}

/** Videos of a provider, with the client for its API. */
export interface OpenVideos {
  /** The provider's API for videos. */
  readonly videos: EndpointVideos;
  /** Client with the credential of the call. */
  readonly client: BatchClient;
}
