// The lines of a job, as a job engine runs them. A line is an ordinary request: the frontend of its
// path decodes it, middleware hooks apply, and its provider may speak another protocol.
import type { EndpointBatches, BatchClient, BatchResult } from "../batch.ts";
import type { EndpointBackground } from "../jobs/background.ts";
import type { CallRecord } from "../call.ts";
import type { RequestHead } from "../exchange.ts";
import type { Limit } from "./limit.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { Price } from "../../model/facts.ts";

/** Runs the lines of jobs through the request pipeline, and bills them. */
export interface JobLines {
  /**
   * Checks a line, and chooses the provider that can run it in a batch. Throws the error that the
   * request would get outside of a job. It sends nothing, and writes nothing to the ledger.
   */
  planLine(line: JobLine, of: PlanOptions): Promise<PlannedLine>;
  /**
   * Reserves the sum of the lines of a job for the client of the request. Throws the error of the
   * limit that denies it. Repeating it changes nothing.
   */
  reserveJob(job: JobReservation, of: { readonly parentRequest: RequestHead }): Promise<void>;
  /**
   * Bills a line by its result, and returns the response for the client in the protocol of the
   * line's path. The line takes its part of the job's reservation. Repeating it bills nothing again.
   * Throws only if the result could not be processed now, or if the bill is not durable. The line
   * then has no bill, and its call may be open until the result is processed again.
   */
  settleLine(line: JobLine, result: BatchResult, of: LineSettlement): Promise<LineResponse>;
  /**
   * Sends a direct line to its provider now, and bills it. It takes its part of the job's
   * reservation, and its row is written before it is sent. Returns undefined if the gateway is busy:
   * nothing was written, so the line can be sent later with the same `turn`. Throws without a bill if
   * the provider is unavailable or limits the rate, or if `stopping` has aborted. Then use the next
   * `turn`. The error may be shown to the client. Any other error is the response.
   */
  runLine(line: JobLine, of: LineRun): Promise<LineRunResponse | undefined>;
  /**
   * Ends the reservation of a job, and releases what no line took. `costNano`: the estimated cost of
   * lines whose results are lost. Repeating it changes nothing. If `settleLine` left the call of a
   * line open and its result will not be processed again, it ends that call in the same way: `attempt`
   * is then `<attempt>.<line>.1`.
   */
  settleJob(
    attempt: string,
    of: { readonly costNano: bigint; readonly outcome: string },
  ): Promise<void>;
  /**
   * Returns the batches of the provider for which lines were planned. Undefined if gateway.yaml does
   * not contain the provider any more, or if the target is direct.
   */
  openBatches(target: BatchTarget, signal: AbortSignal): OpenBatches | undefined;
  /**
   * Returns the background mode of the provider for which a request was planned. Undefined if
   * gateway.yaml does not contain the provider any more.
   */
  openBackground(target: BatchTarget, signal: AbortSignal): OpenBackground | undefined;
}

/** A line: a POST request to a path of a frontend. */
export interface JobLine {
  /** Path without parameters, such as "/v1/chat/completions". */
  readonly path: string;
  /** JSON text of the body. */
  readonly body: Buffer;
}

/** Options of `planLine`. */
export interface PlanOptions {
  /** The client's request that creates the job. Its key, limits, and privacy apply. */
  readonly parentRequest: RequestHead;
  /** Targets that other lines of the job have. They are preferred, so that there are few batches. */
  readonly preferred: readonly BatchTarget[];
  /**
   * Whether the target may be direct if no provider of the model runs the line in a batch. An endpoint
   * in another protocol than the line's does not count if the line would lose a field there. Default:
   * false.
   */
  readonly allowsDirect?: Opt<boolean>;
}

/** The provider, model, and credential of a provider batch. It is plain data. */
export interface BatchTarget {
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** Name of the credential, never its value. */
  readonly credential: string;
  /** ID of the protocol that the lines are encoded in. */
  readonly protocol: string;
  /** Whether the client's bytes are forwarded unchanged or the lines are translated. */
  readonly mode: "passthrough" | "translated";
  /** Path of the encoded requests, relative to the base URL of the endpoint. */
  readonly path: string;
  /**
   * Headers of the encoded requests, as in `BatchInput`. If the target is direct: the headers of the
   * request that creates the job, without credentials. `runLine` sends each line with them.
   */
  readonly headers: HeadersOut;
  /**
   * Whether no provider batch runs the lines: the job engine sends each of them with `runLine`, at
   * the price of an ordinary request.
   */
  readonly isDirect?: Opt<boolean>;
  /**
   * Whether the provider runs the request in its background mode, at the price of an ordinary
   * request.
   */
  readonly isBackground?: Opt<boolean>;
}

/** A line that was checked. */
export interface PlannedLine {
  /** Provider, model, and credential that the line is for. */
  readonly target: BatchTarget;
  /**
   * Body in the protocol of the target, as JSON text without line breaks. Empty if the target is
   * direct.
   */
  readonly body: string;
  /** Limits that the line counts against, with the amount to take from each. */
  readonly claims: readonly (Limit & { take: bigint })[];
  /** Highest cost of the line in billionths of a US dollar. `null` if no price is known. */
  readonly holdNano: bigint | null;
  /**
   * Price of the model now. Keep it with the job and pass it to `settleLine`, so that a later change
   * of the catalog does not change the bill. It is the same object for all lines of one target while
   * the catalog is unchanged. Undefined if no price is known.
   */
  readonly price?: Opt<Price>;
  /** Path of the key's account. */
  readonly account: Opt<string>;
  /** Labels for the rows of the line. */
  readonly labels: HeadersOut;
}

/** Sum of the lines of a job. */
export interface JobReservation {
  /** ID of the job's own call, unique in the ledger. */
  readonly attempt: string;
  /** Target of the first line. */
  readonly target: BatchTarget;
  /** Sum of the claims of all lines, by limit. */
  readonly claims: readonly (Limit & { take: bigint })[];
  /** Highest cost of all lines. `null` if the cost of a line is not known. */
  readonly holdNano: bigint | null;
}

/** Terms under which a line is billed. */
export interface LineBilling {
  /** ID of the job's own call. */
  readonly attempt: string;
  /** Number of the line in its job, from 1. It identifies the rows of the line. */
  readonly line: number;
  /** Target that the line was planned for. */
  readonly target: BatchTarget;
  /** ID of the key that created the job. */
  readonly key: string;
  /** Path of the key's account when the job was created. */
  readonly account?: Opt<string>;
  /** Labels for the rows of the line. */
  readonly labels: HeadersOut;
  /** Cost of the line if its result cannot be decoded. */
  readonly holdNano: bigint | null;
  /** Time whose prices apply, in Unix milliseconds. */
  readonly pricedAt: number;
  /** Price of the model when the line was planned. Undefined if no price was known. */
  readonly price?: Opt<Price>;
  /**
   * Aborts when the job engine stops. An error of the gateway after that may be an effect of the
   * stop, so it is thrown: another engine processes the line again.
   */
  readonly stopping?: Opt<AbortSignal>;
}

/** Terms under which the result of a line is billed. */
export interface LineSettlement extends LineBilling {
  /**
   * Whether the line is billed as an estimate if its result cannot be processed now. Default: the
   * error is thrown.
   */
  readonly isLastAttempt?: Opt<boolean>;
}

/** Terms under which a direct line is sent. */
export interface LineRun extends LineBilling {
  /**
   * Number of the attempt to send the line, from 1. The request has the ID `<attempt>.<line>`, and
   * `-<turn>` at its end from the second turn on. Its calls have this ID, and `.1`, `.2`, and so on
   * at its end.
   */
  readonly turn: number;
  /** Cancels the request. A line that was sent is billed for the work done. */
  readonly signal: AbortSignal;
}

/** Response to a direct line. */
export interface LineRunResponse extends LineResponse {
  /** Cost of all calls of the line, in billionths of a US dollar. */
  readonly costNano: bigint;
}

/** Response to a line. */
export interface LineResponse {
  /** ID of the request. Ledger rows contain it. */
  readonly requestId: string;
  /** HTTP status. */
  readonly status: number;
  /** JSON text of the body, in the protocol of the line's path. */
  readonly body: string;
  /** Record of the line's call, with its usage and cost. Undefined if it could not be decoded. */
  readonly call: CallRecord | undefined;
}

/** Batches of a provider, with a client for its credential. */
export interface OpenBatches {
  /** Batches of the endpoint that the lines are encoded for. */
  readonly batches: EndpointBatches;
  /** Client for the batch API. */
  readonly client: BatchClient;
}

/** Background mode of a provider, with a client for its credential. */
export interface OpenBackground {
  /** Background mode of the endpoint that the request is encoded for. */
  readonly background: EndpointBackground;
  /** Client for the API. */
  readonly client: BatchClient;
}
