// The fifth kind of plugin: it is told what happened, and changes nothing. Metrics, an access log, traces and alerts are
// observers. Everything that it is handed is plain data: it may be kept, written as JSON or sent to another process.
import type { ErrorKind } from "../model/error.ts";
import type { FinishReason } from "../model/event.ts";
import type { DataPolicy, ForwardingMode, Privacy } from "../model/facts.ts";
import type { Operation } from "../model/request.ts";
import type { Usage } from "../model/usage.ts";
import type { HeadersOut, Opt } from "../model/values.ts";
import type { CallRecord, CallState } from "./call.ts";
import type { ObserverRoute } from "./frontend.ts";
import type { GatewayEvent } from "./gateway-event.ts";
import type { Plugin, Setup } from "./plugin.ts";
import type { ActionType } from "./protocol.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { LimitState } from "./store/limit.ts";
import type { Reserve, Settle } from "./store/store.ts";

/** What `defineObserver` takes; mounted under `observers:` in gateway.yaml. */
export interface ObserverDef<O extends ObjectSchema = NoOptions> extends Plugin<O> {
  /**
   * Where it sends what it is told. An observer that sends it anywhere gets records of private requests (`Service-ZDR`)
   * without labels, for a label may be a person.
   */
  sends: "nowhere" | DataPolicy;
  /**
   * Called once for each generation, in the primary process alone, before that generation answers any client. A throw, or
   * more than 10 s, refuses the config. What is counted goes into `ctx.shared`, which outlives a reload.
   */
  setup: Setup<O, Observer>;
}

/** What an observer's `setup` gives. All members may be absent. */
export interface Observer {
  /**
   * How much of a client's address its records have: nothing, the network that it is in (/24 of IPv4, /48 of IPv6), or all of it.
   * Read once, after `setup`. Absent: "none". An observer that sends what it is told elsewhere may not say "full": the config is
   * refused.
   */
  clientAddress?: "none" | "prefix" | "full";
  /**
   * What was asked and answered: every request that reached a frontend, refused ones too, once, when its last byte has
   * left and its bill is settled. In the order of each process, those of several processes mixed.
   *
   * Called by the primary process, also for what its workers served, within a fifth of a second, with 1 to 256 records.
   * One call at a time: the next waits for the promise of the one before. Nothing else waits for it: no request, no
   * reload, no other observer. While it is busy at most 10,000 records are kept for it; what is beyond that is lost,
   * counted, and told by a `dropped` notice.
   *
   * It may do anything but change what it is handed. If it throws, rejects or takes longer than 30 s, these records are gone for
   * it, the error is in the log, and the next batch comes all the same. After five failures in a row it is told nothing for 5 s,
   * for twice as long each time it fails again, up to a minute. At the end of the gateway or of its generation it gets what is left,
   * and has 5 s. What a killed worker had not handed on, a fifth of a second at most, is lost; bills go their own way.
   */
  onRequests?(batch: readonly RequestRecord[]): void | Promise<void>;
  /**
   * What was turned away at the door, so that no frontend saw it and `seen` does not tell of it: a path that is not there, a Host
   * that is not ours, a head that is no HTTP, one request too many on a connection. Each once. Under the rules of `seen`: many at a
   * time, in the primary process, nothing waits for it, and a throw is logged.
   */
  onRejected?(batch: readonly RejectedRequest[]): void | Promise<void>;
  /**
   * What the gateway tells of itself, as it happens, one at a time, in the primary process. Under the rules of `seen`: it
   * changes nothing, nothing waits for it, and a throw is logged.
   */
  onEvent?(notice: GatewayEvent): void | Promise<void>;
  /**
   * What has become durable in the ledger through this gateway, with 1 to 256 lines, within a fifth of a second: every settled call
   * and every correction, once, in the order in which they were written. The sum of its costs is the ledger's, to the nano-dollar:
   * also of calls whose process was killed, which no record tells of. What a start finds open and recovers is not in it.
   *
   * Called by the primary process, under the rules of `seen`: nothing waits for it, a throw is logged and these lines are gone for
   * it, and beyond 10,000 that wait they are lost and told by a `dropped` notice.
   */
  onCharges?(lines: readonly ChargeRecord[]): void | Promise<void>;
  /**
   * Called once, when its generation ends, after all that it is told: what it has kept back for a larger batch goes now. It
   * has what is left of the 5 s, `ctx.fetch` still asks, and a throw is logged. After it the observer is told nothing more.
   */
  flush?(): void | Promise<void>;
  /**
   * Served on the admin listener, where gateway.yaml has one, for as long as the generation lives: what was counted, for a
   * program that fetches it. They stand in the process that `seen` is called in.
   */
  routes?: readonly ObserverRoute[];
}

/**
 * How a request ended, in one word, the same for all observers.
 *
 * ok: it was answered. client_error: what was asked is at fault, whether the gateway or a provider said so. refused: the gateway
 * said no: no valid key, a permission, a limit, privacy. upstream_error: no provider answered, or one broke off. error: the
 * gateway itself: a failing hook, a ledger that cannot be written, no room. canceled: the client went away, or the time that it
 * had set was over.
 */
export type RequestOutcome =
  | "ok"
  | "client_error"
  | "refused"
  | "upstream_error"
  | "error"
  | "canceled";

/**
 * One request, when it is over. No word of a prompt, an answer or an error's message is in it. `clientRequestId`, `model` and
 * `labels` are the client's own text: what writes them into a line or a page must not let them end it.
 */
export type RequestRecord = Readonly<{
  /** Unix milliseconds, when it was over. */
  at: number;
  /** The `x-request-id` of the answer. */
  id: string;
  /**
   * The client's own `x-request-id`, if it sent one of at most 128 printable characters of ASCII without spaces. Not told, for a
   * private request, to an observer that sends it elsewhere.
   */
  clientRequestId?: Opt<string>;
  /** The process that served it: 0, or a worker's place from 1 on. One that takes over a place has its number. */
  worker: number;
  /** The config that it was answered by. */
  generation: number;
  /** How the request ended. */
  outcome: RequestOutcome;
  /** The name of its frontend in gateway.yaml. */
  frontend: string;
  /** The frontend's protocol; "" where it has none. */
  protocol: string;
  /** Model type that the route is for. */
  operation: Operation;
  /** Operation: generate, count, or relay. */
  actionType: ActionType;
  /** The operation within its protocol: "generate", "count". */
  action: string;
  /** HTTP method. */
  method: string;
  /** The path of its route, as its plugin declares it: "/v1/models/:id". */
  route: string;
  /** As the client wrote it; "" when the request was refused before its body was read. */
  model: string;
  /** The name or pattern under `models:` in gateway.yaml that it led to. Undefined: it led to none. */
  alias?: Opt<string>;
  /** The id of the model that answered, "openai/gpt-6". Undefined: no provider's did. */
  served?: Opt<string>;
  /** It goes on from what a provider keeps, so it could go to that provider alone. */
  isPinned: boolean;
  /** Hooks that did more than let it pass, and what they were waited for; 32 at most. Undefined: none did. */
  hooks?: Opt<readonly RequestRecordHook[]>;
  /** Candidates that were left out, or tried after the others, and why; 32 at most. Undefined: there were none. */
  skippedCandidates?: Opt<readonly RequestRecordSkippedCandidate[]>;
  /** Whether the client requested a stream. */
  stream: boolean;
  /** null: no provider was asked. */
  mode: ForwardingMode | null;
  /** What the client was told, or 499 when it went away first. */
  status: number;
  /** Why it failed, without the words, which may quote what was sent. */
  fault?: Opt<RequestRecordFault>;
  /** Why the response ended. Undefined if there was none. */
  finish?: Opt<FinishReason>;
  /** Answered by a middleware's recording: nothing was asked of a provider. */
  cached: boolean;
  /** The id of its key; undefined for a request that was not identified. */
  key: Opt<string>;
  /** Where its key stands among the accounts: "acme/research". Undefined: in none. */
  account?: Opt<string>;
  /** Of its key and of its accounts, what hooks noted with `x.label`, and what `charge` hooks put on its rows. */
  labels: HeadersOut;
  /** Privacy of the request. */
  privacy: Privacy;
  /** What its answer said of what becomes of data there, as in the header Service-ZDR-Policy. Undefined: no provider was to be asked. */
  zdrReceipt?: Opt<string>;
  /** Where its connection came from, as far as the observer has asked to know: "192.0.2.0/24", "2001:db8:1::/48". A proxy's own, behind one. */
  client?: Opt<string>;
  /** Number of fields that translation dropped or approximated. */
  losses: number;
  /** Number of such fields by code. */
  lossCodes: { readonly [code: string]: number };
  /** Of its body, as far as it was read. */
  bytesIn: number;
  /** Bytes of the response body that were sent to the client. */
  bytesOut: number;
  /** From its first byte to its end. */
  ms: number;
  /** From its first byte to the first content of an answer. */
  firstTokenMs?: Opt<number>;
  /** Trace context of the request. */
  trace: RequestTrace;
  /** Of that the gateway's own, to the microsecond: what is waiting neither for the client's body nor for a provider, as in a pause before it is asked again. */
  overheadMs: number;
  /** Every attempt, in order; the last one answered, if any did. */
  calls: readonly RequestRecordCall[];
}>;

/**
 * Where a request stands in a trace, as W3C Trace Context has it: its client's, or one that begins with it. Every request has one,
 * kept or not. Ids are hex, in lower case.
 */
export type RequestTrace = Readonly<{
  /** 32 digits. */
  traceId: string;
  /** Of the request itself, 16 digits. */
  spanId: string;
  /** The client's span, which the request is a part of. Undefined: it begins its trace. */
  parentId?: Opt<string>;
  /** Whether the client keeps its trace. Undefined: it brought none. */
  sampled?: Opt<boolean>;
  /**
   * The client's `tracestate`: its own text, of at most 512 characters. Not told, for a private request, to an observer that sends
   * it elsewhere.
   */
  state?: Opt<string>;
}>;

/** A failure without its words. `errno`: of a connection that failed, the system's name for it: "ECONNREFUSED". */
export type RequestRecordFault = Readonly<{
  /** Kind of failure. */
  kind: ErrorKind;
  /** Machine-readable code of the error. Undefined if it has none. */
  code: string | undefined;
  /** The system's name of a connection error, such as `ECONNREFUSED`. */
  errno?: Opt<string>;
}>;

/**
 * A candidate that a request did not go to, or not at once. `by`: "key", "catalog", "privacy" and the like for the host's own
 * rules, "cooldown" for a target that has failed lately and is tried last, a path in gateway.yaml for a middleware. `code`: as a client is told
 * it; for what rests, the kind of its failure.
 */
export type RequestRecordSkippedCandidate = Readonly<{
  /** "openai/gpt-6" */
  candidate: string;
  /** Name of the credential. */
  credential: string;
  /** Rule or middleware that excluded or postponed the candidate. */
  by: string;
  /** Machine-readable reason. For a cooldown, the kind of its failure. */
  code: string;
}>;

/**
 * What a hook had to do with a request. refused: it ended it, by its own word. failed: it threw, or took too long. skipped: the
 * same, and `on_error: continue` let the request go on. responded: it answered in a provider's place. delayed: it let the request pass,
 * and took a millisecond or more.
 */
export type RequestRecordHook = Readonly<{
  /** "middleware.guard" */
  plugin: string;
  /** Name of the hook, such as `inspect`. */
  hook: string;
  /** What the hook did. */
  effect: "refused" | "failed" | "skipped" | "responded" | "delayed";
  /** How long it was waited for, the client's sending of a body that it reads included. Undefined: it was not waited for. */
  ms?: Opt<number>;
}>;

/** One attempt of a request: one entry of the ledger. */
export type RequestRecordCall = Readonly<{
  /** Position of the call within its request, from 1. */
  n: number;
  /** Whether the call was a hedge: made while another call had not returned content. */
  hedge?: CallRecord["hedge"];
  /** Of this attempt, within its request's `trace`: what a provider that is handed the trace has as its parent. */
  spanId: string;
  /** From the request's first byte to the beginning of this attempt. */
  startMs: number;
  /** Name of the provider in gateway.yaml. */
  provider: string;
  /** Upstream's own name. */
  model: string;
  /** Name of the credential. */
  credential: string;
  /** ID of the provider's protocol; null for a native endpoint. */
  protocol: string | null;
  /** Whether bytes were forwarded unchanged or translated. */
  mode: ForwardingMode;
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /** null: it has no known price. */
  costNano: bigint | null;
  /** Why the call failed. Undefined if it succeeded. */
  fault?: Opt<RequestRecordFault>;
  /** Time to the headers, to the first content, and in total, in milliseconds. */
  ms: { readonly headers?: Opt<number>; readonly firstToken?: Opt<number>; readonly total: number };
}>;

/** A request, or what was to become one, that was refused before a frontend saw it. Its path, headers and address are not in it. */
export type RejectedRequest = Readonly<{
  /** Unix milliseconds. */
  at: number;
  /** The `x-request-id` of the refusal. */
  id: string;
  /** What the client was told. */
  status: number;
  /** Why: "unknown_path", "host_unknown", "too_many_in_flight", "http_malformed", "tls". */
  code: string;
  /** Undefined where no whole head was read. */
  method?: Opt<string>;
  /** Which door: the one that clients reach, or the operators'. */
  listener: "public" | "admin";
}>;

/** One bill as the ledger has it: a call that was settled, or a correction of one. */
export type ChargeRecord = Readonly<{
  /** Unix milliseconds. */
  at: number;
  /** Whether the row settles a call or corrects its cost. */
  type: "settle" | "adjust";
  /** Of the call; its rows in the ledger are found by it. */
  attempt: string;
  /** What its reserve said. Undefined: that was before this gateway had an observer that asks for bills, and of every correction. */
  call?: Opt<ChargedCall>;
  /** How certain the cost is. */
  state: CallState;
  /** Units that the call used. */
  usage: Usage;
  /** null: it has no known price. Of a correction what it adds, which may be less than nothing. */
  costNano: bigint | null;
  /** "ok", the kind of a failure, "recovered". */
  outcome: string;
  /** Why the response ended. */
  finish?: Opt<string>;
  /** Time to the headers, to the first content, and in total, in milliseconds. */
  ms?: Settle["ms"];
}>;

/** What the ledger knew of a call before it was sent. */
export type ChargedCall = Readonly<
  Pick<
    Reserve,
    "request" | "number" | "key" | "account" | "labels" | "target" | "privacy" | "clientRequest"
  > & {
    /** The limits that it drew on, as they stood then. */
    limits: readonly LimitState[];
  }
>;
