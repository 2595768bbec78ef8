// While the database is away: what has ended is written to the node's own disk, and told to the database later. A call that is new goes on, where the
// operator allows it, if this node has set something aside of each budget that it draws on, and at least of one. Nothing is overrun, because what is
// spent here was taken out before. Rates and calls at once are this node's part of them.
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

/** Commands that wait for the database at most: beyond it nothing new is begun. */
const MAX_SPOOLED = 200_000;

/** One command of the batch cannot be taken now, whatever the others are. */
const notNowFault = (): Error =>
  createFault("unavailable", "The database is away, and nothing was set aside for this.", {
    code: "not_available_offline",
    retryAfterMs: 1_000,
  });

export class OfflineMode {
  readonly #settings: OfflineSettings | undefined;
  readonly #budgetLeases: BudgetLeases | undefined;
  readonly #spool: () => Spool | undefined;
  #rules = createLedgerRules(EMPTY_JOURNAL, () => "");
  #startedAt: number | undefined;
  #spooled: Batch[] = [];
  #spooledCommands = 0;
  /** The last batch that is being decided: those before it are over when it is. */
  #deciding: Promise<void> | undefined;
  /** One batch at a time, for one that is refused takes back what the book has of it alone; and the disk is not cleared over what it is to keep. */
  readonly #serialQueue = createSerialQueue();
  /** Calls of a batch whose answer was lost, and that were refused then: the database may have them. */
  readonly #uncertainAttempts = new Set<string>();

  /** `of`: undefined: nothing that is new goes on. */
  constructor(
    of: OfflineSettings | undefined,
    slices: BudgetLeases | undefined,
    tape: () => Spool | undefined,
  ) {
    this.#settings = of;
    this.#budgetLeases = slices;
    this.#spool = tape;
  }

  /** The database is away: all is decided here. */
  get isActive(): boolean {
    return this.#startedAt !== undefined;
  }

  /** New calls are decided here, too. */
  get acceptsNewCalls(): boolean {
    return this.#settings !== undefined;
  }

  /** What only the database can answer. */
  failUnavailable(): never {
    const what = this.acceptsNewCalls
      ? "this gateway goes on alone"
      : "it is looked for again and again";
    return failUnreachable(new Error(what));
  }

  /** `sent`: the batch of which it is not known whether it has happened. */
  begin(sent: Batch): void {
    this.#startedAt = performance.now();
    this.#rules = createLedgerRules(EMPTY_JOURNAL, () => "");
    for (const c of sent) if (c.do === "reserve") this.#uncertainAttempts.add(c.attempt);
  }

  /** As the store's `apply`; resolves when it is on the disk. */
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

  /** A batch is being decided: what comes of it is to be told, too. */
  get deciding(): Promise<void> | undefined {
    return this.#deciding;
  }

  /** What is to be told next. */
  get nextBatch(): Batch | undefined {
    const [first] = this.#spooled;
    if (first || this.#uncertainAttempts.size === 0) return first;
    const at = Date.now();
    return [...this.#uncertainAttempts].map((attempt) => abandonedSettle(attempt, at));
  }

  /** The database has this batch, which `first` returned. Another one may have been decided meanwhile, and has not been sent. */
  markReplayed(batch: Batch): void {
    if (this.#spooled[0] === batch) this.#spooled.shift();
    else this.#uncertainAttempts.clear();
  }

  /** Nothing is left to tell. Says how many commands were told. */
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
        // A host that asks whether there is room for what is new.
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
    // Of the budget there may be more: this node has no more of it.
    if (isCalendarPeriod(verdict.denied.per)) throw notNowFault();
    return verdict;
  }

  get #canOpenCalls(): boolean {
    if (!this.#settings || performance.now() - this.#startedAt! > this.#settings.maxMs)
      return false;
    return this.#spooledCommands <= MAX_SPOOLED;
  }

  /** Its claims on what this node has of each limit. Undefined: of one of them nothing. */
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
        // A call that takes nothing is never refused by a limit, and has to be where there is nothing more.
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

/** Nothing was sent for it. */
const abandonedSettle = (attempt: string, at: number): StoreCommand => ({
  do: "settle",
  at,
  attempt,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});
