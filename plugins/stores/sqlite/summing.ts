// Adds up what has been written since the last time: commit by commit, off the writer's way, a little at a time. Rows whose time is past
// go where they belong, so nothing has to be late.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { KnownFacts } from "./known-facts.ts";
import { type Linked, LINKED_PAGE, linkedAfter } from "./linked.ts";
import { Pending } from "./pending.ts";
import { PRUNED, prunedIn } from "./standing.ts";
import { STORED, type Stored } from "./stored.ts";
import type { SumsFile } from "./sums-file.ts";
import { Trimming } from "./trimming.ts";

/** New entries that are worth a change of the file; fewer are read each time they are asked for. */
const LEAST = 4_096;
/** How long it goes on before it gives way, in milliseconds. */
const STRIDE_MS = 4;

export class Summing {
  readonly #sums: SumsFile;
  readonly #next: StatementSync;
  readonly #newest: StatementSync;
  readonly #stretch: StatementSync;
  readonly #pruned: StatementSync;
  readonly #facts = new KnownFacts();
  #under: Promise<void> | undefined;
  #hurry = false;
  #held = 0;
  #over = false;

  constructor(ledger: DatabaseSync, sums: SumsFile) {
    this.#sums = sums;
    this.#next = linkedAfter(ledger);
    this.#newest = ledger.prepare("SELECT last FROM segment ORDER BY id DESC LIMIT 1");
    this.#stretch = ledger.prepare(
      `SELECT ${STORED} FROM batch WHERE first >= ? AND first < ? ORDER BY first LIMIT ${LINKED_PAGE}`,
    );
    this.#pruned = ledger.prepare(PRUNED);
  }

  /** Entries that are not in the sums yet. */
  behind(): number {
    const since = Math.max(this.#sums.upTo.seq, prunedIn(this.#pruned));
    return Number(this.#newest.get()?.["last"] ?? 0) - since;
  }

  /** Rows that are in the sums were pruned since: of no use before it is run. */
  get cut(): boolean {
    const { upTo } = this.#sums;
    return upTo.seq > 0 && upTo.pruned !== prunedIn(this.#pruned);
  }

  /** Once for all that ask. `hurry`: a report waits for it. `least`: fewer entries are not worth it. */
  run(hurry: boolean, least = LEAST): Promise<void> {
    this.#hurry ||= hurry;
    return (this.#under ??= this.#run(least).finally(() => {
      this.#under = undefined;
      this.#hurry = false;
    }));
  }

  /** Nothing is written while they are read; give it back. */
  hold(): Disposable {
    this.#held++;
    return { [Symbol.dispose]: () => void this.#held-- };
  }

  end(): void {
    this.#over = true;
  }

  async #run(least: number): Promise<void> {
    for (;;) {
      while (!this.#over && this.cut) await this.#trim();
      if (this.#over || this.behind() < least) return;
      const { upTo } = this.#sums;
      const pruned = upTo.seq > 0 ? upTo.pruned : prunedIn(this.#pruned);
      const pending = new Pending(this.#facts, { ...upTo, pruned });
      let { segment } = pending.after;
      for (let began = performance.now(); pending.fits && !this.#over;) {
        const page = this.#next.all(segment, pruned) as unknown as Linked[];
        for (const one of page) pending.add(one);
        segment = page.at(-1)?.id ?? segment;
        if (page.length < LINKED_PAGE) break;
        began = await this.#breath(began);
      }
      await this.#free();
      if (this.#over || !pending.upTo) return;
      pending.write(this.#sums);
      await setImmediate();
    }
  }

  /** What the rows that are gone were in is made anew of what is left there. */
  async #trim(): Promise<void> {
    const pruned = prunedIn(this.#pruned);
    const trimming = new Trimming(this.#sums, this.#facts, pruned);
    let began = performance.now();
    for (const [begin, end] of trimming.stretches)
      for (let first = begin; first < end && trimming.fits && !this.#over;) {
        const page = this.#stretch.all(first, end) as unknown as Stored[];
        for (const one of page) trimming.add(one);
        first = page.length < LINKED_PAGE ? end : page.at(-1)!.first + 1;
        began = await this.#breath(began);
      }
    await this.#free();
    if (!this.#over) trimming.write();
  }

  /** Others go first now and then. With nothing waiting it takes half of a processor at most. */
  async #breath(began: number): Promise<number> {
    const took = performance.now() - began;
    if (took < STRIDE_MS) return began;
    await (this.#hurry ? setImmediate() : sleep(took));
    return performance.now();
  }

  /** Until nothing reads the sums. */
  async #free(): Promise<void> {
    while (this.#held > 0) await sleep(1);
  }
}
