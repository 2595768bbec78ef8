// Observers receive records of requests, events, and charges, and cannot change anything. Metrics,
// access logs, traces, and alerts are observers. All data is plain: it can be stored, serialized as
// JSON, or sent to another process.
import type { ErrorKind } from "../model/error.ts";
import type { FinishReason } from "../model/event.ts";
import type { DataPolicy, ForwardingMode, Privacy } from "../model/facts.ts";
import type { Operation } from "../model/request.ts";
import type { RequestTrace } from "../model/request-trace.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersOut, Opt } from "../model/values.ts";
import type { CallRecord, CallState } from "./call.ts";
import type { ObserverRoute } from "./frontend.ts";
import type { GatewayEvent } from "./gateway-event.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { ActionType } from "./protocol.ts";
import type { RpcOperation } from "../model/rpc-operation.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { LimitState } from "./store/limit.ts";
import type { Reserve, Settle } from "./store/store.ts";

/**
 * Definition of an observer, as `defineObserver` takes it. Mounted under `observers:` in
 * gateway.yaml.
 */
export interface ObserverDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /**
   * Destination to which the observer sends its records. If records are sent to any destination,
   * the observer receives records of private requests (`Service-ZDR`) without labels, because a
   * label may identify a person.
   */
  sends: "nowhere" | DataPolicy;
  /**
   * Creates the observer. Called once per config generation, in the primary process only, before
   * the generation serves clients. If it throws or takes longer than 10 s, the config is rejected.
   * Keep counters in `ctx.shared`, because it is kept across reloads.
   */
  setup: Setup<O, Observer>;
}

/** An observer that `setup` returns. All members are optional. */
export interface Observer {
  /**
   * Part of the client's address in the records: none, its network (/24 for IPv4, /48 for IPv6), or
   * the full address. It is read once, after `setup`. Default: "none". An observer that sends its
   * records elsewhere must not set "full": the config is then rejected.
   */
  clientAddress?: "none" | "prefix" | "full";
  /**
   * Called with the records of finished requests. Every request that reached a frontend is reported
   * once, including rejected requests, when its last byte was sent and it was settled. Records of
   * one process are in order. Records of several processes are interleaved.
   *
   * The primary process calls it within 200 ms, with 1 to 256 records. These include records of
   * requests that its workers served. The next call waits until the promise of the previous call
   * has settled. No request, reload, or other observer waits for a call. While a call is running,
   * up to 10,000 records are queued. Additional records are dropped, counted, and reported by a
   * `records_dropped` event.
   *
   * If a call throws, rejects, or takes longer than 30 s, its batch is lost for this observer, the
   * error is logged, and the next batch follows. After 5 failures in a row, the observer is not
   * called for 5 s. The pause doubles with each further failure, up to 60 s. When the gateway or
   * the generation ends, the observer receives the remaining records and has 5 s to process them.
   * Records that a killed worker had not sent yet, up to 200 ms of them, are lost. Billing is not
   * affected.
   */
  onRequests?(batch: readonly RequestRecord[]): void | Promise<void>;
  /**
   * Called with requests that were rejected before routing: unknown path, unknown Host, invalid
   * HTTP, or too many requests on a connection. No frontend received these requests, and
   * `onRequests` does not report them. Each is reported once. The rules of `onRequests` apply:
   * records are passed in batches in the primary process, nothing waits for the call, and an error
   * is logged.
   */
  onRejected?(batch: readonly RejectedRequest[]): void | Promise<void>;
  /**
   * Called with each event of the gateway itself, one at a time, in the primary process. The rules
   * of `onRequests` apply: the observer cannot change anything, nothing waits for the call, and an
   * error is logged.
   */
  onEvent?(notice: GatewayEvent): void | Promise<void>;
  /**
   * Called with the charges that became durable in the ledger through this gateway, within 200 ms
   * and with 1 to 256 records. Every settled call and every correction is reported once, in the
   * order in which it was written. The sum of the costs equals the ledger's sum, to the
   * nano-dollar, including calls whose process was killed and that have no request record. Calls
   * that were found open at a start and recovered are not included.
   *
   * The primary process calls it, and the rules of `onRequests` apply: nothing waits for the call.
   * If it throws, the error is logged and the batch is lost for this observer. If more than 10,000
   * records are queued, further records are dropped and reported by a `records_dropped` event.
   */
  onCharges?(lines: readonly ChargeRecord[]): void | Promise<void>;
  /**
   * Called once when the observer's generation ends, after all records were delivered. Send all
   * buffered records, because no further records follow. The call may use the rest of the 5 s,
   * `ctx.fetch` still works, and an error is logged. The observer is not called again.
   */
  flush?(): void | Promise<void>;
  /**
   * Routes that the observer serves on the admin listener, if gateway.yaml has one, while the
   * generation is active. Use them to expose counters to a program that scrapes them. They run in
   * the process that calls `onRequests`.
   */
  routes?: readonly ObserverRoute[];
}

/**
 * How a request ended, in one word that is the same for all observers.
 *
 * - `ok`: the request was answered.
 * - `client_error`: the request is invalid, according to the gateway or a provider.
 * - `refused`: the gateway rejected it because of a key, a permission, a limit, or privacy.
 * - `upstream_error`: no provider answered, or a response was truncated.
 * - `error`: the gateway failed: a failing hook, a ledger that cannot be written, or no capacity.
 * - `canceled`: the client disconnected, or the deadline that it had set expired.
 */
export type RequestOutcome =
  | "ok"
  | "client_error"
  | "refused"
  | "upstream_error"
  | "error"
  | "canceled";

/**
 * Record of one finished request. It contains no text of prompts, responses, or error messages.
 * `clientRequestId`, `model`, and `labels` contain text that the client controls. Escape this text
 * before you write it to a log line or a page.
 */
export type RequestRecord = Readonly<{
  /** Time at which the request ended, in Unix milliseconds. */
  at: number;
  /** ID of the request: the `x-request-id` of the response. */
  id: string;
  /**
   * The client's own `x-request-id`, if it sent one of at most 128 printable ASCII characters
   * without spaces. Not set for private requests if the observer sends its records elsewhere.
   */
  clientRequestId?: Opt<string>;
  /**
   * ID of the WebSocket that the request came through, which all of its requests share. Undefined
   * for an HTTP request.
   */
  session?: Opt<string>;
  /**
   * Process that served the request: 0, or a worker's number from 1. A process that replaces a
   * worker has the same number.
   */
  worker: number;
  /** Number of the config generation that served the request. */
  generation: number;
  /** Outcome of the request. */
  outcome: RequestOutcome;
  /** Name of the frontend in gateway.yaml. */
  frontend: string;
  /** ID of the frontend's protocol. Empty if it has none. */
  protocol: string;
  /** Model type that the route is for. */
  operation: Operation;
  /** Operation: generate, count, or relay. */
  actionType: ActionType;
  /** Name of the operation within its protocol, such as "generate" or "count". */
  action: string;
  /** HTTP method. */
  method: string;
  /** Path pattern of the route, as its plugin declares it, such as "/v1/models/:id". */
  route: string;
  /**
   * The remote procedure call that the request is, such as a call of a tool over MCP. Undefined for
   * protocols without methods.
   */
  rpc?: Opt<RpcOperation>;
  /**
   * Model name, as the client wrote it. Empty if the request was rejected before its body was read.
   */
  model: string;
  /**
   * Name or pattern under `models:` in gateway.yaml that the model name matched. Undefined if it
   * matched none.
   */
  alias?: Opt<string>;
  /** ID of the model that answered, such as "openai/gpt-6". Undefined if no provider answered. */
  served?: Opt<string>;
  /**
   * Whether the request continues content that a provider stores, so that only this provider could
   * serve it.
   */
  isPinned: boolean;
  /**
   * Hooks that did more than pass the request on, with their durations; up to 32. Undefined if
   * there are none.
   */
  hooks?: Opt<readonly RequestRecordHook[]>;
  /**
   * Candidates that were excluded or tried after the others, with reasons; up to 32. Undefined if
   * there are none.
   */
  skippedCandidates?: Opt<readonly RequestRecordSkippedCandidate[]>;
  /** Whether the client requested a stream. */
  stream: boolean;
  /** Whether bytes were forwarded unchanged or translated. `null` if no provider was called. */
  mode: ForwardingMode | null;
  /** HTTP status that the client received. 499 if it disconnected first. */
  status: number;
  /** Reason for the failure, without the message, because the message may quote the prompt. */
  fault?: Opt<RequestRecordFault>;
  /** Finish reason of the response. Undefined if there was no response. */
  finish?: Opt<FinishReason>;
  /** Whether a middleware answered with a recorded response, so that no provider was called. */
  cached: boolean;
  /** ID of the key. Undefined if the request was not identified. */
  key: Opt<string>;
  /** Path of the key's account, such as "acme/research". Undefined if the key has no account. */
  account?: Opt<string>;
  /**
   * Labels of the key and its accounts, labels that hooks added with `x.addLabel`, and labels that
   * `charge` hooks added to the ledger rows.
   */
  labels: HeadersOut;
  /** Privacy of the request. */
  privacy: Privacy;
  /**
   * Data retention that applied to the request, as in the response header Service-ZDR-Policy.
   * Undefined if no provider was to be called.
   */
  zdrReceipt?: Opt<string>;
  /**
   * Peer address of the connection, shortened according to `clientAddress`, such as "192.0.2.0/24"
   * or "2001:db8:1::/48". Behind a proxy, it is the address of the proxy.
   */
  client?: Opt<string>;
  /** Number of fields that translation dropped or approximated. */
  losses: number;
  /** Number of such fields by code. */
  lossCodes: { readonly [code: string]: number };
  /** Bytes of the request body that were read. */
  bytesIn: number;
  /** Bytes of the response body that were sent to the client. */
  bytesOut: number;
  /** Time from the first byte of the request to its end, in milliseconds. */
  ms: number;
  /**
   * Time from the first byte of the request to the first token of the response, in milliseconds.
   */
  firstTokenMs?: Opt<number>;
  /** Trace context of the request. */
  trace: RequestTrace;
  /**
   * Part of `ms` that the gateway itself used, in milliseconds with microsecond precision. It
   * excludes waiting for the client's body, waiting for a provider, and backoff.
   */
  overheadMs: number;
  /** All attempts, in order. If an attempt responded, the last entry is that attempt. */
  calls: readonly RequestRecordCall[];
}>;

/** A failure without its message. */
export type RequestRecordFault = Readonly<{
  /** Kind of failure. */
  kind: ErrorKind;
  /** Machine-readable code of the error. Undefined if it has none. */
  code: string | undefined;
  /** The system's name of a connection error, such as `ECONNREFUSED`. */
  errno?: Opt<string>;
}>;

/** A candidate that a request was not sent to, or only after others. */
export type RequestRecordSkippedCandidate = Readonly<{
  /** ID of the candidate, such as "openai/gpt-6". */
  candidate: string;
  /** Name of the credential. */
  credential: string;
  /**
   * Rule that excluded or postponed the candidate. The host's own rules are "key", "catalog",
   * "privacy", and similar. "cooldown" is a target that failed recently and is tried last. A
   * middleware is named by its path in gateway.yaml.
   */
  by: string;
  /** Machine-readable reason that clients receive. For a cooldown, the kind of its failure. */
  code: string;
}>;

/** Effect of a hook on a request. */
export type RequestRecordHook = Readonly<{
  /** Path of the plugin in gateway.yaml, such as "middleware.guard". */
  plugin: string;
  /** Name of the hook, such as `inspect`. */
  hook: string;
  /**
   * Effect of the hook.
   *
   * - `refused`: it rejected the request with `fail()`.
   * - `failed`: it threw or took too long.
   * - `skipped`: it failed, and the request continued because of `on_error: continue`.
   * - `responded`: it created the response in place of a provider.
   * - `delayed`: it passed the request on and took 1 ms or more.
   */
  effect: "refused" | "failed" | "skipped" | "responded" | "delayed";
  /**
   * Duration of the hook, in milliseconds. It includes the time that the client took to send a body
   * that the hook reads. Undefined if the hook was not awaited.
   */
  ms?: Opt<number>;
}>;

/** One call of a request, which is one entry of the ledger. */
export type RequestRecordCall = Readonly<{
  /** Position of the call within its request, from 1. */
  n: number;
  /** Whether the call was a hedge: it was sent while another call had not returned content. */
  hedge?: CallRecord["hedge"];
  /**
   * Span ID of the call, within the `trace` of its request. A provider that receives the trace gets
   * it as the parent ID.
   */
  spanId: string;
  /** Start of the call, in milliseconds since the first byte of the request. */
  startMs: number;
  /** Name of the provider in gateway.yaml. */
  provider: string;
  /** The provider's name of the model. */
  model: string;
  /** Name of the credential. */
  credential: string;
  /** ID of the provider's protocol; null for a native endpoint. */
  protocol: string | null;
  /** Whether bytes were forwarded unchanged or translated. */
  mode: ForwardingMode;
  /** Set if the call was made over a WebSocket of the provider. */
  transport?: CallRecord["transport"];
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /** Cost in billionths of a US dollar. `null` if no price is known. */
  costNano: bigint | null;
  /** Reason why the call failed. Undefined if it succeeded. */
  fault?: Opt<RequestRecordFault>;
  /** Time to the headers, to the first token, and in total, in milliseconds. */
  ms: { readonly headers?: Opt<number>; readonly firstToken?: Opt<number>; readonly total: number };
}>;

/**
 * A request, or an attempted request, that was rejected before routing. The record contains no
 * path, header, or address.
 */
export type RejectedRequest = Readonly<{
  /** Time of the rejection, in Unix milliseconds. */
  at: number;
  /** The `x-request-id` of the response. */
  id: string;
  /** HTTP status that the client received. */
  status: number;
  /** Reason: "unknown_path", "host_unknown", "too_many_in_flight", "http_malformed", or "tls". */
  code: string;
  /** HTTP method. Undefined if the request head was not read completely. */
  method?: Opt<string>;
  /** Listener that received the request: the listener for clients or the listener for operators. */
  listener: "public" | "admin";
}>;

/** One bill in the ledger: a settled call, or a correction of a settled call. */
export type ChargeRecord = Readonly<{
  /** Time of the ledger row, in Unix milliseconds. */
  at: number;
  /** Whether the row settles a call or corrects its cost. */
  type: "settle" | "adjust";
  /** ID of the call, which is also in its ledger rows. */
  attempt: string;
  /**
   * Data of the call's reserve row. Undefined for every correction, and for calls that were
   * reserved before this gateway had an observer with `onCharges`.
   */
  call?: Opt<ChargedCall>;
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /**
   * Cost in billionths of a US dollar. `null` if no price is known. For a correction, the
   * difference to the previous cost, which may be negative.
   */
  costNano: bigint | null;
  /** Outcome: "ok", the kind of a failure, or "recovered". */
  outcome: string;
  /** Reason why the response ended. */
  finish?: Opt<string>;
  /** Time to the headers, to the first token, and in total, in milliseconds. */
  ms?: Settle["ms"];
}>;

/** Data of a call that was recorded in the ledger before the call was sent. */
export type ChargedCall = Readonly<
  Pick<
    Reserve,
    "request" | "number" | "key" | "account" | "labels" | "target" | "privacy" | "clientRequest"
  > & {
    /** Limits that the call counted against, as read when the call was reserved. */
    limits: readonly LimitState[];
  }
>;
