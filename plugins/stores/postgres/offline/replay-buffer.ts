// What this node was told and has acknowledged, of the last while: a second copy. A database that was set back to before that, as by a replica
// that had not come as far, hears it again; what it knows already changes nothing.
import { getFault, type StoreCommand, type CommandResult } from "tollgate/plugin";

/** Longer than a replica may be behind. */
const MAX_AGE_MS = 60_000;
/** Commands that are kept at most, whatever their age. */
const MAX_COMMANDS = 200_000;

/** The number of what was told under another row: after all others. */
const PREVIOUS_NODE = Infinity;

interface ReplayEntry {
  readonly at: number;
  /** The node's number after it, under the row that it has now. */
  readonly n: number;
  readonly batch: readonly StoreCommand[];
}

export class ReplayBuffer {
  #entries: ReplayEntry[] = [];
  #firstIndex = 0;
  #commandCount = 0;
  #droppedUpTo = 0;

  /** It is acknowledged, with these verdicts: what was refused is no fact. Says what is one. */
  add(
    batch: readonly StoreCommand[],
    verdicts: readonly CommandResult[],
    n: number,
  ): readonly StoreCommand[] {
    const facts = batch.filter(
      (c, i) => c.do !== "heartbeat" && c.do !== "progress" && verdicts[i]?.ok !== false,
    );
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
    // Not at every batch: it moves all that stay.
    if (this.#firstIndex > 1_000) {
      this.#entries = this.#entries.slice(this.#firstIndex);
      this.#firstIndex = 0;
    }
    return facts;
  }

  /** Taken out, to be told again: batches after this number and those under a row before, and whether these are all that there were. */
  takeAfter(n: number): {
    readonly batches: readonly (readonly StoreCommand[])[];
    readonly whole: boolean;
  } {
    const whole = n >= this.#droppedUpTo;
    const kept = this.#entries.slice(this.#firstIndex);
    this.#entries = kept.filter((told) => told.n <= n);
    this.#firstIndex = 0;
    this.#commandCount = this.#entries.reduce((sum, { batch }) => sum + batch.length, 0);
    return { batches: kept.flatMap((told) => (told.n > n ? [told.batch] : [])), whole };
  }

  /** The node goes on under another row. A database that is set back after that may lose what came before it, too. */
  onNewNode(): void {
    this.#entries = this.#entries
      .slice(this.#firstIndex)
      .map((told) => ({ ...told, n: PREVIOUS_NODE }));
    this.#firstIndex = this.#droppedUpTo = 0;
  }
}

type ApplySlowPath = (batch: readonly StoreCommand[]) => Promise<readonly CommandResult[]>;

/** What the database has lost, and this node was told: one batch after the other, until all of it is there. */
export async function replayBatches(
  owed: (readonly StoreCommand[])[],
  exactly: ApplySlowPath,
): Promise<void> {
  for (let batch = owed[0]; batch; batch = owed[0]) {
    await replayBatch(batch, exactly);
    owed.shift();
  }
}

/** What is denied now was let through once, and what cannot be is there already in another way; neither keeps the rest from being told. */
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

/** More than any limit. */
const UNLIMITED = 10n ** 24n;

/** A call that was let through takes what it took, also where others have spent the room meanwhile. */
const toFact = (command: StoreCommand): StoreCommand =>
  command.do === "reserve"
    ? {
        ...command,
        claims: command.claims.map((claim) => ({ ...claim, max: BigInt(claim.max) + UNLIMITED })),
      }
    : command;
