// Updates the series from records, billing records, and gateway events. Requests are counted from
// request records. Calls and money are counted from billing records. Billing records are complete,
// so their sums equal the ledger's sums.
import type {
  ChargeRecord,
  GatewayEvent,
  RequestRecord,
  LimitState,
  Context,
  RpcOperation,
} from "tollgate/plugin";
import {
  createCountedSeries,
  createGenAiSeries,
  type CountedSeries,
  TargetSeries,
} from "./target-series.ts";
import type { GenAiSeries } from "./genai-families.ts";
import { BoundedValues, ModelLabelValues } from "./label-values.ts";
import { MCP } from "../genai-names.ts";
import { hedgeResult, sequentialCalls } from "../hedges.ts";
import { type Counter, type Histogram, OTHER } from "./series.ts";

/** Maximum number of cached models of all providers. All unknown model names share one entry. */
const MAX_TARGETS = 4_000;

/** Maximum number of distinct names of tools. */
const MAX_TOOLS = 500;

export interface MetricsTallyOptions {
  readonly genAi: boolean;
  /** Whether to report spend by API key. */
  readonly keys: boolean;
  /** Labels whose spend to report by value. */
  readonly labels: readonly string[];
  /** Maximum number of distinct keys, and of distinct values per label. */
  readonly maxLabelValues: number;
}

/** The series that a request updates, and the properties of the requests that update them. */
interface RequestSeries extends Pick<
  RequestRecord,
  "frontend" | "operation" | "outcome" | "status" | "stream" | "mode"
> {
  readonly requests: Counter;
  readonly requestSeconds: Histogram;
  readonly overheadSeconds: Histogram;
}

export class MetricsTally {
  readonly counted: CountedSeries = createCountedSeries();
  /** Undefined if GenAI metrics are off. */
  genAi: GenAiSeries | undefined;
  readonly budgets = new BudgetTracker();
  /** Label values of the current config generation. */
  modelLabels: ModelLabelValues;
  #options: MetricsTallyOptions;
  readonly #targets = new Map<string, Map<string, TargetSeries>>();
  #targetCount = 0;
  #lastSeries: RequestSeries | undefined;
  readonly #keys: BoundedValues;
  readonly #labelValues = new Map<string, BoundedValues>();
  readonly #tools = new BoundedValues(MAX_TOOLS);
  /** Credentials that were used, so that a credential without a cooldown is reported too. */
  readonly credentials = new Map<string, readonly [provider: string, credential: string]>();
  /** Whether the last reload succeeded. Undefined if there was no reload since the start. */
  lastReload: boolean | undefined;

  constructor(options: MetricsTallyOptions, names: ModelLabelValues) {
    this.#options = options;
    this.modelLabels = names;
    this.#keys = new BoundedValues(options.maxLabelValues);
    this.reconfigure(options, names);
  }

  /** Switches to another config generation's options. The counts are kept. */
  reconfigure(options: MetricsTallyOptions, names: ModelLabelValues): void {
    this.#options = options;
    this.modelLabels = names;
    this.genAi = options.genAi ? (this.genAi ?? createGenAiSeries()) : undefined;
    // A model name that was unknown may be known now.
    this.#targets.clear();
    this.#targetCount = 0;
    // Credentials that still exist will be used again, and their cooldowns are reported in any
    // case.
    this.credentials.clear();
  }

  onRequests(batch: readonly RequestRecord[]): void {
    for (const record of batch) this.#addRequest(record);
  }

  #addRequest(record: RequestRecord): void {
    const to = this.counted;
    const { ms, overheadMs, at, fault, calls, rpc } = record;
    const series = this.#seriesFor(record);
    series.requests.add();
    const trace = sampledTraceId(record);
    series.requestSeconds.observe(ms / 1_000, trace, at);
    series.overheadSeconds.observe(overheadMs / 1_000, trace, at);
    if (rpc?.system === MCP) this.#addMcpRequest(rpc, ms / 1_000);
    if (calls.length === 0) {
      if (fault) to.rejections.get(fault.code ?? fault.kind).add();
      return;
    }
    for (const { transport, provider, model } of calls)
      if (transport)
        to.webSocketCalls.get(provider, this.modelLabels.labelsFor(provider, model).model).add();
    if (calls.length > 1) this.#addFallbacks(calls);
    if (record.losses > 0)
      for (const [code, count] of Object.entries(record.lossCodes))
        to.translationWarnings.get(code).add(count);
  }

  #addMcpRequest({ method, version, target, errorType }: RpcOperation, seconds: number): void {
    const name = target ?? "";
    const [tool, prompt] = method === "prompts/get" ? ["", name] : [name, ""];
    this.genAi?.mcpServer
      .get(method, version ?? "", tool, prompt, errorType ?? "")
      .observe(seconds);
  }

  #addFallbacks(calls: RequestRecord["calls"]): void {
    const to = this.counted;
    const row = sequentialCalls(calls);
    for (let i = 1; i < row.length; i++) {
      const { provider, fault: why } = row[i - 1]!;
      to.fallbacks.get(provider, row[i]!.provider, why?.kind ?? "none").add();
    }
    for (const call of calls) {
      const result = hedgeResult(call);
      if (!result) continue;
      const { hedge, provider, model, costNano } = call;
      const named = this.modelLabels.labelsFor(provider, model).model;
      if (hedge) to.hedges.get(provider, named, result).add();
      if (result === "lost" && costNano !== null)
        to.hedgeSpend.get(provider, named).addNano(costNano);
    }
  }

  /** Returns the series of a request. Most requests match the previous one. */
  #seriesFor(record: RequestRecord): RequestSeries {
    const { frontend, operation, outcome, status, stream, mode } = record;
    const last = this.#lastSeries;
    if (
      last?.frontend === frontend &&
      last.status === status &&
      last.operation === operation &&
      last.outcome === outcome &&
      last.stream === stream &&
      last.mode === mode
    )
      return last;
    const to = this.counted;
    return (this.#lastSeries = {
      frontend,
      operation,
      outcome,
      status,
      stream,
      mode,
      requests: to.requests.get(frontend, operation, outcome, String(status)),
      requestSeconds: to.requestSeconds.get(frontend, stream ? "true" : "false"),
      overheadSeconds: to.overheadSeconds.get(frontend, mode ?? "none"),
    });
  }

  onCharges(lines: readonly ChargeRecord[]): void {
    for (const line of lines) {
      if (line.type === "adjust") this.#addAdjustment(line.costNano ?? 0n);
      else this.#addCharge(line);
    }
  }

  #addAdjustment(nano: bigint): void {
    const up = nano >= 0n;
    this.counted.adjustments.get(up ? "up" : "down").addNano(up ? nano : -nano);
  }

  #addCharge(line: ChargeRecord): void {
    const { call, costNano } = line;
    const { provider, model, credential, protocol } = call?.target ?? UNKNOWN_TARGET;
    this.#targetFor(provider, model, protocol === MCP).add(line);
    if (!call) return;
    this.#addCredential(provider, credential);
    for (const limit of call.limits) this.budgets.observe(limit);
    if (costNano === null) return;
    const { keys, labels } = this.#options;
    if (keys) this.counted.keySpend.get(this.#keys.labelFor(call.key)).addNano(costNano);
    for (const name of labels) {
      const value = call.labels[name];
      if (value !== undefined)
        this.counted.labelSpend.get(name, this.#valuesOf(name).labelFor(value)).addNano(costNano);
    }
  }

  #valuesOf(name: string): BoundedValues {
    let few = this.#labelValues.get(name);
    if (!few) this.#labelValues.set(name, (few = new BoundedValues(this.#options.maxLabelValues)));
    return few;
  }

  #addCredential(provider: string, credential: string): void {
    const key = `${provider}\n${credential}`;
    if (!this.credentials.has(key) && this.credentials.size < MAX_TARGETS)
      this.credentials.set(key, [provider, credential]);
  }

  /** `isTool`: the target is a tool of a server, which the catalog of models does not contain. */
  #targetFor(provider: string, model: string, isTool = false): TargetSeries {
    const of = this.#targets.get(provider);
    const found = of?.get(model);
    if (found) return found;
    const name = isTool
      ? { model: this.#tools.labelFor(model), operation: "chat" }
      : this.modelLabels.labelsFor(provider, model);
    // Unknown model names come and go, so they share the series of the common name.
    const known = name.model === model || model === OTHER;
    if (!known) return this.#targetFor(provider, OTHER);
    const made = new TargetSeries(this, provider, name);
    if (this.#targetCount++ < MAX_TARGETS)
      if (of) of.set(model, made);
      else this.#targets.set(provider, new Map([[model, made]]));
    return made;
  }

  onEvent(notice: GatewayEvent): void {
    if (notice.type === "worker_exited") this.counted.workerExits.get().add();
    if (notice.type === "job_ended") this.counted.jobs.get(notice.kind, notice.status).add();
    if (notice.type !== "reloaded") return;
    this.lastReload = notice.ok;
    this.counted.reloads.get(String(notice.ok)).add();
  }
}

/** Target of a call that was open before this observer was enabled. */
const UNKNOWN_TARGET = { provider: OTHER, model: OTHER, credential: OTHER, protocol: null };

/** Returns the trace ID if the client sampled the trace, so that the trace can be found. */
const sampledTraceId = ({ trace }: RequestRecord): string | undefined =>
  trace.sampled ? trace.traceId : undefined;

// Budget states as of the last call that used each budget. If there are many budgets, only those
// that are nearest to exhaustion are reported.

/** Maximum number of budgets in memory. Beyond it, the least recently used one is dropped. */
const MAX_TRACKED = 2_000;
/** Maximum number of budgets in a report. */
const MAX_REPORTED = 100;

interface BudgetSample {
  readonly scope: string;
  readonly per: string;
  readonly max: bigint;
  readonly used: bigint;
  readonly resetsAt: number;
}

class BudgetTracker {
  readonly #limits = new Map<string, LimitState>();

  observe(limit: LimitState): void {
    if (limit.unit !== "nano_usd") return;
    const key = `${limit.scope}\n${limit.per}`;
    this.#limits.delete(key);
    this.#limits.set(key, limit);
    if (this.#limits.size > MAX_TRACKED) this.#limits.delete(this.#limits.keys().next().value!);
  }

  /**
   * Returns the budgets nearest to exhaustion first. A budget whose window has ended counts as
   * unused.
   */
  mostUsed(now: number, most = MAX_REPORTED): readonly BudgetSample[] {
    const all = Array.from(
      this.#limits.values(),
      ({ scope, per, max, remaining, resetsAt }): BudgetSample => {
        const limit = BigInt(max);
        const used = resetsAt <= now ? 0n : limit - BigInt(remaining);
        return { scope, per, max: limit, used, resetsAt };
      },
    );
    const share = ({ max, used }: BudgetSample) => (max > 0n ? Number(used) / Number(max) : 1);
    return all.toSorted((a, b) => share(b) - share(a)).slice(0, most);
  }
}

// Shares the counts between config generations. The previous generation counts with its own options
// until the next generation receives its first data.

interface SharedTally {
  readonly tally: MetricsTally;
  /** Returns the shared tally, which uses this generation's options and names from then on. */
  activate(): MetricsTally;
}

export function createSharedTally(
  ctx: Pick<Context, "catalog" | "shared">,
  options: MetricsTallyOptions,
): SharedTally {
  const names = new ModelLabelValues(ctx.catalog);
  const tally = ctx.shared("tally", () => new MetricsTally(options, names));
  let follows = false;
  return {
    tally,
    activate() {
      if (!follows) tally.reconfigure(options, names);
      follows = true;
      return tally;
    },
  };
}
