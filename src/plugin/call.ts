// One call to a provider, from the choice of the candidate to the ledger record. Each call has
// exactly one ledger entry.
import type { ErrorKind, Fault } from "../model/error.ts";
import type { EffectivePolicy, ForwardingMode, ModelInfo } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { ModelResponse } from "../model/event.ts";
import type { Operation } from "../model/request.ts";
import type { HeadersIn, HeadersOut, Opt } from "../model/values.ts";
import type { Exchange } from "./exchange.ts";
import type { CallContext } from "./protocol.ts";
import type { Limit } from "./store/limit.ts";

/**
 * A provider, endpoint, model, and credential that could serve a request. After `route`, the first
 * remaining endpoint for each provider, model, and credential is used.
 */
export interface Candidate {
  /** ID of the candidate, consisting of provider and model, such as "openai/gpt-6". */
  readonly id: string;
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** ID of the protocol that the endpoint speaks. `null` for a native endpoint. */
  readonly protocol: string | null;
  /** Whether the client's bytes are forwarded unchanged or the request is translated. */
  readonly mode: ForwardingMode;
  /** The provider's name of the model. */
  readonly model: string;
  /** Metadata of the model. */
  readonly info: ModelInfo;
  /** Name of the credential, never its value. */
  readonly credential: string;
  /** Data policy that applies to this call. */
  readonly policy: EffectivePolicy;
  /**
   * Weight of the credential relative to the provider's other credentials, from gateway.yaml.
   * Default: 1.
   */
  readonly weight: number;
  /**
   * The cooldown of the candidate when the `route` hook was called. Undefined if there was none,
   * and outside of `route` hooks.
   */
  readonly cooldown: CandidateCooldown | undefined;
}

/**
 * Reason and end of a candidate's cooldown. Candidates in cooldown are tried after all others,
 * whatever their position in the list.
 */
export interface CandidateCooldown {
  /** End of the cooldown, in Unix milliseconds. A successful response ends the cooldown earlier. */
  readonly until: number;
  /** Kind of the failure that caused the cooldown. */
  readonly reason: ErrorKind;
}

/**
 * One call to a provider, as hooks and native endpoints see it. The host creates it before the
 * `charge` hooks run and ends it when its ledger row is settled. It is read-only. To change a
 * request or response, use `Outgoing`, return a response from an `attempt` hook, or throw a fault.
 */
export interface Call extends Candidate, CallContext, ProviderClient {
  /** The provider's name of the model. */
  readonly model: string;
  /** Metadata of the model. */
  readonly info: ModelInfo;
  /** Name of the credential, never its value. */
  readonly credential: string;
  /** ID of the call. Ledger rows refer to it. */
  readonly attemptId: string;
  /** Position of the call within its request, from 1. */
  readonly n: number;
  /** The request that the call belongs to. */
  readonly exchange: Exchange;
}

/** An HTTP client for one provider under one credential. */
export interface ProviderClient {
  /** Name of the credential, never its value. */
  readonly credential: string;
  /** Aborts when the call is canceled or its time limit has passed. */
  readonly signal: AbortSignal;
  /**
   * Sends a request to the provider. A relative URL is resolved against the base URL of the
   * endpoint. Connections are pooled, responses are limited in size, and redirects are not
   * followed. The `location` of a redirect is absolute.
   *
   * The credential is sent to the bound origins only. Requests to other origins are sent without
   * it. An origin on a private network is allowed only if the operator's options name it.
   *
   * `call.fetch` resolves when the headers of a successful response have arrived, and the body is
   * read as it arrives. Any other response is complete when the promise resolves. A truncated body
   * rejects with a fault.
   */
  fetch(
    url: string | URL,
    init?: {
      method?: string;
      headers?: HeadersOut;
      body?: string | Buffer;
      signal?: AbortSignal;
    },
  ): Promise<Response>;
}

/**
 * Result of `next()` in an `attempt` hook. When it is created, the provider's headers have arrived
 * and no content has been sent to the client. The hook can inspect the response, wait, or throw. If
 * the hook throws before it returns, the call ends, and the host tries the next candidate if the
 * kind of failure allows it. If a later hook in the chain created the response, `status` is 200 and
 * `headers` is empty.
 */
export interface UpstreamResponse {
  /** The provider's HTTP status. */
  readonly status: number;
  /** All headers of the provider's response. */
  readonly headers: HeadersIn;
  /**
   * Limits of the gateway, as read when this call was reserved, and limits of the provider, as
   * reported in its headers. The provider's limits belong to the operator's account. Do not show
   * them to clients.
   */
  readonly limits: readonly RateLimit[];
  /**
   * Resolves to the response that the client received, after the call has been settled. Resolves to
   * `null` if the call failed, the response was truncated or is larger than `max` bytes, or privacy
   * is not `off`. Never rejects. It resolves only after the hook has returned, so do not await it
   * in the hook.
   */
  recordResponse(max: number): Promise<RecordedResponse | null>;
  /**
   * Resolves to the usage and cost of this call when its ledger row is durable, even if the call
   * failed. Never rejects. It resolves only after the hook has returned, so do not await it in the
   * hook.
   */
  whenSettled(): Promise<CallRecord>;
}

/** One limit and its remaining amount. */
export interface RateLimit {
  /**
   * Whether the limit is the gateway's limit for the client, or the provider's limit for the
   * operator's account.
   */
  readonly source: "gateway" | "provider";
  /** Unit of the count. */
  readonly unit: Limit["unit"];
  /** Units that are left. */
  readonly remaining: number | bigint;
  /** Maximum in one window, if it is known. */
  readonly max?: Opt<number | bigint>;
  /** Time at which the limit resets, in Unix milliseconds. */
  readonly resetsAt?: Opt<number>;
  /**
   * Scope of the gateway's own limit, which identifies the requests that share the count. Unset for
   * a provider's limit.
   */
  readonly scope?: Opt<string>;
  /** Window of the gateway's own limit. Unset for a provider's limit. */
  readonly per?: Opt<Limit["per"]>;
}

/**
 * A complete response as the client received it, as plain data. A cache stores it, and an `attempt`
 * hook can return it instead of the result of `next()`. In that case, the provider is not called,
 * and no row is written to the ledger.
 *
 * A recorded response can be used only for a request with the same operation, protocol, and form,
 * and never for a private request. Otherwise, a warning is logged and the provider is called.
 */
export interface RecordedResponse {
  /** Model type of the request. */
  operation: Operation;
  /** ID of the protocol that the response is written in. */
  protocol: string;
  /** Whether the response is a stream. */
  stream: boolean;
  /** Media type of the body. */
  contentType: string;
  /** Bytes of the response, as the client received them. */
  body: Buffer;
  /** Units that the response used. */
  usage: Usage;
  /** ID of the model that answered, such as `openai/gpt-6`. */
  model: string;
}

/**
 * A response that an `attempt` hook creates itself and returns instead of the result of `next()`,
 * such as a refusal or a fixed text. The host encodes it in the protocol and form that the client
 * requested.
 *
 * If the provider was not called, the ledger gets one row for this call: state `void`, cost 0,
 * outcome `middleware`. The call counts only against limits on requests. If the provider was
 * called, that call is ended and billed for the content that the provider has produced. The client
 * receives the usage counts of that ledger row.
 */
export interface SyntheticResponse {
  /** Content of the response and its finish reason. */
  response: Omit<ModelResponse, "id" | "usage">;
}

/**
 * How certain the cost of a call is.
 *
 * - `exact`: the provider reported the usage.
 * - `estimated`: the provider accepted the work, but its usage counts are missing or incomplete.
 * - `unpriced`: the usage is known and the price is not.
 * - `void`: the provider accepted nothing or was not called, so nothing is billed.
 * - `external`: the client paid the provider with its own credential, so the cost is 0. The usage
 *   contains the list price as `list_nano_usd`.
 */
export type CallState = "exact" | "estimated" | "unpriced" | "void" | "external";

/**
 * Record of one settled call, as `settle` hooks receive it. The ledger has the same state, usage,
 * and cost under the ID `attempt`.
 */
export type CallRecord = Readonly<{
  /** ID of the call. Ledger rows refer to it. */
  attemptId: string;
  /** Position of the call within its request, from 1. */
  n: number;
  /**
   * Whether the call was a hedge: it was sent while an earlier call had not returned content. The
   * call of the two that is not used has the fault code `hedge_lost`.
   */
  hedge?: Opt<boolean>;
  /** Provider, model, and credential of the call. */
  candidate: Candidate;
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /** Cost in billionths of a US dollar; null if no price is known. */
  costNano: bigint | null;
  /** Reason for the failure of the call. Unset if it succeeded. */
  fault?: Fault;
  /** The provider's ID of the response. */
  upstreamId?: string;
  /** Set if the call was made over a WebSocket of the provider. */
  transport?: Opt<"websocket">;
  /** Start of the call, in milliseconds since the first byte of the request. */
  startMs: number;
  /** Time from `startMs` to the headers, to the first token, and to the end, in milliseconds. */
  ms: { headers?: number; firstToken?: number; total: number };
}>;
