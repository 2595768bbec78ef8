// All series of one model of one provider, found once: a bill then adds to them without a look-up for each.
import {
  inputTokens,
  outputTokens,
  UNITS,
  type LedgerLine,
  type Unit,
  type Usage,
} from "tollgate/plugin";
import { operationOf, providerOf } from "../genai.ts";
import type { CountedSeries, GenAiSeries } from "./counted.ts";
import type { ModelName } from "./names.ts";
import type { Count, Histogram } from "./series.ts";

const WRITES = UNITS.filter((unit) => unit.startsWith("cache_write_"));

/** Where it is added to. */
interface Counting {
  readonly counted: CountedSeries;
  readonly genAi: GenAiSeries | undefined;
}

/** Money is counted in nano-dollars, whatever becomes of its name. */
export class TargetSeries {
  readonly #to: Counting;
  readonly #provider: string;
  readonly #model: string;
  readonly #spend: Count;
  readonly #unpriced: Count;
  readonly #estimated: Count;
  readonly #callSeconds: Histogram;
  readonly #units = new Map<string, Count>();
  readonly #genAi: readonly [operation: string, provider: string, model: string];
  /** Of the call before: mostly the next one went as it did. */
  #calls: { credential: string; state: string; fault: string; of: Count } | undefined;
  #inTheirWords: TheirTarget | undefined;

  constructor(to: Counting, provider: string, { model, kind }: ModelName) {
    const { counted } = to;
    this.#to = to;
    this.#provider = provider;
    this.#model = model;
    // Known from here on, so they begin at 0.
    this.#spend = counted.spend.of(provider, model);
    this.#unpriced = counted.unpriced.of(provider, model);
    this.#estimated = counted.estimated.of(provider, model);
    this.#callSeconds = counted.callSeconds.of(provider, model);
    this.#genAi = [operationOf(kind), providerOf(provider), model];
  }

  add({ state, usage, costNano, outcome, ms, call }: LedgerLine): void {
    const { genAi } = this.#to;
    const fault = outcome === "ok" ? "none" : outcome;
    const credential = call?.target.credential ?? "";
    this.#call(credential, state, fault).add();
    if (costNano === null) this.#unpriced.add();
    else this.#spend.pay(costNano);
    if (state === "estimated") this.#estimated.add();
    // What is void stands in none of the ledger's sums.
    if (state !== "void") {
      this.#used(usage);
      if (genAi) this.#theirs(genAi).used(usage);
    }
    if (ms) this.#took(ms, { fault, usage, streamed: call?.asked?.stream === true });
  }

  #took(
    { total, content }: NonNullable<LedgerLine["ms"]>,
    { fault, usage, streamed }: { fault: string; usage: Usage; streamed: boolean },
  ): void {
    const { genAi } = this.#to;
    const seconds = total / 1_000;
    this.#callSeconds.observe(seconds);
    if (genAi) this.#theirs(genAi).took(seconds, fault === "none" ? "" : fault);
    if (!streamed || content === undefined) return;
    this.#streamed(content / 1_000, seconds, usage);
    genAi?.firstChunk.of(...this.#genAi).observe(content / 1_000);
  }

  #call(credential: string, state: string, fault: string): Count {
    const last = this.#calls;
    if (last?.credential === credential && last.state === state && last.fault === fault)
      return last.of;
    const of = this.#to.counted.calls.of(this.#provider, this.#model, credential, state, fault);
    this.#calls = { credential, state, fault, of };
    return of;
  }

  /** Other ones, where they have been wanted anew since. */
  #theirs(to: GenAiSeries): TheirTarget {
    if (this.#inTheirWords?.to === to) return this.#inTheirWords;
    return (this.#inTheirWords = new TheirTarget(to, this.#genAi));
  }

  #used(usage: Usage): void {
    for (const unit in usage) {
      const count = usage[unit as Unit];
      if (count === undefined) continue;
      if (unit === "reasoning") this.#unit("", this.#to.counted.reasoning).add(count);
      else this.#unit(unit, this.#to.counted.tokens).add(count);
    }
  }

  #unit(unit: string, family: CountedSeries["tokens"]): Count {
    let count = this.#units.get(unit);
    if (!count) {
      const values = unit === "" ? [] : [unit];
      this.#units.set(unit, (count = family.of(this.#provider, this.#model, ...values)));
    }
    return count;
  }

  #streamed(first: number, total: number, usage: Usage): void {
    this.#to.counted.firstContent.of(this.#provider, this.#model).observe(first);
    const written = outputTokens(usage);
    if (written > 1 && total > first)
      this.#to.counted.tokenSeconds
        .of(this.#provider, this.#model)
        .observe((total - first) / (written - 1));
  }
}

/** The same in the words of the GenAI conventions. */
class TheirTarget {
  readonly to: GenAiSeries;
  readonly #of: readonly [operation: string, provider: string, model: string];
  readonly #well: Histogram;
  #input: Histogram | undefined;
  #output: Histogram | undefined;

  constructor(to: GenAiSeries, of: readonly [string, string, string]) {
    this.to = to;
    this.#of = of;
    this.#well = to.duration.of(...of, "");
  }

  took(seconds: number, fault: string): void {
    const of = fault === "" ? this.#well : this.to.duration.of(...this.#of, fault);
    of.observe(seconds);
  }

  used(usage: Usage): void {
    const { to } = this;
    const of = this.#of;
    const input = inputTokens(usage);
    const output = outputTokens(usage);
    if (input > 0) (this.#input ??= to.tokens.of(...of, "input")).observe(input);
    if (output > 0) (this.#output ??= to.tokens.of(...of, "output")).observe(output);
    if (usage.cache_read) to.cacheRead.of(...of).add(usage.cache_read);
    let written = 0;
    for (const unit of WRITES) written += usage[unit] ?? 0;
    if (written > 0) to.cacheWrite.of(...of).add(written);
    if (usage.reasoning) to.reasoning.of(...of).add(usage.reasoning);
  }
}
