// Adds up what has been written since the last time: commit by commit, off the writer's way, a little at a time. Rows whose time is past
// go where they belong, so nothing has to be late.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import {
  createSubtotals,
  DEPTHS,
  factsOf,
  type Depth,
  readSubtotals,
  type RowFacts,
  type Subtotals,
} from "tollgate/store";
import { chapterOf } from "./mention.ts";
import { type Counted, counted, type Stored } from "./stored.ts";
import { PRUNED, prunedIn } from "./standing.ts";
import { HOUR, LONGER, QUARTER, quarterOf, SPANS, type SumsFile, type UpTo } from "./sums-file.ts";
import type { Common } from "./terms.ts";

/** New entries that are worth a change of the file; fewer are read each time they are asked for. */
const LEAST = 4_096;
/** Entries that are added up before they are written, and groups of them. */
const AT_ONCE = 65_536;
const GROUPS = 20_000;
/** Commits that are read in one go. */
const PAGE = 32;
/** How long it goes on before it gives way, in milliseconds. */
const STRIDE_MS = 4;
/** Groups of one sum at most. One of so many is hardly less than its entries. */
const MOST_GROUPS = 4_096;
/** Of a stretch that is over: as many entries a group at least, or reading those is as fast. */
const WORTH = 1.5;
/** Terms whose facts are remembered. */
const FACTS = 4_096;

interface Linked extends Stored {
  readonly id: number;
  readonly last: number;
  readonly hash: string;
}

export class Summing {
  readonly #sums: SumsFile;
  readonly #next: StatementSync;
  readonly #newest: StatementSync;
  readonly #pruned: StatementSync;
  readonly #facts = new Map<string, RowFacts>();
  #under: Promise<void> | undefined;
  #hurry = false;
  #held = 0;
  #over = false;

  constructor(ledger: DatabaseSync, sums: SumsFile) {
    this.#sums = sums;
    this.#next = ledger.prepare(
      "SELECT s.id, s.last, s.hash, b.first, b.instance, b.terms, b.rows " +
        `FROM segment s JOIN batch b ON b.first = s.first WHERE s.id > ? AND s.first > ? ORDER BY s.id LIMIT ${PAGE}`,
    );
    this.#newest = ledger.prepare("SELECT last FROM segment ORDER BY id DESC LIMIT 1");
    this.#pruned = ledger.prepare(PRUNED);
  }

  /** Entries that are not in the sums yet. */
  behind(): number {
    const since = Math.max(this.#sums.upTo.seq, prunedIn(this.#pruned));
    return Number(this.#newest.get()?.["last"] ?? 0) - since;
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
    while (!this.#over && this.behind() >= least) {
      const { upTo } = this.#sums;
      const pruned = upTo.seq > 0 ? upTo.pruned : prunedIn(this.#pruned);
      const pending = new Pending(this.#facts, { ...upTo, pruned });
      let { segment } = pending.after;
      for (let began = performance.now(); pending.fits && !this.#over;) {
        const page = this.#next.all(segment, pruned) as unknown as Linked[];
        for (const one of page) pending.add(one);
        segment = page.at(-1)?.id ?? segment;
        if (page.length < PAGE) break;
        const took = performance.now() - began;
        if (took < STRIDE_MS) continue;
        // With nothing waiting it takes half of a processor at most.
        await (this.#hurry ? setImmediate() : sleep(took));
        began = performance.now();
      }
      while (this.#held > 0) await sleep(1);
      if (this.#over || !pending.upTo) return;
      pending.write(this.#sums);
      await setImmediate();
    }
  }
}

/** Of a quarter of an hour what is kept of it, and what its hour has. */
interface Parts {
  readonly quarter: number;
  readonly few: Subtotals;
  readonly all: Subtotals;
}

/** What is added up and not yet written. */
class Pending {
  upTo: UpTo | undefined;
  readonly after: UpTo;
  readonly #facts: Map<string, RowFacts>;
  readonly #quarters = new Map<number, Parts>();
  readonly #hours = new Map<number, Subtotals>();
  readonly #places = new Set<string>();
  #rows = 0;
  #groups = 0;

  constructor(facts: Map<string, RowFacts>, after: UpTo) {
    this.#facts = facts;
    this.after = after;
  }

  get fits(): boolean {
    return this.#rows < AT_ONCE && this.#groups < GROUPS;
  }

  add(stored: Linked): void {
    const chapter = chapterOf(stored.first);
    let at = this.upTo?.at ?? this.after.at;
    let last: Parts | undefined;
    counted(stored, (row, said, terms) => {
      ({ at } = row);
      const quarter = quarterOf(at);
      if (last?.quarter !== quarter) {
        last = this.#during(quarter);
        this.#places.add(`${quarter} ${chapter}`);
      }
      const facts = this.#factsOf(row, said, terms);
      last.few.addTo(facts, row);
      const before = last.all.size;
      last.all.addTo(facts, row);
      this.#groups += last.all.size - before;
    });
    const { id, first, last: end, hash } = stored;
    this.#rows += end - first + 1;
    this.upTo = { seq: end, segment: id, hash, at, pruned: this.after.pruned };
  }

  write(file: SumsFile): void {
    const { after } = this;
    const upTo = this.upTo!;
    const touched = new Map<string, Subtotals>();
    for (const [depth, span, start, sums] of this.#all())
      touched.set(`${depth} ${span} ${start}`, sums);
    // What was still growing the last time may be over now.
    if (after.seq > 0)
      for (const depth of DEPTHS)
        for (const span of SPANS) {
          const id = `${depth} ${span} ${Math.floor(after.at / span) * span}`;
          if (!touched.has(id)) touched.set(id, createSubtotals(depth));
        }
    const places = [...this.#places].map((place) => place.split(" ").map(Number));
    file.write(after, written(file, touched, upTo.at), places as [number, number][], upTo);
  }

  /** Of a quarter without keys and labels; of longer stretches at every depth, from what tells all to what tells less. */
  *#all(): Generator<readonly [Depth, span: number, start: number, Subtotals]> {
    for (const [start, { few }] of this.#quarters) yield [few.depth, QUARTER, start, few];
    let deepest: ReadonlyMap<number, Subtotals> = this.#hours;
    for (const span of LONGER.toReversed()) {
      if (span !== HOUR) deepest = joined(deepest, span);
      for (const [start, sums] of deepest) {
        let deeper = sums;
        yield [sums.depth, span, start, sums];
        for (const depth of DEPTHS.toReversed().slice(1)) {
          const own = createSubtotals(depth);
          own.take(deeper);
          yield [depth, span, start, own];
          deeper = own;
        }
      }
    }
  }

  #during(quarter: number): Parts {
    let parts = this.#quarters.get(quarter);
    if (parts) return parts;
    const hour = Math.floor(quarter / HOUR) * HOUR;
    let all = this.#hours.get(hour);
    if (!all) this.#hours.set(hour, (all = createSubtotals("labels")));
    this.#quarters.set(quarter, (parts = { quarter, few: createSubtotals(DEPTHS[0]), all }));
    return parts;
  }

  /** Made once for many rows: of the same terms, with the same end. */
  #factsOf(row: Counted, said: string, terms: () => Common): RowFacts {
    const id = `${row.kind} ${row.state} ${row.outcome}\n${said}`;
    let facts = this.#facts.get(id);
    if (!facts) {
      if (this.#facts.size >= FACTS) this.#facts.clear();
      this.#facts.set(id, (facts = factsOf({ ...terms(), ...row })));
    }
    return facts;
  }
}

/** Of stretches of that length. */
function joined(sums: ReadonlyMap<number, Subtotals>, span: number): Map<number, Subtotals> {
  const longer = new Map<number, Subtotals>();
  for (const [at, some] of sums) {
    const start = Math.floor(at / span) * span;
    let into = longer.get(start);
    if (!into) longer.set(start, (into = createSubtotals(some.depth)));
    into.take(some);
  }
  return longer;
}

function* written(file: SumsFile, touched: ReadonlyMap<string, Subtotals>, now: number) {
  for (const [id, more] of touched) {
    const [depth, span, start] = parts(id);
    const there = file.one(depth, span, start);
    if (there ? there.sums === undefined : more.rows === 0) continue;
    if (there) more.take(readSubtotals(there.sums!));
    const over = start + span <= now;
    const many = more.size > (over ? Math.min(MOST_GROUPS, more.rows / WORTH) : MOST_GROUPS);
    yield [depth, span, start, many ? undefined : more.text()] as const;
  }
}

function parts(id: string): [Depth, number, number] {
  const [depth, span, start] = id.split(" ");
  return [depth as Depth, Number(span), Number(start)];
}
