// The slices of this node: of which budgets it has set a part aside, when it takes one, and when it gives it back. Of hot budgets they are what its
// calls are counted in; all others are there for when the database is away, and nothing is spent from them before.
import type { ThresholdReached } from "tollgate/plugin";
import { BudgetActivity, type BudgetUse } from "./budget-activity.ts";
import type { MeterDelta } from "../rows/batch-plan.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import {
  hasAnyLease,
  reachedThresholdsIn,
  returnLeases,
  readOwnLeases,
  recallLeases,
  takeLeases,
  reportUse,
  readRecalled,
  type OfflineSettings,
  type LeaseRequest,
} from "./budget-lease-queries.ts";

/** Meters in one statement. */
const METERS_PER_STATEMENT = 500;
/** Meters of which it is remembered that a client was refused. */
const MAX_DENIED_METERS = 10_000;
/** A meter that had no room is asked for again. */
const LEASE_RETRY_MS = 10_000;
/** A meter at which many are refused is recalled so often. */
const RECALL_INTERVAL_MS = 1_000;
/** A budget that no call has drawn on for so long is forgotten, and its slice goes back. */
const LEASE_IDLE_MS = 10_000;
/** A fleet that is too small for hot budgets is counted so often. */
const FLEET_COUNT_INTERVAL_MS = 10_000;

interface OwnLease {
  amount: bigint;
  spent: bigint;
  /** The limit that it was taken of, and what the meter said then. Undefined: nothing is spent from it. */
  readonly hot?: { readonly max: bigint; readonly level: bigint; readonly reserved: bigint };
}

/** What a batch takes of meters, and of slices. */
export interface LeaseSplit {
  readonly metered: readonly MeterDelta[];
  readonly leased: readonly MeterDelta[];
}

interface BudgetLeaseOptions {
  readonly schema: string;
  readonly offline: OfflineSettings | undefined;
  /** A budget on which so many draw is hot; 0: none is. */
  readonly threshold: number;
  /** Hears what was crossed when meters were told what slices have spent. */
  onThresholdsReached(crossings: readonly ThresholdReached[]): void;
}

export class BudgetLeases {
  readonly #options: BudgetLeaseOptions;
  readonly #own = new Map<string, OwnLease>();
  readonly #activity = new BudgetActivity();
  readonly #deniedMeters = new Map<string, { at: number; others: boolean }>();
  /** They were spent from, and all of them go back first. */
  #wasSpentOffline = false;
  #connectionId = 0;
  #lastCountAt = -Infinity;
  #existenceCheckedAt = -Infinity;
  #doesAnyExist = false;
  /** Gateways that live, this one included. */
  liveGateways = 1;

  constructor(of: BudgetLeaseOptions) {
    this.#options = of;
  }

  /** What is set aside of a meter; undefined: nothing, or what there was may be spent. */
  leasedAmount(id: string): bigint | undefined {
    return this.#wasSpentOffline ? undefined : this.#own.get(id)?.amount;
  }

  /** Calls have claimed these. */
  recordUse(sums: readonly MeterDelta[]): void {
    this.#activity.record(sums);
  }

  /** From now on nothing of them is known to be unspent. */
  markSpentOffline(): void {
    this.#wasSpentOffline = true;
  }

  /** They are not as this node thought. */
  invalidate(): void {
    this.#own.clear();
    this.#connectionId = -1;
  }

  /** Which of a batch's sums are counted in slices: those that fit there. */
  split(sums: readonly MeterDelta[], made: number): LeaseSplit | undefined {
    if (this.#own.size === 0 || this.#wasSpentOffline || made !== this.#connectionId)
      return undefined;
    const metered: MeterDelta[] = [];
    const sliced: MeterDelta[] = [];
    for (const sum of sums) {
      const own = this.#own.get(sum.id);
      if (!own?.hot || (sum.max !== null && sum.max < own.hot.max)) metered.push(sum);
      else if (own.amount < sum.running || own.amount < (sum.required ?? 0n)) metered.push(sum);
      else sliced.push(sum);
    }
    return sliced.length > 0 ? { metered, leased: sliced } : undefined;
  }

  /** It is sent: what it takes is not there any more, until it is known whether that has happened. */
  reserve(sliced: readonly MeterDelta[]): (happened: boolean) => void {
    const owns = sliced.map((sum) => [sum, this.#own.get(sum.id)!] as const);
    const taken = ({ running }: MeterDelta) => (running > 0n ? running : 0n);
    for (const [sum, own] of owns) own.amount -= taken(sum);
    return (happened) => {
      for (const [sum, own] of owns) {
        own.amount += taken(sum) - (happened ? sum.running : 0n);
        if (happened) own.spent += sum.used;
      }
    };
  }

  /** A sliced meter as the book is to see it: what others have set aside is held, what this node has is room. */
  meterState(id: string): string {
    const { amount, spent, hot } = this.#own.get(id)!;
    const { level, reserved, max } = hot!;
    // A peak that nothing comes to: what is crossed is told when the meter hears what was spent.
    return [level + spent, reserved - spent - amount, 0, max, level + spent + max].join(" ");
  }

  get hasAny(): boolean {
    return this.#own.size > 0;
  }

  /** Those of them of which this node has set something aside, so that their meters say less than there is. */
  leasedIds(ids: readonly string[]): readonly string[] {
    return ids.filter((id) => this.#own.has(id));
  }

  /** `made`: how many connections there were. A new one may lead to a database that does not know of the last slices. */
  async maintain(sql: RunSql, node: string, made: number): Promise<void> {
    if (this.#wasSpentOffline) await this.returnAll(sql, node);
    const now = performance.now();
    const kept = this.#options.offline ? 2 * this.#options.offline.maxMs : LEASE_IDLE_MS;
    const gone = this.#activity.dropIdle(now - kept);
    const busy = this.#activity.takeHot();
    const standing = this.#options.offline
      ? [...this.#activity.all].filter(([id, of]) => of.nextRequestAt <= now && !this.#own.has(id))
      : [];
    const mayBeHot = this.#mayBeHot(busy, now);
    if (made !== this.#connectionId && this.#connectionId !== 0) await this.#reloadOwn(sql, node);
    this.#connectionId = made;
    if (this.#own.size + standing.length === 0 && !mayBeHot) return;
    if (this.#own.size + standing.length > 0) {
      const needed = await readRecalled(sql, this.#options.schema, node);
      this.liveGateways = needed.live;
      const back = new Set([...needed.back, ...gone]);
      for (const [id, { hot }] of this.#own) if (this.#isObsolete(id, hot?.max ?? 0n)) back.add(id);
      const mine = [...back].filter((id) => this.#own.has(id));
      if (mine.length > 0) await this.returnLeases(sql, node, mine);
    }
    if (standing.length > 0)
      await this.#takeOfflineLeases(sql, node, standing.slice(0, METERS_PER_STATEMENT), now);
    if (mayBeHot) await this.#leaseHotBudgets(sql, node, busy, now);
    await this.#reportSpent(sql, node);
  }

  /**
   * A client was refused at these meters. "own": what this node had set aside of them has gone back, so that it is worth another try.
   * "others": other nodes have slices of them, and will have given them back in a second or so.
   */
  async onDenied(
    sql: RunSql,
    node: string,
    ids: readonly string[],
  ): Promise<"own" | "others" | undefined> {
    if (!(await this.#checkAnyExists(sql))) return undefined;
    const now = performance.now();
    const fresh = ids.filter(
      (id) => (this.#deniedMeters.get(id)?.at ?? -Infinity) < now - RECALL_INTERVAL_MS,
    );
    if (this.#deniedMeters.size > MAX_DENIED_METERS) this.#deniedMeters.clear();
    if (fresh.length > 0) {
      const others = (await recallLeases(sql, this.#options.schema, fresh)) > 0;
      for (const id of fresh) this.#deniedMeters.set(id, { at: now, others });
    }
    const mine = ids.filter((id) => this.#own.has(id));
    if (mine.length > 0) {
      await this.returnLeases(sql, node, mine);
      return "own";
    }
    return ids.some((id) => this.#deniedMeters.get(id)?.others) ? "others" : undefined;
  }

  async returnAll(sql: RunSql, node: string): Promise<void> {
    this.#options.onThresholdsReached(
      reachedThresholdsIn(await returnLeases(sql, this.#options.schema, node)),
    );
    this.#own.clear();
    this.#wasSpentOffline = false;
  }

  async returnLeases(sql: RunSql, node: string, ids: readonly string[]): Promise<void> {
    this.#options.onThresholdsReached(
      reachedThresholdsIn(await returnLeases(sql, this.#options.schema, node, ids)),
    );
    for (const id of ids) {
      this.#own.delete(id);
      const touched = this.#activity.all.get(id);
      if (touched) touched.nextRequestAt = performance.now() + LEASE_RETRY_MS;
    }
  }

  /** No call has drawn on it of late, or its limit is a lower one now. */
  #isObsolete(id: string, max: bigint): boolean {
    const touched = this.#activity.all.get(id);
    if (touched && touched.max < max) return true;
    return !this.#options.offline && (!touched || touched.expectedCalls < 1);
  }

  #mayBeHot(busy: readonly unknown[], now: number): boolean {
    if (this.#options.threshold === 0 || busy.length === 0) return false;
    return (
      this.liveGateways >= this.#options.threshold ||
      this.#lastCountAt < now - FLEET_COUNT_INTERVAL_MS
    );
  }

  /** One question a second for all refusals: mostly there are no slices. */
  async #checkAnyExists(sql: RunSql): Promise<boolean> {
    if (this.#own.size > 0) return true;
    const now = performance.now();
    if (this.#existenceCheckedAt > now - RECALL_INTERVAL_MS) return this.#doesAnyExist;
    this.#doesAnyExist = await hasAnyLease(sql, this.#options.schema);
    this.#existenceCheckedAt = now;
    return this.#doesAnyExist;
  }

  async #reloadOwn(sql: RunSql, node: string): Promise<void> {
    const all = await readOwnLeases(sql, this.#options.schema, node);
    this.#own.clear();
    for (const [meter, amount] of all) this.#own.set(meter, { amount, spent: 0n });
  }

  async #takeOfflineLeases(
    sql: RunSql,
    node: string,
    of: readonly (readonly [string, BudgetUse])[],
    now: number,
  ) {
    for (const [, touched] of of) touched.nextRequestAt = now + LEASE_RETRY_MS;
    const wanted = of.map(([id, { max }]) => ({ id, max, expectedUse: null, take: 0n }));
    for (const row of await this.#take(sql, node, wanted))
      this.#own.set(row["id"]!, { amount: BigInt(row["amount"]!), spent: 0n });
  }

  /** Those of the busy ones that enough others draw on as well are spent from slices from now on. */
  async #leaseHotBudgets(
    sql: RunSql,
    node: string,
    busy: readonly (readonly [string, BudgetUse])[],
    now: number,
  ) {
    this.#lastCountAt = now;
    const ids = busy.map(([id]) => id);
    const { live, hot } = await reportUse(sql, this.#options.schema, {
      node,
      ids,
      from: this.#options.threshold,
    });
    this.liveGateways = live;
    const cold = busy.flatMap(([id]) => (!hot.has(id) && this.#own.get(id)?.hot ? [id] : []));
    if (cold.length > 0) await this.returnLeases(sql, node, cold);
    await this.#refill(
      sql,
      node,
      busy.filter(
        ([id, { nextRequestAt }]) =>
          hot.has(id) && (nextRequestAt <= now || this.#own.get(id)?.hot),
      ),
    );
  }

  /** What was spent is told where nothing more was asked for. */
  #reportSpent(sql: RunSql, node: string): Promise<void> {
    return this.#refill(
      sql,
      node,
      [...this.#own].flatMap(([id, { spent, hot }]) =>
        spent > 0n ? [[id, { max: hot!.max, expectedUse: 0n, expectedCalls: 0 }] as const] : [],
      ),
    );
  }

  async #refill(
    sql: RunSql,
    node: string,
    of: readonly (readonly [string, Pick<BudgetUse, "max" | "expectedUse" | "expectedCalls">])[],
  ): Promise<void> {
    if (of.length === 0) return;
    const wanted = of.map(([id, { max, expectedUse, expectedCalls }]) => ({
      id,
      max,
      expectedUse,
      take: expectedCalls < 1 ? expectedUse : expectedUse / BigInt(Math.ceil(expectedCalls)),
    }));
    const rows = await this.#take(sql, node, wanted);
    const maxes = new Map(of.map(([id, { max }]) => [id, max]));
    const said = new Map(rows.map((row) => [row["id"]!, row]));
    for (const { id } of wanted) {
      const row = said.get(id);
      if (!row) this.#own.delete(id);
      else
        this.#own.set(id, {
          amount: BigInt(row["amount"]!),
          spent: 0n,
          hot: {
            max: maxes.get(id)!,
            level: BigInt(row["level"]!),
            reserved: BigInt(row["reserved"]!),
          },
        });
    }
  }

  async #take(sql: RunSql, node: string, wanted: readonly LeaseRequest[]): Promise<readonly Row[]> {
    const rows = await takeLeases(sql, this.#options.schema, {
      node,
      apart: this.#options.offline,
      wanted,
    });
    this.#options.onThresholdsReached(reachedThresholdsIn(rows));
    return rows;
  }
}
