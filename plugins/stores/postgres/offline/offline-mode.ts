// Offline mode, which is active while the database is unreachable. Settles are written to the
// node's own disk and sent to the database later, for every value of `on_outage`. New calls are
// rejected unless the operator allows them. If they are allowed, the `leases` module decides.
import { createFault, type StoreCommand, type CommandResult } from "tollgate/plugin";
import type { Spool } from "./spool.ts";
import { failUnreachable } from "../connection/errors.ts";
import { createSerialQueue } from "../connection/retry.ts";

type Batch = readonly StoreCommand[];
type CommandOf<D extends StoreCommand["do"]> = StoreCommand & { do: D };

/**
 * Settings of offline mode: its maximum duration, and the share of a budget's remainder that is
 * leased for it.
 */
export interface OfflineSettings {
  readonly maxMs: number;
  /** A fraction, such as 0.02 for 2%. */
  readonly share: number;
}

/** Decides about new calls in offline mode. */
export interface OfflineCalls {
  /** Called when offline mode begins. */
  begin(): void;
  /** Decides about a new call. Throws if it cannot be decided now. */
  reserve(command: CommandOf<"reserve">, at: number): CommandResult;
  /** Whether the call was accepted offline and is not settled. */
  isOpen(attempt: string): boolean;
  settle(command: CommandOf<"settle">, at: number): void;
  /** Called when the decisions of a batch are on disk. */
  commit(): void;
  /** Called when the batch failed. */
  rollback(): void;
  /** Called when the database has received everything. */
  end(): void;
}

/** Maximum number of commands in the spool. If the spool is full, no new calls are started. */
const MAX_SPOOLED = 200_000;

/**
 * Creates the fault for a command that cannot be decided during the outage. The fault applies to
 * the whole batch.
 */
export const createNotNowFault = (): Error =>
  createFault(
    "unavailable",
    "The database is unreachable, and this gateway has no budget lease for the request.",
    {
      code: "not_available_offline",
      retryAfterMs: 1_000,
    },
  );

export class OfflineMode {
  readonly #newCalls: OfflineCalls | undefined;
  readonly #spool: () => Spool | undefined;
  #isActive = false;
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

  /** @param newCalls Decides about new calls. If unset, none is accepted. */
  constructor(newCalls: OfflineCalls | undefined, spool: () => Spool | undefined) {
    this.#newCalls = newCalls;
    this.#spool = spool;
  }

  /** Whether the database is unreachable and all commands are decided locally. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /** Whether new calls are accepted in offline mode. */
  get acceptsNewCalls(): boolean {
    return this.#newCalls !== undefined;
  }

  /** Throws the error for a request that only the database can answer. */
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
    this.#isActive = true;
    this.#newCalls?.begin();
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
      this.#newCalls?.commit();
      for (const c of toSpool) this.#uncertainAttempts.delete("attempt" in c ? c.attempt : "");
      if (toSpool.length > 0) this.#spooled.push(toSpool);
      this.#spooledCommands += toSpool.length;
      return verdicts;
    } catch (error) {
      this.#newCalls?.rollback();
      throw error;
    }
  }

  /**
   * The decision of a batch that is in progress. The commands of that batch must be replayed too.
   */
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

  /** Removes a batch that `nextBatch` returned. Batches that were decided since are kept. */
  markReplayed(batch: Batch): void {
    if (this.#spooled[0] === batch) this.#spooled.shift();
    else this.#uncertainAttempts.clear();
  }

  /** Leaves offline mode after everything was replayed. Returns the number of replayed commands. */
  async end(): Promise<number> {
    this.#isActive = false;
    this.#newCalls?.end();
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
        if (this.#newCalls?.isOpen(c.attempt)) this.#newCalls.settle(c, now(c.at));
        facts.push(c);
        return ALLOWED;
      case "price":
        facts.push(c);
        return ALLOWED;
      case "progress":
        return ALLOWED;
      case "heartbeat":
        // A heartbeat also tests whether new calls are accepted.
        return this.acceptsNewCalls ? ALLOWED : this.failUnavailable();
      default:
        throw createNotNowFault();
    }
  }

  #decideReserve(c: CommandOf<"reserve">, at: number, facts: StoreCommand[]): CommandResult {
    // Only the database knows what a job still reserves.
    if (!this.#newCalls || c.job) throw createNotNowFault();
    if (this.#newCalls.isOpen(c.attempt)) return ALLOWED;
    if (this.#spooledCommands > MAX_SPOOLED) throw createNotNowFault();
    const verdict = this.#newCalls.reserve(c, at);
    if (verdict.ok) facts.push(c);
    return verdict;
  }
}

const ALLOWED: CommandResult = { ok: true };

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
