// One upstream attempt of an exchange, from choice to record. One call is exactly one ledger entry.
import type { ErrorKind, Fault } from "../model/error.ts";
import type { EffectivePolicy, ForwardingMode, ModelInfo } from "../model/facts.ts";
import type { Usage } from "../model/usage.ts";
import type { ModelResponse } from "../model/event.ts";
import type { Operation } from "../model/request.ts";
import type { HeadersIn, HeadersOut, Opt } from "../model/values.ts";
import type { Exchange } from "./exchange.ts";
import type { CallContext } from "./protocol.ts";
import type { Limit } from "./store/limit.ts";

/** provider × endpoint × model × credential. Of those that survive `route`, the first endpoint of a provider, model and credential is used. */
export interface Candidate {
  /** "openai/gpt-6" */
  readonly id: string;
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** null: native. */
  readonly protocol: string | null;
  /** Whether the client's bytes are forwarded unchanged or the request is translated. */
  readonly mode: ForwardingMode;
  /** The provider's name of the model. */
  readonly model: string;
  /** Metadata of the model. */
  readonly info: ModelInfo;
  /** Its name, never its value. */
  readonly credential: string;
  /** Data policy that applies to this call. */
  readonly policy: EffectivePolicy;
  /** Its credential's share of the calls, beside those of the others, as gateway.yaml says it; 1 if that says nothing. */
  readonly weight: number;
  /** Told to `route` hooks, as of then: it failed lately. Undefined: it did not, or the hook is another one. */
  readonly cooldown: CandidateCooldown | undefined;
}

/** Why a candidate rests, and for how long. Whatever its place in the list, it is tried after those that do not rest. */
export interface CandidateCooldown {
  /** Unix milliseconds. An answer in the meantime ends it. */
  readonly until: number;
  /** The kind of the failure. */
  readonly reason: ErrorKind;
}

/**
 * One upstream attempt, as hooks and native endpoints see it. The host makes it before the `charge` hooks run and ends
 * it when its ledger row is settled. It is read-only: what a plugin wants changed goes through `Outgoing`, `Reply` or
 * a thrown fault.
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
  /** From 1. */
  readonly n: number;
  /** The request that the call belongs to. */
  readonly exchange: Exchange;
}

/** A way to one provider under one credential. */
export interface ProviderClient {
  /** Name of the credential, never its value. */
  readonly credential: string;
  /** Aborts when the call is canceled or its time is over. */
  readonly signal: AbortSignal;
  /**
   * Pooled, size-capped, no redirects; relative to the endpoint's base. The credential goes along to bound origins only;
   * elsewhere the request goes without it, and to a private network only where the operator's options name the origin.
   * `call.fetch` resolves when the head of a successful answer has arrived, and its body is read as it comes. Every other answer
   * is complete when the promise resolves. A body that breaks off rejects with a fault.
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
 * What `next()` of an `attempt` hook resolves to: the provider's head is here, no content has left. The hook may look,
 * wait, or throw; a throw before it returns ends the call and the host tries the next candidate where the kind of
 * failure allows it. Where a hook further in has answered by itself, `status` is 200 and `headers` are empty.
 */
export interface UpstreamResponse {
  /** The provider's HTTP status. */
  readonly status: number;
  /** Upstream's, all of them. */
  readonly headers: HeadersIn;
  /**
   * What is left of limits: the gateway's own, as this call's reserve found them, and the provider's, as its head says them. The
   * provider's are those of the operator's account, and no client's business.
   */
  readonly limits: readonly RateLimit[];
  /**
   * Resolves to what the client got, once settled; to null when it failed, was cut, is over `max` bytes, or privacy is not off.
   * Never rejects. It is over after the hook has returned: do not wait for it before.
   */
  recordResponse(max: number): Promise<RecordedResponse | null>;
  /**
   * Resolves when this call's row is durable, to what it used and cost, a failure too. Never rejects. It is over after the hook
   * has returned: do not wait for it before.
   */
  whenSettled(): Promise<CallRecord>;
}

/** One limit, and what is left of it. */
export interface RateLimit {
  /** Whose it is: the gateway's of its client, or the provider's of the operator's account. */
  readonly source: "gateway" | "provider";
  /** What is counted. */
  readonly unit: Limit["unit"];
  /** Units that are left. */
  readonly remaining: number | bigint;
  /** Maximum in one window, if it is known. */
  readonly max?: Opt<number | bigint>;
  /** Unix milliseconds. */
  readonly resetsAt?: Opt<number>;
  /** Of the gateway's own: what shares it, and its window. */
  readonly scope?: Opt<string>;
  /** Window of the gateway's own limit. */
  readonly per?: Opt<Limit["per"]>;
}

/**
 * A whole answer as the client got it. A cache keeps it and an `attempt` hook may return it in place of a `Reply`: then the
 * provider is not asked, and the ledger has no row. It is plain data. It is given only to a request of the same kind, protocol
 * and form, and never under privacy: where it does not fit, the log has a warning and the provider is asked.
 */
export interface RecordedResponse {
  /** Model type of the request. */
  operation: Operation;
  /** ID of the protocol that the response is written in. */
  protocol: string;
  /** Whether it is a stream. */
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
 * An answer of a hook's own making, which an `attempt` hook may return in place of a `Reply`: a polite refusal, a fixed text.
 * The host writes it in whatever protocol and form the client asked for. If the provider was not asked, the ledger has one row
 * of this call, void, at cost 0, with the outcome `middleware`; it takes from limits on requests and from nothing else. If it
 * was asked, that call is ended and billed for what it was. The counts that the client is shown are the row's.
 */
export interface SyntheticResponse {
  /** Content of the response and its finish reason. */
  response: Omit<ModelResponse, "id" | "usage">;
}

/**
 * How sure a call's cost is. exact: the provider counted. estimated: it accepted the work and its counts are missing
 * or cut short. unpriced: the counts are known, the price is not. void: the provider accepted nothing, or was not
 * asked, so nothing is billed.
 */
export type CallState = "exact" | "estimated" | "unpriced" | "void";

/**
 * One call after its settle, as `settle` hooks are told of it. The ledger has the same state, counts and cost under
 * `attempt`.
 */
export type CallRecord = Readonly<{
  /** ID of the call. Ledger rows refer to it. */
  attemptId: string;
  /** Position of the call within its request, from 1. */
  n: number;
  /** Made beside a call that stayed without content. The one of the two that lost has the fault code `hedge_lost`. */
  hedge?: Opt<boolean>;
  /** Provider, model, and credential of the call. */
  candidate: Candidate;
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /** Cost in billionths of a US dollar; null if no price is known. */
  costNano: bigint | null;
  /** Why the call failed. Unset if it succeeded. */
  fault?: Fault;
  /** The provider's ID of the response. */
  upstreamId?: string;
  /** When it began, counted from the request's first byte. */
  startMs: number;
  /** Each counted from there. */
  ms: { headers?: number; firstToken?: number; total: number };
}>;
