// Keeps recently acknowledged commands in memory as a second copy. If the database was restored to
// an earlier state, for example by failover to a lagging replica, the commands are sent again.
// Commands that are already in the database have no effect.
import { getFault, type StoreCommand, type CommandResult } from "tollgate/plugin";

/** Maximum age of commands, in milliseconds. It must exceed the replication lag. */
const MAX_AGE_MS = 60_000;
/** Maximum number of commands, whatever their age. */
const MAX_COMMANDS = 200_000;
/**
 * Commands that are not sent again: state that is soon outdated, and changes of members, which would
 * be applied twice.
 */
const NOT_REPEATED: readonly StoreCommand["do"][] = ["heartbeat", "progress", "member"];

/**
 * Batch number of commands written under an earlier node row. These commands are sorted after all
 * others.
 */
const PREVIOUS_NODE = Infinity;

interface ReplayEntry {
  readonly at: number;
  /** The node's batch number after the batch, under its current row. */
  readonly n: number;
  readonly batch: readonly StoreCommand[];
}

export class ReplayBuffer {
  #entries: ReplayEntry[] = [];
  #firstIndex = 0;
  #commandCount = 0;
  #droppedUpTo = 0;

  /** Adds an acknowledged batch. Denied commands, and those that are not sent again, are omitted. */
  add(
    batch: readonly StoreCommand[],
    verdicts: readonly CommandResult[],
    n: number,
  ): readonly StoreCommand[] {
    const facts = batch.filter((c, i) => !NOT_REPEATED.includes(c.do) && verdicts[i]?.ok !== false);
    if (facts.length === 0) return facts;
    const at = performance.now();
    this.#entries.push({ at, n, batch: facts });
    this.#commandCount += facts.length;
    for (
      let oldest = this.#entries[this.#firstIndex]!;
      oldest.at < at - MAX_AGE_MS || this.#commandCount > MAX_COMMANDS;
    ) {
      this.#commandCount -= oldest.batch.length;
      if (oldest.n !== PREVIOUS_NODE) this.#droppedUpTo = oldest.n;
      oldest = this.#entries[++this.#firstIndex]!;
      if (oldest === undefined) break;
    }
    // Compact rarely, because it copies all remaining entries.
    if (this.#firstIndex > 1_000) {
      this.#entries = this.#entries.slice(this.#firstIndex);
      this.#firstIndex = 0;
    }
    return facts;
  }

  /**
   * Removes the batches after number `n`, and the batches of earlier node rows, so that they can be
   * sent again. `whole`: whether no batch after `n` had been dropped before.
   */
  takeAfter(n: number): {
    readonly batches: readonly (readonly StoreCommand[])[];
    readonly whole: boolean;
  } {
    const whole = n >= this.#droppedUpTo;
    const kept = this.#entries.slice(this.#firstIndex);
    this.#entries = kept.filter((entry) => entry.n <= n);
    this.#firstIndex = 0;
    this.#commandCount = this.#entries.reduce((sum, { batch }) => sum + batch.length, 0);
    return { batches: kept.flatMap((entry) => (entry.n > n ? [entry.batch] : [])), whole };
  }

  /**
   * Called when the node gets a new row. If the database is restored later, earlier batches may
   * also be lost.
   */
  onNewNode(): void {
    this.#entries = this.#entries
      .slice(this.#firstIndex)
      .map((entry) => ({ ...entry, n: PREVIOUS_NODE }));
    this.#firstIndex = this.#droppedUpTo = 0;
  }
}

type ApplySlowPath = (batch: readonly StoreCommand[]) => Promise<readonly CommandResult[]>;

/** Sends lost batches to the database, one after the other, until the database has all batches. */
export async function replayBatches(
  owed: (readonly StoreCommand[])[],
  exactly: ApplySlowPath,
): Promise<void> {
  for (let batch = owed[0]; batch; batch = owed[0]) {
    await replayBatch(batch, exactly);
    owed.shift();
  }
}

/**
 * Sends one batch. A call that would be denied now was accepted before, so it is applied anyway. If
 * a command is invalid, it already exists in the database in another form. The replay continues in
 * both cases.
 */
export async function replayBatch(
  batch: readonly StoreCommand[],
  exactly: ApplySlowPath,
): Promise<void> {
  try {
    await replayAsFacts(batch, exactly);
  } catch (error) {
    if (getFault(error)?.kind !== "invalid") throw error;
    for (const command of batch)
      await replayAsFacts([command], exactly).catch((wrong: unknown) => {
        if (getFault(wrong)?.kind !== "invalid") throw wrong;
      });
  }
}

async function replayAsFacts(
  batch: readonly StoreCommand[],
  exactly: ApplySlowPath,
): Promise<void> {
  const verdicts = await exactly(batch);
  const denied = batch.filter((_, i) => verdicts[i]?.ok === false);
  if (denied.length > 0) await exactly(denied.map(toFact));
}

/** A value above any limit, in the unit of the limit. */
const UNLIMITED = 10n ** 24n;

/**
 * Raises the limits of a reserve, because the call was accepted. Other calls may have used up the
 * budget, or taken the places of a group, since then.
 */
const toFact = (command: StoreCommand): StoreCommand =>
  command.do === "reserve"
    ? {
        ...command,
        claims: command.claims.map((claim) => ({
          ...claim,
          max: BigInt(claim.max) + UNLIMITED,
          maxMembers: undefined,
        })),
      }
    : command;
