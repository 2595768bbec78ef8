import { BOUNDS } from "../lib/bounds.ts";
import { fail } from "../model/error.ts";
import { exceed } from "../model/excess.ts";
import type { EffectivePolicy, Lane, ModelInfo } from "../model/facts.ts";
import type { Call, ProviderAccess } from "../plugin/call.ts";
import type { Op } from "../plugin/protocol.ts";
import type { CallStage } from "../model/retry.ts";
import type { Try } from "./candidates/try.ts";
import type { HostExchange } from "./exchange.ts";
import { prepare } from "./hooks.ts";
import type { HostCandidate } from "./mounted.ts";
import type { Latency } from "./targets/latency.ts";
import { traceHeaders } from "./trace.ts";
import { minding, type OwnFetch } from "./upstream/own-fetch.ts";

export interface Loss {
  field: string;
  how: "dropped" | "approximated";
  code: string;
}

/** Called when everything that may refuse a call has let it pass: what a response says of attempts and providers goes by this. */
export function noteSent({ exchange, provider }: HostCall): void {
  const inner = exchange["~"];
  const { since = performance.now(), n = 0 } = inner.sent ?? {};
  inner.sent = { since, n: n + 1, provider };
}

/** One upstream attempt of an exchange. */
export class HostCall implements Call {
  readonly id: string;
  readonly provider: string;
  readonly protocol: string | null;
  readonly lane: Lane;
  readonly model: string;
  readonly info: ModelInfo;
  readonly credential: string;
  readonly policy: EffectivePolicy;
  readonly weight: number;
  readonly resting: HostCandidate["resting"];
  readonly attempt: string;
  readonly n: number;
  readonly exchange: HostExchange;
  readonly stream: boolean;
  readonly candidate: HostCandidate;
  readonly losses: Loss[] = [];
  /**
   * The headers of its answer, frozen when they leave. Until then an endpoint that sends by itself, and a codec that reads or
   * writes the answer, may name losses.
   */
  head: Record<string, string | undefined> | undefined;
  /** Each is named once, and a hostile body has a hundred thousand. */
  #lost: Set<string> | undefined;
  readonly started = performance.now();
  /** When the first call of its request was begun. */
  readonly began: number;
  readonly pass: Try["pass"];
  /** On a connection of its own. */
  readonly fresh: boolean;
  /** Without what only another account can read. */
  readonly unbound: boolean;
  /** Made beside a call that stayed without content. */
  readonly hedge: boolean;
  /** The other call of a hedge answered, or this one was given up for it. */
  lost = false;
  /** What the receipt of its data policy says. */
  promised: string | undefined;
  /** Where its first content is measured, until it is there; undefined: nothing goes by it. */
  latency: Latency | undefined;
  /** Tokens of one answer that its hold pays for, where a hard budget sets the bound of an endpoint that sends by itself. */
  cap: number | undefined;
  /** Texts before which its answer ends, where its wire has no field for them. */
  stops: readonly string[] | undefined;
  /** Its content has come: its target works. */
  worked = false;
  /** How far it has come, until its provider takes it on. */
  stage: CallStage = "unsent";
  readonly #ending: ((reason: Error) => void)[] = [];
  #over: Error | undefined;
  #aborter: AbortController | undefined;
  #signal: AbortSignal | undefined;
  #own: OwnFetch | undefined;

  constructor(x: HostExchange, candidate: HostCandidate, n: number, turn?: Try) {
    this.id = candidate.id;
    this.provider = candidate.provider;
    this.protocol = candidate.protocol;
    this.lane = candidate.lane;
    this.model = candidate.model;
    this.info = candidate.info;
    this.credential = candidate.credential;
    this.policy = candidate.policy;
    this.weight = candidate.weight;
    this.resting = candidate.resting;
    this.attempt = `${x.id}.${n}`;
    this.n = n;
    this.began = turn?.began ?? this.started;
    this.pass = turn?.pass ?? "plain";
    this.fresh = turn?.fresh ?? false;
    this.unbound = turn?.unbound ?? false;
    this.hedge = turn?.hedge ?? false;
    this.exchange = x;
    this.candidate = candidate;
    const streams = candidate["~"].endpoint.endpoint.streams ?? "asked";
    this.stream = streams === "asked" ? x.stream : streams === "always";
  }

  /** From the request's first byte. */
  get startMs(): number {
    return Math.round(this.started - this.exchange["~"].started);
  }
  get op(): Op {
    return this.exchange.op;
  }
  get name(): string {
    return this.exchange.name;
  }
  get params(): { readonly [name: string]: string } {
    return this.exchange.params;
  }
  get query(): URLSearchParams {
    return this.exchange.query;
  }
  get state(): "refuse" | "relay" {
    // Where nothing may be kept there is nothing to go back to.
    return this.exchange.privacy === "off" ? this.candidate["~"].provider.state : "refuse";
  }
  /** Of this call: it is over when the client goes, and when another call takes its place. */
  get signal(): AbortSignal {
    this.#aborter ??= new AbortController();
    if (this.#over) this.#aborter.abort(this.#over);
    return (this.#signal ??= AbortSignal.any([this.exchange.signal, this.#aborter.signal]));
  }
  get fetch(): ProviderAccess["fetch"] {
    const { gen, frontend } = this.exchange["~"];
    this.#own ??= minding(
      this,
      gen.fetchFor(this.candidate, this.signal, {
        prepare: (out) => prepare(frontend.chain, out, this),
        trace: () => traceHeaders(this),
      }),
    );
    return this.#own.fetch;
  }

  /** As the provider's last refusal of a request of `fetch` said. */
  get retryAfterMs(): number | undefined {
    return this.#own?.retryAfterMs();
  }

  /** Whether its provider answered a request of `fetch` with success. */
  get accepted(): boolean {
    return this.#own?.accepted() ?? false;
  }

  /** Its endpoint has said everything: what it left unread of answers ends. */
  release(): void {
    this.#own?.release();
  }

  /** Why it was given up; undefined: it was not. */
  get over(): Error | undefined {
    return this.#over;
  }

  /** It is given up: whatever still goes on for it ends. */
  end(reason: Error): void {
    if (this.#over) return;
    this.#over = reason;
    this.#aborter?.abort(reason);
    for (const end of this.#ending.splice(0)) end(reason);
  }

  /** At once, when it has been given up already. */
  onEnd(end: (reason: Error) => void): void {
    if (this.#over) end(this.#over);
    else this.#ending.push(end);
  }

  lose(named: string, how: "dropped" | "approximated", code: string = how): void {
    const field = this.spelling(named);
    if (this.exchange.strict)
      fail(
        "unsupported",
        `${field} cannot reach ${this.id} without loss (${code}), and this request is strict.`,
        {
          param: field,
          code: "lossy_translation",
        },
      );
    const said = `${code} ${field}`;
    if (this.#lost?.has(said)) return;
    (this.#lost ??= new Set()).add(said);
    this.losses.push({ field, how, code });
    if (this.head && !Object.isFrozen(this.head)) this.head["x-tollgate-warnings"] = this.warnings;
  }

  cutAt(texts: readonly string[]): void {
    const wanted = [...new Set(texts)].filter((text) => text !== "");
    if (wanted.length === 0) return;
    if (wanted.length > BOUNDS.stops.most)
      exceed("stops", undefined, { param: this.spelling("stop") });
    if (wanted.some((text) => text.length > BOUNDS.stopLength.most))
      exceed("stopLength", undefined, { param: this.spelling("stop") });
    this.lose("stop", "approximated", "emulated");
    this.stops = wanted;
  }

  /** As the client spells it; on the verbatim lane the words are its own already. */
  spelling(field: string): string {
    if (this.lane !== "translated") return field;
    const x = this.exchange;
    return x["~"].frontend.server?.spelling?.(field, x.body) ?? field;
  }

  /** Every loss by name, in at most 1 KB: what does not fit is counted. */
  get warnings(): string | undefined {
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
