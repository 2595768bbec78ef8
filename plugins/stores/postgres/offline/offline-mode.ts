// Offline mode, for the time that the database is unreachable. Settles are written to the node's
// own disk and sent to the database later. If the operator allows it, new calls continue when this
// node holds a lease on each budget they use, and on at least one. Budgets are not exceeded,
// because leases were deducted before. Each node applies its share of rate and concurrency limits.
import { createFault, type StoreCommand, type CommandResult } from "tollgate/plugin";
import { mergeClaims, createLedgerRules, isCalendarPeriod } from "tollgate/store";
import { parseMeterId } from "../rows/batch-plan.ts";
import { EMPTY_JOURNAL } from "../write/result-replay.ts";
import type { OfflineSettings } from "./budget-lease-queries.ts";
import type { BudgetLeases } from "./budget-leases.ts";
import type { Spool } from "./spool.ts";
import { failUnreachable } from "../connection/errors.ts";
import { createSerialQueue } from "../connection/retry.ts";

type Batch = readonly StoreCommand[];
type Reserve = Extract<StoreCommand, { do: "reserve" }>;
type Claims = Reserve["claims"];

/** Maximum number of commands in the spool. Above it, no new calls are started. */
const MAX_SPOOLED = 200_000;

/** Creates the fault for a command that cannot be decided now. It applies to the whole batch. */
const notNowFault = (): Error =>
  createFault(
    "unavailable",
    "The database is unreachable, and this gateway has no budget lease for the request.",
    {
      code: "not_available_offline",
      retryAfterMs: 1_000,
    },
  );

export class OfflineMode {
  readonly #settings: OfflineSettings | undefined;
  readonly #budgetLeases: BudgetLeases | undefined;
  readonly #spool: () => Spool | undefined;
  #rules = createLedgerRules(EMPTY_JOURNAL, () => "");
  #startedAt: number | undefined;
  #spooled: Batch[] = [];
  #spooledCommands = 0;
  /** Resolves when the last batch in progress is decided. Earlier batches are decided by then. */
  #deciding: Promise<void> | undefined;
  /**
   * Decides one batch at a time. A failed batch then rolls back only its own changes, and the spool
   * is not cleared while a batch is written.
   */
  readonly #serialQueue = createSerialQueue();
  /**
   * Calls of batches with an unknown result that were denied later. The database may have them as
   * open.
   */
  readonly #uncertainAttempts = new Set<string>();

  /**
   * Creates offline mode.
   * @param of Settings. If unset, no new calls are accepted.
   */
  constructor(
    of: OfflineSettings | undefined,
    slices: BudgetLeases | undefined,
    tape: () => Spool | undefined,
  ) {
    this.#settings = of;
    this.#budgetLeases = slices;
    this.#spool = tape;
  }

  /** Whether the database is unreachable and all commands are decided here. */
  get isActive(): boolean {
    return this.#startedAt !== undefined;
  }

  /** Whether new calls are accepted in offline mode. */
  get acceptsNewCalls(): boolean {
    return this.#settings !== undefined;
  }

  /** Fails because only the database can answer. */
  failUnavailable(): never {
    const what = this.acceptsNewCalls
      ? "the gateway is in offline mode"
      : "the gateway is retrying the connection";
    return failUnreachable(new Error(what));
  }

  /**
   * Enters offline mode.
   * @param sent The batch whose result is unknown.
   */
  begin(sent: Batch): void {
    this.#startedAt = performance.now();
    this.#rules = createLedgerRules(EMPTY_JOURNAL, () => "");
    for (const c of sent) if (c.do === "reserve") this.#uncertainAttempts.add(c.attempt);
  }

  /** Decides a batch, like `apply` of the store. Resolves when it is on disk. */
  decide(batch: Batch, now: (at: number) => number): Promise<readonly CommandResult[]> {
    const deciding = this.#serialQueue(() => this.#decide(batch, now));
    const over = deciding.then(
      () => {},
      () => {},
    );
    this.#deciding = over;
    void over.then(() => this.#deciding === over && (this.#deciding = undefined));
    return deciding;
  }

  async #decide(batch: Batch, now: (at: number) => number): Promise<readonly CommandResult[]> {
    const toSpool: StoreCommand[] = [];
    try {
      const verdicts = batch.map((c) => this.#decideCommand(c, now, toSpool));
      if (toSpool.length > 0) await this.#spool()!.appendUnsent(toSpool);
      this.#rules.commit();
      for (const c of toSpool) this.#uncertainAttempts.delete("attempt" in c ? c.attempt : "");
      if (toSpool.length > 0) this.#spooled.push(toSpool);
      this.#spooledCommands += toSpool.length;
      return verdicts;
    } catch (error) {
      this.#rules.rollback();
      throw error;
    }
  }

  /** Pending decision of a batch. Its commands must be replayed too. */
  get deciding(): Promise<void> | undefined {
    return this.#deciding;
  }

  /** The next batch to replay. */
  get nextBatch(): Batch | undefined {
    const [first] = this.#spooled;
    if (first || this.#uncertainAttempts.size === 0) return first;
    const at = Date.now();
    return [...this.#uncertainAttempts].map((attempt) => abandonedSettle(attempt, at));
  }

  /**
   * Removes a batch that `nextBatch` returned. Another batch may have been decided since and is
   * kept.
   */
  markReplayed(batch: Batch): void {
    if (this.#spooled[0] === batch) this.#spooled.shift();
    else this.#uncertainAttempts.clear();
  }

  /** Leaves offline mode after everything was replayed. Returns the number of replayed commands. */
  async end(): Promise<number> {
    this.#startedAt = undefined;
    if (this.acceptsNewCalls) this.#budgetLeases?.markSpentOffline();
    const many = this.#spooledCommands;
    this.#spooledCommands = 0;
    await this.#serialQueue(() => this.#spool()!.clearUnsent());
    return many;
  }

  #decideCommand(
    c: StoreCommand,
    now: (at: number) => number,
    facts: StoreCommand[],
  ): CommandResult {
    switch (c.do) {
      case "reserve":
        return this.#decideReserve(c, now(c.at), facts);
      case "settle":
        if (this.#rules.openCalls.get(c.attempt)) this.#rules.apply({ ...c, at: now(c.at) });
        facts.push(c);
        return ALLOWED;
      case "price":
        facts.push(c);
        return ALLOWED;
      case "progress":
        return ALLOWED;
      case "heartbeat":
        // A heartbeat also asks whether new calls are accepted.
        return this.acceptsNewCalls ? ALLOWED : this.failUnavailable();
      default:
        throw notNowFault();
    }
  }

  #decideReserve(c: Reserve & { at: number }, at: number, facts: StoreCommand[]): CommandResult {
    if (this.#rules.openCalls.get(c.attempt)) return ALLOWED;
    const parts = this.#canOpenCalls ? this.#shareOfClaims(c.claims, at) : undefined;
    if (!parts) throw notNowFault();
    const verdict = this.#rules.apply({ do: "reserve", at, attempt: c.attempt, claims: parts });
    if (verdict.ok) {
      facts.push(c);
      return ALLOWED;
    }
    // The budget itself may have more room, but this node's lease is used up.
    if (isCalendarPeriod(verdict.denied.per)) throw notNowFault();
    return verdict;
  }

  get #canOpenCalls(): boolean {
    if (!this.#settings || performance.now() - this.#startedAt! > this.#settings.maxMs)
      return false;
    return this.#spooledCommands <= MAX_SPOOLED;
  }

  /**
   * Returns the claims, limited to this node's share of each limit. Returns undefined if the node
   * has no share of one of the limits.
   */
  #shareOfClaims(claims: Claims, at: number): Claims | undefined {
    const slices = this.#budgetLeases!;
    const live = BigInt(slices.liveGateways);
    let budgets = 0;
    const shares: Claims[number][] = [];
    for (const { scope, unit, per, take, limit, meter } of mergeClaims(claims, at, NO_METERS)) {
      let max = limit > 0n && limit < live ? 1n : limit / live;
      if (isCalendarPeriod(parseMeterId(meter.id).per)) {
        const part = slices.leasedAmount(meter.id);
        const here = this.#rules.meters.get(meter.id);
        // The rules never deny a call with amount 0, so deny it here when the lease is used up.
        if (part === undefined || (here && here.level + here.reserved >= part)) return undefined;
        max = part;
        budgets++;
      }
      shares.push({ scope, unit, per, take, max });
    }
    return budgets > 0 ? shares : undefined;
  }
}

const ALLOWED: CommandResult = { ok: true };
const NO_METERS: ReadonlyMap<string, never> = new Map<string, never>();

/** Creates the settle of a call for which no request was sent. */
const abandonedSettle = (attempt: string, at: number): StoreCommand => ({
  do: "settle",
  at,
  attempt,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});
