import { BOUNDS } from "../../lib/bounds.ts";
import { fail } from "../../model/error.ts";
import { failBoundExceeded } from "../../model/bound-exceeded.ts";
import type { EffectivePolicy, ForwardingMode, ModelInfo } from "../../model/facts.ts";
import type { Call, ProviderClient } from "../../plugin/call.ts";
import type { ActionType } from "../../plugin/protocol.ts";
import type { FailurePoint } from "../../model/call-retry.ts";
import type { ScheduledAttempt } from "./scheduled-attempt.ts";
import type { HostExchange } from "./exchange.ts";
import { runPrepareHooks } from "../hooks/hook-chain.ts";
import type { HostCandidate } from "./mounted.ts";
import type { Latency } from "../targets/latency.ts";
import { createTraceHeaders } from "./trace.ts";
import { trackPluginFetch, type PluginFetch } from "./plugin-fetch.ts";

export interface TranslationLoss {
  field: string;
  how: "dropped" | "approximated";
  code: string;
}

/** Called when everything that may refuse a call has let it pass: what a response says of attempts and providers goes by this. */
export function recordSentCall({ exchange, provider }: HostCall): void {
  const state = exchange["~"];
  const { firstSentAt = performance.now(), count = 0 } = state.sentCalls ?? {};
  state.sentCalls = { firstSentAt, count: count + 1, lastProvider: provider };
}

/** One upstream attempt of an exchange. */
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
   * The headers of its answer, frozen when they leave. Until then an endpoint that sends by itself, and a codec that reads or
   * writes the answer, may name losses.
   */
  responseHeaders: Record<string, string | undefined> | undefined;
  /** Each is named once, and a hostile body has a hundred thousand. */
  #reportedLosses: Set<string> | undefined;
  readonly startedAt = performance.now();
  /** When the first call of its request was begun. */
  readonly requestFirstCallAt: number;
  readonly reason: ScheduledAttempt["reason"];
  /** On a connection of its own. */
  readonly usesNewConnection: boolean;
  /** Without what only another account can read. */
  readonly omitsAccountBound: boolean;
  /** Made beside a call that stayed without content. */
  readonly isHedge: boolean;
  /** The other call of a hedge answered, or this one was given up for it. */
  isSuperseded = false;
  /** What the receipt of its data policy says. */
  zdrReceipt: string | undefined;
  /** Where its first content is measured, until it is there; undefined: nothing goes by it. */
  latency: Latency | undefined;
  /** Tokens of one answer that its hold pays for, where a hard budget sets the bound of an endpoint that sends by itself. */
  outputCap: number | undefined;
  /** Texts before which its answer ends, where its wire has no field for them. */
  emulatedStopSequences: readonly string[] | undefined;
  /** Its content has come: its target works. */
  hasReportedSuccess = false;
  /** How far it has come, until its provider takes it on. */
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
    const streams = candidate["~"].endpoint.definition.streaming ?? "on_request";
    this.stream = streams === "on_request" ? x.stream : streams === "always";
  }

  /** From the request's first byte. */
  get startMs(): number {
    return Math.round(this.startedAt - this.exchange["~"].startedAt);
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
    // Where nothing may be kept there is nothing to go back to.
    return this.exchange.privacy === "off" ? this.candidate["~"].provider.stateMode : "reject";
  }
  /** Of this call: it is over when the client goes, and when another call takes its place. */
  get signal(): AbortSignal {
    this.#aborter ??= new AbortController();
    if (this.#cancelReason) this.#aborter.abort(this.#cancelReason);
    return (this.#signal ??= AbortSignal.any([this.exchange.signal, this.#aborter.signal]));
  }
  get fetch(): ProviderClient["fetch"] {
    const { gen, frontend } = this.exchange["~"];
    this.#pluginFetch ??= trackPluginFetch(
      this,
      gen.createFetch(this.candidate, this.signal, {
        prepare: (out) => runPrepareHooks(frontend.hookChain, out, this),
        trace: () => createTraceHeaders(this),
      }),
    );
    return this.#pluginFetch.fetch;
  }

  /** As the provider's last refusal of a request of `fetch` said. */
  get retryAfterMs(): number | undefined {
    return this.#pluginFetch?.retryAfterMs();
  }

  /** Whether its provider answered a request of `fetch` with success. */
  get accepted(): boolean {
    return this.#pluginFetch?.accepted() ?? false;
  }

  /** Its endpoint has said everything: what it left unread of answers ends. */
  releaseFetchBodies(): void {
    this.#pluginFetch?.release();
  }

  /** Why it was given up; undefined: it was not. */
  get cancelReason(): Error | undefined {
    return this.#cancelReason;
  }

  /** It is given up: whatever still goes on for it ends. */
  cancel(reason: Error): void {
    if (this.#cancelReason) return;
    this.#cancelReason = reason;
    this.#aborter?.abort(reason);
    for (const end of this.#cancelListeners.splice(0)) end(reason);
  }

  /** At once, when it has been given up already. */
  onCancel(end: (reason: Error) => void): void {
    if (this.#cancelReason) end(this.#cancelReason);
    else this.#cancelListeners.push(end);
  }

  reportLoss(targetField: string, how: "dropped" | "approximated", code: string = how): void {
    const field = this.clientFieldName(targetField);
    if (this.exchange.isStrict)
      fail(
        "unsupported",
        `${field} cannot reach ${this.id} without loss (${code}), and this request is strict.`,
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

  /** As the client spells it; on passthrough mode the words are its own already. */
  clientFieldName(field: string): string {
    if (this.mode !== "translated") return field;
    const x = this.exchange;
    return x["~"].frontend.server?.clientFieldName?.(field, x.body) ?? field;
  }

  /** Every loss by name, in at most 1 KB: what does not fit is counted. */
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
