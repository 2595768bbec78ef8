// What this node was told and has acknowledged, of the last while: a second copy. A database that was set back to before that, as by a replica
// that had not come as far, hears it again; what it knows already changes nothing.
import { faultOf, type StoreCommand, type Verdict } from "tollgate/plugin";

/** Longer than a replica may be behind. */
const KEPT_MS = 60_000;
/** Commands that are kept at most, whatever their age. */
const MOST = 200_000;

/** The number of what was told under another row: after all others. */
const BEFORE = Infinity;

interface Told {
  readonly at: number;
  /** The node's number after it, under the row that it has now. */
  readonly n: number;
  readonly batch: readonly StoreCommand[];
}

export class Ring {
  #told: Told[] = [];
  #first = 0;
  #many = 0;
  #forgotten = 0;

  /** It is acknowledged, with these verdicts: what was refused is no fact. Says what is one. */
  keep(
    batch: readonly StoreCommand[],
    verdicts: readonly Verdict[],
    n: number,
  ): readonly StoreCommand[] {
    const facts = batch.filter(
      (c, i) => c.do !== "alive" && c.do !== "progress" && verdicts[i]?.ok !== false,
    );
    if (facts.length === 0) return facts;
    const at = performance.now();
    this.#told.push({ at, n, batch: facts });
    this.#many += facts.length;
    for (let oldest = this.#told[this.#first]!; oldest.at < at - KEPT_MS || this.#many > MOST;) {
      this.#many -= oldest.batch.length;
      if (oldest.n !== BEFORE) this.#forgotten = oldest.n;
      oldest = this.#told[++this.#first]!;
      if (oldest === undefined) break;
    }
    // Not at every batch: it moves all that stay.
    if (this.#first > 1_000) {
      this.#told = this.#told.slice(this.#first);
      this.#first = 0;
    }
    return facts;
  }

  /** Taken out, to be told again: batches after this number and those under a row before, and whether these are all that there were. */
  after(n: number): {
    readonly batches: readonly (readonly StoreCommand[])[];
    readonly whole: boolean;
  } {
    const whole = n >= this.#forgotten;
    const kept = this.#told.slice(this.#first);
    this.#told = kept.filter((told) => told.n <= n);
    this.#first = 0;
    this.#many = this.#told.reduce((sum, { batch }) => sum + batch.length, 0);
    return { batches: kept.flatMap((told) => (told.n > n ? [told.batch] : [])), whole };
  }

  /** The node goes on under another row. A database that is set back after that may lose what came before it, too. */
  begin(): void {
    this.#told = this.#told.slice(this.#first).map((told) => ({ ...told, n: BEFORE }));
    this.#first = this.#forgotten = 0;
  }
}

type Exactly = (batch: readonly StoreCommand[]) => Promise<readonly Verdict[]>;

/** What the database has lost, and this node was told: one batch after the other, until all of it is there. */
export async function mend(owed: (readonly StoreCommand[])[], exactly: Exactly): Promise<void> {
  for (let batch = owed[0]; batch; batch = owed[0]) {
    await tellAgain(batch, exactly);
    owed.shift();
  }
}

/** What is denied now was let through once, and what cannot be is there already in another way; neither keeps the rest from being told. */
export async function tellAgain(batch: readonly StoreCommand[], exactly: Exactly): Promise<void> {
  try {
    await asFacts(batch, exactly);
  } catch (error) {
    if (faultOf(error)?.kind !== "invalid") throw error;
    for (const command of batch)
      await asFacts([command], exactly).catch((wrong: unknown) => {
        if (faultOf(wrong)?.kind !== "invalid") throw wrong;
      });
  }
}

async function asFacts(batch: readonly StoreCommand[], exactly: Exactly): Promise<void> {
  const verdicts = await exactly(batch);
  const denied = batch.filter((_, i) => verdicts[i]?.ok === false);
  if (denied.length > 0) await exactly(denied.map(asFact));
}

/** More than any limit. */
const ROOM = 10n ** 24n;

/** A call that was let through takes what it took, also where others have spent the room meanwhile. */
const asFact = (command: StoreCommand): StoreCommand =>
  command.do === "reserve"
    ? {
        ...command,
        claims: command.claims.map((claim) => ({ ...claim, max: BigInt(claim.max) + ROOM })),
      }
    : command;
