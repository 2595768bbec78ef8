// Manages this node's budget leases: takes and returns them. Calls on hot budgets are counted in
// their leases. Leases on other budgets are kept for offline mode and are not used before that.
import type { ThresholdReached } from "tollgate/plugin";
import { BudgetActivity, type BudgetUse } from "./budget-activity.ts";
import type { MeterDelta } from "../rows/batch-plan.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import {
  hasAnyLease,
  readOwnLeases,
  recallLeases,
  takeLeases,
  reportUse,
  readRecalled,
  type LeaseRequest,
} from "./lease-queries.ts";
import { reachedThresholdsIn, returnLeases } from "../membership/lease-returns.ts";
import type { OfflineSettings } from "../offline/offline-mode.ts";

/** Number of meters per statement. */
const METERS_PER_STATEMENT = 500;
/** Maximum number of meters whose denials are kept in memory. */
const MAX_DENIED_METERS = 10_000;
/** Delay before a lease is requested again on a meter that had no room, in milliseconds. */
const LEASE_RETRY_MS = 10_000;
/** Minimum interval between recalls of a meter with denials, in milliseconds. */
const RECALL_INTERVAL_MS = 1_000;
/** Idle time after which a budget's lease is returned, in milliseconds. */
const LEASE_IDLE_MS = 10_000;
/**
 * Interval in milliseconds at which live nodes are counted while there are too few for hot budgets.
 */
const FLEET_COUNT_INTERVAL_MS = 10_000;

interface OwnLease {
  amount: bigint;
  spent: bigint;
  /**
   * The limit, and the state of the meter when the lease was taken. If unset, the lease must not be
   * spent now.
   */
  readonly hot?: { readonly max: bigint; readonly level: bigint; readonly reserved: bigint };
}

/** The amounts of a batch, split into those for meters and those for leases. */
export interface LeaseSplit {
  readonly metered: readonly MeterDelta[];
  readonly leased: readonly MeterDelta[];
}

interface BudgetLeaseOptions {
  readonly schema: string;
  readonly offline: OfflineSettings | undefined;
  /** Number of gateways that make a budget hot. 0 disables hot budgets. */
  readonly threshold: number;
  /** Called with the thresholds that were reached when lease spending was added to meters. */
  onThresholdsReached(crossings: readonly ThresholdReached[]): void;
}

export class BudgetLeases {
  readonly #options: BudgetLeaseOptions;
  readonly #own = new Map<string, OwnLease>();
  readonly #activity = new BudgetActivity();
  readonly #deniedMeters = new Map<string, { at: number; others: boolean }>();
  /**
   * Whether amounts of leases were spent in offline mode. If so, all leases are returned before
   * anything else.
   */
  #wasSpentOffline = false;
  #connectionId = 0;
  #lastCountAt = -Infinity;
  #existenceCheckedAt = -Infinity;
  #doesAnyExist = false;
  /** Number of live gateways, including this one. */
  liveGateways = 1;

  constructor(of: BudgetLeaseOptions) {
    this.#options = of;
  }

  /**
   * Returns the leased amount of a meter. Returns undefined if there is no lease or it may have
   * been spent.
   */
  leasedAmount(id: string): bigint | undefined {
    return this.#wasSpentOffline ? undefined : this.#own.get(id)?.amount;
  }

  /** Records that calls have claimed these amounts. */
  recordUse(sums: readonly MeterDelta[]): void {
    this.#activity.record(sums);
  }

  /** Marks all leases as possibly spent. */
  markSpentOffline(): void {
    this.#wasSpentOffline = true;
  }

  /** Drops all leases, because they differ from this node's view, and reads them again. */
  invalidate(): void {
    this.#own.clear();
    this.#connectionId = -1;
  }

  /** Splits the amounts of a batch. An amount is taken from a lease if it fits. */
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

  /**
   * Reserves amounts of leases for a batch that is sent. The returned function is called with
   * whether the batch was applied.
   */
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

  /**
   * Returns a leased meter in the form that the ledger rules need. Leases of others count as
   * reserved, and this node's lease counts as available.
   */
  meterState(id: string): string {
    const { amount, spent, hot } = this.#own.get(id)!;
    const { level, reserved, max } = hot!;
    // A peak that no level reaches. Thresholds are reported when the spending is added to the
    // meter.
    return [level + spent, reserved - spent - amount, 0, max, level + spent + max].join(" ");
  }

  get hasAny(): boolean {
    return this.#own.size > 0;
  }

  /**
   * Returns the meters on which this node holds a lease. More of their budget remains than the
   * meter shows.
   */
  leasedIds(ids: readonly string[]): readonly string[] {
    return ids.filter((id) => this.#own.has(id));
  }

  /**
   * Takes, refills, and returns leases.
   * @param made Number of connections so far. A new one may lead to a database that lacks the last
   *   leases.
   */
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
   * Called when clients were denied at these meters. Returns "own" if this node has returned its
   * leases, so that a retry may succeed. Returns "others" if other nodes hold leases, which they
   * return within about 1 s.
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

  /**
   * Returns whether a lease is no longer needed: its limit was lowered or, without offline mode,
   * its budget is idle.
   */
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

  /**
   * Returns whether any gateway has a lease. There is usually none, so the database is queried at
   * most once per second.
   */
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

  /**
   * Takes leases on busy budgets that enough other gateways also use. Amounts are taken from these
   * leases from then on.
   */
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

  /** Reports lease spending that no refill has reported. */
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
    const rowsById = new Map(rows.map((row) => [row["id"]!, row]));
    for (const { id } of wanted) {
      const row = rowsById.get(id);
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
