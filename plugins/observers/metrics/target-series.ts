// All series of one provider's model, looked up once so that a billing record needs no further
// lookups.
import {
  cacheReadTokens,
  inputTokens,
  outputTokens,
  UNITS,
  type ChargeRecord,
  type Unit,
  type Usage,
} from "tollgate/plugin";
import { genAiOperation, genAiProvider, MCP } from "../genai-names.ts";
import { type GenAiSeries, genAiFamilies } from "./genai-families.ts";
import type { ModelLabels } from "./label-values.ts";
import {
  type Counter,
  type Histogram,
  createCounters,
  createHistograms,
  type Series,
} from "./series.ts";
import { COUNTED_FAMILIES, type Family } from "./families.ts";

const CACHE_WRITE_UNITS = UNITS.filter((unit) => unit.startsWith("cache_write_"));

/** The groups of series to update. */
interface SeriesSet {
  readonly counted: CountedSeries;
  readonly genAi: GenAiSeries | undefined;
}

/** Series of one target. Money is counted in nano-dollars under every metric name. */
export class TargetSeries {
  readonly #seriesSet: SeriesSet;
  readonly #provider: string;
  readonly #model: string;
  readonly #spend: Counter;
  readonly #unpriced: Counter;
  readonly #estimated: Counter;
  readonly #callSeconds: Histogram;
  readonly #units = new Map<string, Counter>();
  readonly #genAi: readonly [operation: string, provider: string, model: string];
  /** Counter of the previous call, since consecutive calls usually have the same labels. */
  #lastCallCounter: { credential: string; state: string; fault: string; of: Counter } | undefined;
  #genAiTarget: GenAiTargetSeries | undefined;

  constructor(to: SeriesSet, provider: string, { model, operation }: ModelLabels) {
    const { counted } = to;
    this.#seriesSet = to;
    this.#provider = provider;
    this.#model = model;
    // The target is known from now on, so its series start at 0.
    this.#spend = counted.spend.get(provider, model);
    this.#unpriced = counted.unpriced.get(provider, model);
    this.#estimated = counted.estimated.get(provider, model);
    this.#callSeconds = counted.callSeconds.get(provider, model);
    this.#genAi = [genAiOperation(operation), genAiProvider(provider), model];
  }

  add({ state, usage, costNano, outcome, ms, call }: ChargeRecord): void {
    const { genAi } = this.#seriesSet;
    const fault = outcome === "ok" ? "none" : outcome;
    const credential = call?.target.credential ?? "";
    this.#callCounter(credential, state, fault).add();
    if (costNano === null) this.#unpriced.add();
    else this.#spend.addNano(costNano);
    if (state === "estimated") this.#estimated.add();
    // The ledger's sums exclude void calls.
    const isTool = call?.target.protocol === MCP;
    if (state !== "void") {
      this.#addUsage(usage);
      if (genAi && !isTool) this.#genAiTargetFor(genAi).addUsage(usage);
    }
    if (ms && isTool) this.#addToolDuration(ms.total / 1_000, fault);
    else if (ms)
      this.#addDurations(ms, { fault, usage, streamed: call?.clientRequest?.stream === true });
  }

  #addDurations(
    { total, firstToken }: NonNullable<ChargeRecord["ms"]>,
    { fault, usage, streamed }: { fault: string; usage: Usage; streamed: boolean },
  ): void {
    const { genAi } = this.#seriesSet;
    const seconds = total / 1_000;
    this.#callSeconds.observe(seconds);
    if (genAi) this.#genAiTargetFor(genAi).addDuration(seconds, fault === "none" ? "" : fault);
    if (!streamed || firstToken === undefined) return;
    this.#addStreamTimes(firstToken / 1_000, seconds, usage);
    genAi?.firstChunk.get(...this.#genAi).observe(firstToken / 1_000);
  }

  /** A call of a tool is not a call of a model, so the GenAI metrics of models do not count it. */
  #addToolDuration(seconds: number, fault: string): void {
    this.#callSeconds.observe(seconds);
    const errorType = fault === "none" ? "" : fault;
    this.#seriesSet.genAi?.mcpClient.get("tools/call", this.#model, errorType).observe(seconds);
  }

  #callCounter(credential: string, state: string, fault: string): Counter {
    const last = this.#lastCallCounter;
    if (last?.credential === credential && last.state === state && last.fault === fault)
      return last.of;
    const of = this.#seriesSet.counted.calls.get(
      this.#provider,
      this.#model,
      credential,
      state,
      fault,
    );
    this.#lastCallCounter = { credential, state, fault, of };
    return of;
  }

  /** Returns the GenAI series, which are created again if GenAI metrics were turned off and on. */
  #genAiTargetFor(to: GenAiSeries): GenAiTargetSeries {
    if (this.#genAiTarget?.to === to) return this.#genAiTarget;
    return (this.#genAiTarget = new GenAiTargetSeries(to, this.#genAi));
  }

  #addUsage(usage: Usage): void {
    for (const unit in usage) {
      const count = usage[unit as Unit];
      if (count === undefined) continue;
      if (unit === "reasoning") this.#unitCounter("", this.#seriesSet.counted.reasoning).add(count);
      else this.#unitCounter(unit, this.#seriesSet.counted.tokens).add(count);
    }
  }

  #unitCounter(unit: string, family: CountedSeries["tokens"]): Counter {
    let count = this.#units.get(unit);
    if (!count) {
      const values = unit === "" ? [] : [unit];
      this.#units.set(unit, (count = family.get(this.#provider, this.#model, ...values)));
    }
    return count;
  }

  #addStreamTimes(first: number, total: number, usage: Usage): void {
    this.#seriesSet.counted.firstToken.get(this.#provider, this.#model).observe(first);
    const written = outputTokens(usage);
    if (written > 1 && total > first)
      this.#seriesSet.counted.tokenSeconds
        .get(this.#provider, this.#model)
        .observe((total - first) / (written - 1));
  }
}

/** Series of one target under the names of the GenAI conventions. */
class GenAiTargetSeries {
  readonly to: GenAiSeries;
  readonly #labelValues: readonly [operation: string, provider: string, model: string];
  readonly #successDuration: Histogram;
  #input: Histogram | undefined;
  #output: Histogram | undefined;

  constructor(to: GenAiSeries, of: readonly [string, string, string]) {
    this.to = to;
    this.#labelValues = of;
    this.#successDuration = to.duration.get(...of, "");
  }

  addDuration(seconds: number, fault: string): void {
    const of =
      fault === "" ? this.#successDuration : this.to.duration.get(...this.#labelValues, fault);
    of.observe(seconds);
  }

  addUsage(usage: Usage): void {
    const { to } = this;
    const of = this.#labelValues;
    const input = inputTokens(usage);
    const output = outputTokens(usage);
    if (input > 0) (this.#input ??= to.tokens.get(...of, "input")).observe(input);
    if (output > 0) (this.#output ??= to.tokens.get(...of, "output")).observe(output);
    const cached = cacheReadTokens(usage);
    if (cached > 0) to.cacheRead.get(...of).add(cached);
    let written = 0;
    for (const unit of CACHE_WRITE_UNITS) written += usage[unit] ?? 0;
    if (written > 0) to.cacheWrite.get(...of).add(written);
    if (usage.reasoning) to.reasoning.get(...of).add(usage.reasoning);
  }
}

// Series that are updated from records, billing records, and events. They are kept across reloads,
// and the number of their series is limited.

export type CountedSeries = {
  readonly [K in keyof typeof COUNTED_FAMILIES]: Series<
    (typeof COUNTED_FAMILIES)[K] extends { type: "histogram" } ? Histogram : Counter
  >;
};

const createSeries = (family: Family): Series<Counter> | Series<Histogram> =>
  family.type === "histogram" ? createHistograms(family) : createCounters(family);

export function createCountedSeries(): CountedSeries {
  const own = Object.fromEntries(
    Object.entries(COUNTED_FAMILIES).map(([name, family]) => [name, createSeries(family)]),
  ) as CountedSeries;
  // Series with known label values start at 0.
  own.workerExits.get();
  for (const ok of ["true", "false"]) own.reloads.get(ok);
  for (const direction of ["up", "down"]) own.adjustments.get(direction);
  return own;
}

export function createGenAiSeries(): GenAiSeries {
  const of = genAiFamilies;
  return {
    duration: createHistograms(of.duration),
    firstChunk: createHistograms(of.firstChunk),
    tokens: createHistograms(of.tokens),
    cacheRead: createCounters(of.cacheRead),
    cacheWrite: createCounters(of.cacheWrite),
    reasoning: createCounters(of.reasoning),
    mcpServer: createHistograms(of.mcpServer),
    mcpClient: createHistograms(of.mcpClient),
  };
}
