// From what the gateway tells to what is counted. Requests come from records; calls and money come from bills, which none is
// missing of, so that their sums are the ledger's.
import type { LedgerLine, Notice, RequestRecord } from "tollgate/plugin";
import { createCounted, createGenAi, type CountedSeries, type GenAiSeries } from "./counted.ts";
import { FirstFew, type ModelNames } from "./names.ts";
import { Budgets } from "./budgets.ts";
import { hedgeResult, inSequence } from "../hedges.ts";
import { type Count, type Histogram, OTHER } from "./series.ts";
import { TargetSeries } from "./target.ts";

/** Models of all providers whose series are found at once; made-up ones share one. */
const MOST_TARGETS = 4_000;

export interface TallyOptions {
  readonly genAi: boolean;
  /** Whether what keys cost is told. */
  readonly keys: boolean;
  /** Labels whose values' cost is told. */
  readonly labels: readonly string[];
  /** Different keys, and values of each label. */
  readonly most: number;
}

/** The series that a request adds to, and of which requests. */
interface RequestSeries extends Pick<
  RequestRecord,
  "frontend" | "kind" | "outcome" | "status" | "stream" | "lane"
> {
  readonly requests: Count;
  readonly requestSeconds: Histogram;
  readonly gatewaySeconds: Histogram;
}

export class Tally {
  readonly counted: CountedSeries = createCounted();
  /** Undefined: their words are not wanted. */
  genAi: GenAiSeries | undefined;
  readonly budgets = new Budgets();
  /** Of the generation that answers now. */
  names: ModelNames;
  #options: TallyOptions;
  readonly #targets = new Map<string, Map<string, TargetSeries>>();
  #targetCount = 0;
  #last: RequestSeries | undefined;
  readonly #keys: FirstFew;
  readonly #values = new Map<string, FirstFew>();
  /** What has been tried: it is known that it rests, or that it does not. */
  readonly credentials = new Map<string, readonly [provider: string, credential: string]>();
  /** Undefined: no reload since the start. */
  lastReload: boolean | undefined;

  constructor(options: TallyOptions, names: ModelNames) {
    this.#options = options;
    this.names = names;
    this.#keys = new FirstFew(options.most);
    this.follow(options, names);
  }

  /** Another generation's: what was counted stays. */
  follow(options: TallyOptions, names: ModelNames): void {
    this.#options = options;
    this.names = names;
    this.genAi = options.genAi ? (this.genAi ?? createGenAi()) : undefined;
    // What was made up may be known now.
    this.#targets.clear();
    this.#targetCount = 0;
    // A credential that is there still is tried again, and what rests is told in any case.
    this.credentials.clear();
  }

  seen(batch: readonly RequestRecord[]): void {
    for (const record of batch) this.#request(record);
  }

  #request(record: RequestRecord): void {
    const to = this.counted;
    const { ms, ownMs, at, fault, calls } = record;
    const series = this.#series(record);
    series.requests.add();
    const trace = traceOf(record);
    series.requestSeconds.observe(ms / 1_000, trace, at);
    series.gatewaySeconds.observe(ownMs / 1_000, trace, at);
    if (calls.length === 0) {
      if (fault) to.refusals.of(fault.code ?? fault.kind).add();
      return;
    }
    if (calls.length > 1) this.#several(calls);
    if (record.losses > 0)
      for (const [code, count] of Object.entries(record.lossCodes)) to.losses.of(code).add(count);
  }

  #several(calls: RequestRecord["calls"]): void {
    const to = this.counted;
    const row = inSequence(calls);
    for (let i = 1; i < row.length; i++) {
      const { provider, fault: why } = row[i - 1]!;
      to.fallbacks.of(provider, row[i]!.provider, why?.kind ?? "none").add();
    }
    for (const call of calls) {
      const result = hedgeResult(call);
      if (!result) continue;
      const { hedge, provider, model, costNano } = call;
      const named = this.names.of(provider, model).model;
      if (hedge) to.hedges.of(provider, named, result).add();
      if (result === "lost" && costNano !== null) to.hedgeSpend.of(provider, named).pay(costNano);
    }
  }

  /** Found by what it has alike with the one before, mostly. */
  #series(record: RequestRecord): RequestSeries {
    const { frontend, kind, outcome, status, stream, lane } = record;
    const last = this.#last;
    if (
      last?.frontend === frontend &&
      last.status === status &&
      last.kind === kind &&
      last.outcome === outcome &&
      last.stream === stream &&
      last.lane === lane
    )
      return last;
    const to = this.counted;
    return (this.#last = {
      frontend,
      kind,
      outcome,
      status,
      stream,
      lane,
      requests: to.requests.of(frontend, kind, outcome, String(status)),
      requestSeconds: to.requestSeconds.of(frontend, stream ? "true" : "false"),
      gatewaySeconds: to.gatewaySeconds.of(frontend, lane ?? "none"),
    });
  }

  billed(lines: readonly LedgerLine[]): void {
    for (const line of lines) {
      if (line.type === "adjust") this.#adjusted(line.costNano ?? 0n);
      else this.#settled(line);
    }
  }

  #adjusted(nano: bigint): void {
    const up = nano >= 0n;
    this.counted.adjustments.of(up ? "up" : "down").pay(up ? nano : -nano);
  }

  #settled(line: LedgerLine): void {
    const { call, costNano } = line;
    const { provider, model, credential } = call?.target ?? UNKNOWN;
    this.#target(provider, model).add(line);
    if (!call) return;
    this.#tried(provider, credential);
    for (const limit of call.limits) this.budgets.saw(limit);
    if (costNano === null) return;
    const { keys, labels } = this.#options;
    if (keys) this.counted.keySpend.of(this.#keys.of(call.key)).pay(costNano);
    for (const name of labels) {
      const value = call.labels[name];
      if (value !== undefined)
        this.counted.labelSpend.of(name, this.#valuesOf(name).of(value)).pay(costNano);
    }
  }

  #valuesOf(name: string): FirstFew {
    let few = this.#values.get(name);
    if (!few) this.#values.set(name, (few = new FirstFew(this.#options.most)));
    return few;
  }

  #tried(provider: string, credential: string): void {
    const key = `${provider}\n${credential}`;
    if (!this.credentials.has(key) && this.credentials.size < MOST_TARGETS)
      this.credentials.set(key, [provider, credential]);
  }

  #target(provider: string, model: string): TargetSeries {
    const of = this.#targets.get(provider);
    const found = of?.get(model);
    if (found) return found;
    const name = this.names.of(provider, model);
    // Made-up names come and go: their series is found by the name that they share.
    const known = name.model === model || model === OTHER;
    if (!known) return this.#target(provider, OTHER);
    const made = new TargetSeries(this, provider, name);
    if (this.#targetCount++ < MOST_TARGETS)
      if (of) of.set(model, made);
      else this.#targets.set(provider, new Map([[model, made]]));
    return made;
  }

  told(notice: Notice): void {
    if (notice.type === "worker_gone") this.counted.workerExits.of().add();
    if (notice.type !== "reloaded") return;
    this.lastReload = notice.ok;
    this.counted.reloads.of(String(notice.ok)).add();
  }
}

/** A call that was open before this observer was mounted. */
const UNKNOWN = { provider: OTHER, model: OTHER, credential: OTHER };

/** Of a trace that its client keeps: what is looked up there is found. */
const traceOf = ({ trace }: RequestRecord): string | undefined =>
  trace.sampled ? trace.traceId : undefined;
