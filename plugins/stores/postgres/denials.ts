// What was refused a moment ago is refused again without asking: calls that flood a budget which is spent cost the database four questions a second.
import type { Reserve, StoreCommand, Verdict } from "tollgate/plugin";
import { claimed } from "tollgate/store";
import { kindOf, type Mine, type Plan, type Step } from "./calls.ts";

/** Room that others give back is seen as soon. */
const MOMENT_MS = 250;
/** So many refusals at one limit, each within a moment of the one before, are a flood. Fewer are asked about one by one. */
const FLOOD = 20;
/** Limits that are kept in mind. */
const MOST = 10_000;

interface Denial {
  /** The limit: one that was raised meanwhile may have room. */
  readonly most: bigint;
  /** The least that did not fit: less may. */
  readonly take: bigint;
  readonly verdict: Extract<Verdict, { ok: false }>;
  readonly at: number;
  readonly until: number;
  readonly many: number;
}

export class Denials {
  /** By meter. */
  readonly #last = new Map<string, Denial>();
  #made = 0;

  /** `at`: the moment that decided. */
  note({ command }: Step, verdict: Verdict, at: number, now = performance.now()): void {
    if (verdict.ok || command.do !== "reserve") return;
    const { denied, retryAfterMs } = verdict;
    for (const { scope, unit, per, most, take, meter } of claimed(command.claims, at, NONE)) {
      if (scope !== denied.scope || unit !== denied.unit || per !== denied.per) continue;
      const last = this.#last.get(meter.id);
      const goesOn = last?.most === most && now < last.until + MOMENT_MS;
      const many = goesOn ? last.many + 1 : 1;
      const until = now + Math.min(MOMENT_MS, retryAfterMs);
      if (this.#last.size >= MOST) this.#last.clear();
      this.#last.set(
        meter.id,
        goesOn && now < last.until && last.take <= take
          ? { ...last, many }
          : { most, take, verdict, at: now, until, many },
      );
    }
  }

  /** Those of a batch that need not be asked about. `made`: by another connection all is, for a call may have been let through unheard. */
  of(
    batch: readonly StoreCommand[],
    mine: ReadonlyMap<string, Mine>,
    { made, at, now = performance.now() }: { made: number; at: number; now?: number },
  ): Map<string, Verdict> {
    const refused = new Map<string, Verdict>();
    if (made !== this.#made) this.#last.clear();
    this.#made = made;
    if (this.#last.size === 0) return refused;
    for (const c of batch) {
      // What ends in this batch makes room in it.
      if (c.do === "settle") this.#givenBack(mine.get(c.attempt)?.row.taken ?? []);
      if (c.do !== "reserve" || mine.has(c.attempt)) continue;
      const verdict = this.#find(c, at, now);
      if (verdict) refused.set(c.attempt, verdict);
    }
    return refused;
  }

  /** Of several limits the one that is waited for longest, as everywhere. */
  #find({ claims }: Reserve, at: number, now: number): Verdict | undefined {
    let found: Denial["verdict"] | undefined;
    for (const { most, take, meter } of claimed(claims, at, NONE)) {
      const last = this.#last.get(meter.id);
      if (!last || last.many < FLOOD || now >= last.until) continue;
      if (last.most !== most || take < last.take) continue;
      // How long more has to wait for a rate is another matter.
      if (kindOf(meter.id).period > 0 && take > last.take) continue;
      const retryAfterMs = Math.max(1, last.verdict.retryAfterMs - Math.floor(now - last.at));
      if (!found || found.retryAfterMs < retryAfterMs) found = { ...last.verdict, retryAfterMs };
    }
    return found;
  }

  #givenBack(taken: readonly (readonly [id: string, amount: bigint])[]): void {
    for (const [id] of taken) this.#last.delete(id);
  }

  /** It has happened. */
  passed({ sums }: Plan): void {
    if (this.#last.size === 0) return;
    for (const { id, unhold } of sums) if (unhold > 0n) this.#last.delete(id);
  }

  /** What has changed is not known. */
  clear(): void {
    this.#last.clear();
  }
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();
