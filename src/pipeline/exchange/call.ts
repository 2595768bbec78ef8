import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { EffectivePolicy, ForwardingMode, ModelInfo } from "../../model/facts.ts";
import type { Call, ProviderClient } from "../../plugin/call.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { HostExchange } from "./exchange.ts";
import type { HostCandidate } from "./mounted.ts";
import type { Latency } from "../targets/latency.ts";
import { createTraceHeaders } from "./trace.ts";
import { trackPluginFetch, type PluginFetch } from "./plugin-fetch.ts";
import type { CallReason } from "../targets/target-status.ts";

export interface TranslationLoss {
  field: string;
  how: "dropped" | "approximated";
  code: string;
}

/**
 * Records that a call is sent. Called when every check that may reject the call has passed. The
 * response headers about attempts and providers are based on this.
 */
export function recordSentCall({ exchange, provider }: HostCall): void {
  const state = exchange.state;
  const { firstSentAt = performance.now(), count = 0 } = state.calls.sent ?? {};
  state.calls.sent = { firstSentAt, count: count + 1, lastProvider: provider };
}

/** One call to a provider, made for an exchange. */
export class HostCall implements Call {
  readonly id: string;
  readonly provider: string;
  readonly protocol: string | null;
  readonly mode: ForwardingMode;
  readonly model: string;
  readonly info: ModelInfo;
  readonly credential: string;
  readonly policy: EffectivePolicy;
  readonly weight: number;
  readonly cooldown: HostCandidate["cooldown"];
  readonly attemptId: string;
  readonly n: number;
  readonly exchange: HostExchange;
  readonly stream: boolean;
  readonly candidate: HostCandidate;
  readonly losses: TranslationLoss[] = [];
  /**
   * The response headers, frozen when they are sent. Until then, an endpoint that sends requests
   * itself and the codecs may report losses.
   */
  responseHeaders: Record<string, string | undefined> | undefined;
  /**
   * Losses reported up to now. Each loss is reported once, because a hostile body can contain a
   * hundred thousand losses.
   */
  #reportedLosses: Set<string> | undefined;
  readonly startedAt = performance.now();
  /** When the first call of the request began. */
  readonly requestFirstCallAt: number;
  readonly reason: ScheduledAttempt["reason"];
  /** Whether the call uses a separate new connection. */
  readonly usesNewConnection: boolean;
  /** Whether content that only another account can read is left out. */
  readonly omitsAccountBound: boolean;
  /** Whether the call is a hedge: it was started because another call had not returned content. */
  readonly isHedge: boolean;
  /** Whether the other call of a hedge answered, or this call was canceled in its favor. */
  isSuperseded = false;
  /** The receipt for the data policy of this call. */
  zdrReceipt: string | undefined;
  /**
   * Measures the time to the first token. Undefined when content has arrived, or if no
   * measurement is needed.
   */
  latency: Latency | undefined;
  /**
   * Output tokens that the call's reservation covers. Set if a hard budget applies and the endpoint
   * sends its requests itself.
   */
  outputCap: number | undefined;
  /**
   * Stop sequences that the gateway applies: the response ends before the first of them. Set if the
   * provider's protocol has no field for stop sequences.
   */
  emulatedStopSequences: readonly string[] | undefined;
  /** Whether content has arrived, which proves that the target works. */
  hasReportedSuccess = false;
  /** Whether the request is sent over a WebSocket of the provider. */
  usesSocket = false;
  /** How far the call has progressed, until the provider accepts it. */
  failurePoint: FailurePoint = "unsent";
  readonly #cancelListeners: ((reason: Error) => void)[] = [];
  #cancelReason: Error | undefined;
  #aborter: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #pluginFetch: PluginFetch | undefined;

  constructor(x: HostExchange, candidate: HostCandidate, n: number, turn?: ScheduledAttempt) {
    this.id = candidate.id;
    this.provider = candidate.provider;
    this.protocol = candidate.protocol;
    this.mode = candidate.mode;
    this.model = candidate.model;
    this.info = candidate.info;
    this.credential = candidate.credential;
    this.policy = candidate.policy;
    this.weight = candidate.weight;
    this.cooldown = candidate.cooldown;
    this.attemptId = `${x.id}.${n}`;
    this.n = n;
    this.requestFirstCallAt = turn?.firstCallAt ?? this.startedAt;
    this.reason = turn?.reason ?? "plain";
    this.usesNewConnection = turn?.usesNewConnection ?? false;
    this.omitsAccountBound = turn?.omitsAccountBound ?? false;
    this.isHedge = turn?.isHedge ?? false;
    this.exchange = x;
    this.candidate = candidate;
    const streams = candidate.mounted.endpoint.definition.streaming ?? "on_request";
    this.stream = streams === "on_request" ? x.stream : streams === "always";
  }

  /** Milliseconds from the request's first byte to the start of this call. */
  get startMs(): number {
    return Math.round(this.startedAt - this.exchange.state.connection.startedAt);
  }
  get actionType(): ActionType {
    return this.exchange.actionType;
  }
  get action(): string {
    return this.exchange.action;
  }
  get params(): { readonly [name: string]: string } {
    return this.exchange.params;
  }
  get query(): URLSearchParams {
    return this.exchange.query;
  }
  get stateMode(): "reject" | "relay" {
    // If nothing may be retained, there is no stored state to relay to.
    return this.exchange.privacy === "off" ? this.candidate.mounted.provider.stateMode : "reject";
  }
  /** Aborts when the client disconnects, or when another call replaces this call. */
  get signal(): AbortSignal {
    this.#aborter ??= new AbortController();
    if (this.#cancelReason) this.#aborter.abort(this.#cancelReason);
    return (this.#signal ??= AbortSignal.any([this.exchange.signal, this.#aborter.signal]));
  }
  get fetch(): ProviderClient["fetch"] {
    const { gen, frontend } = this.exchange.state;
    this.#pluginFetch ??= trackPluginFetch(
      this,
      gen.createFetch(this.candidate, this.signal, {
        prepare: (out) => frontend.hooks.prepare(out, this),
        trace: () => createTraceHeaders(this),
      }),
    );
    return this.#pluginFetch.fetch;
  }

  /** The retry delay in milliseconds from the provider's last rejection of a `fetch` request. */
  get retryAfterMs(): number | undefined {
    return this.#pluginFetch?.retryAfterMs();
  }

  /** Whether the provider answered a `fetch` request with success. */
  get accepted(): boolean {
    return this.#pluginFetch?.accepted() ?? false;
  }

  /** Cancels response bodies that the endpoint left unread. Called when the endpoint is done. */
  releaseFetchBodies(): void {
    this.#pluginFetch?.release();
  }

  /** The reason for cancellation. Undefined if the call was not canceled. */
  get cancelReason(): Error | undefined {
    return this.#cancelReason;
  }

  /** Cancels the call and everything that still runs for it. */
  cancel(reason: Error): void {
    if (this.#cancelReason) return;
    this.#cancelReason = reason;
    this.#aborter?.abort(reason);
    for (const end of this.#cancelListeners.splice(0)) end(reason);
  }

  /**
   * Registers a listener for cancellation. It is called immediately if the call was already
   * canceled.
   */
  onCancel(end: (reason: Error) => void): void {
    if (this.#cancelReason) end(this.#cancelReason);
    else this.#cancelListeners.push(end);
  }

  reportLoss(targetField: string, how: "dropped" | "approximated", code: string = how): void {
    const field = this.clientFieldName(targetField);
    if (this.exchange.isStrict)
      fail(
        "unsupported",
        `${field} cannot be translated for ${this.id} without loss (${code}), and this request requires strict translation.`,
        {
          param: field,
          code: "lossy_translation",
        },
      );
    const lossKey = `${code} ${field}`;
    if (this.#reportedLosses?.has(lossKey)) return;
    (this.#reportedLosses ??= new Set()).add(lossKey);
    this.losses.push({ field, how, code });
    if (this.responseHeaders && !Object.isFrozen(this.responseHeaders))
      this.responseHeaders["x-tollgate-warnings"] = this.warningsHeader;
  }

  emulateStopSequences(texts: readonly string[]): void {
    const wanted = [...new Set(texts)].filter((text) => text !== "");
    if (wanted.length === 0) return;
    if (wanted.length > BOUNDS.stopSequences.max)
      failBoundExceeded("stopSequences", undefined, { param: this.clientFieldName("stop") });
    if (wanted.some((text) => text.length > BOUNDS.stopSequenceLength.max))
      failBoundExceeded("stopSequenceLength", undefined, { param: this.clientFieldName("stop") });
    this.reportLoss("stop", "approximated", "emulated");
    this.emulatedStopSequences = wanted;
  }

  /**
   * Returns the client's name for a field. In passthrough mode, the names are already the client's.
   */
  clientFieldName(field: string): string {
    if (this.mode !== "translated") return field;
    const x = this.exchange;
    return x.state.frontend.server?.clientFieldName?.(field, x.body) ?? field;
  }

  /** The value of `x-tollgate-warnings`, at most 1 KB. Losses that do not fit are counted. */
  get warningsHeader(): string | undefined {
    if (this.losses.length === 0) return undefined;
    let text = "";
    for (const [i, { code, field }] of this.losses.entries()) {
      const one = `${code};field=${field.replace(/[^\x21-\x2b\x2d-\x3a\x3c-\x7e]/g, "_")}`;
      if (text.length + one.length > 990) return `${text}, more;count=${this.losses.length - i}`;
      text += text === "" ? one : `, ${one}`;
    }
    return text;
  }
}

/** One scheduled attempt of a request at one candidate. */
export interface ScheduledAttempt {
  readonly candidate: HostCandidate;
  readonly reason: CallReason;
  /** Delay before the attempt, in milliseconds. */
  readonly waitMs: number;
  /** Whether the attempt uses a new connection, for which the host name is resolved again. */
  readonly usesNewConnection: boolean;
  /** Whether content that only another account can read is left out. */
  readonly omitsAccountBound?: true;
  /**
   * Whether the attempt is a hedge: it is started because another call has not returned content.
   */
  readonly isHedge?: true;
  /** When the first call of the request began. Undefined if this is the first call. */
  readonly firstCallAt: number | undefined;
}
