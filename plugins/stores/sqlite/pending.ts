// What rows come to, by quarters of an hour, hours and days, added up in memory before it is written.
import { createSubtotals, DEPTHS, type Depth, readSubtotals, type Subtotals } from "tollgate/store";
import type { KnownFacts } from "./known-facts.ts";
import type { Linked } from "./linked.ts";
import { chapterOf } from "./mention.ts";
import { counted, type Stored } from "./stored.ts";
import {
  HOUR,
  hourOf,
  LONGER,
  QUARTER,
  quarterOf,
  SPANS,
  type SumsFile,
  type UpTo,
} from "./sums-file.ts";

/** Entries that are added up before they are written, and groups of them. */
const AT_ONCE = 65_536;
const GROUPS = 20_000;
/** Groups of one sum at most. One of so many is hardly less than its entries. */
const MOST_GROUPS = 4_096;
/** Of a stretch that is over: as many entries a group at least, or reading those is as fast. */
const WORTH = 1.5;
/** What tells less is made of what tells more, in this order; all of it of what tells all. */
const MADE_OF: readonly (readonly [Depth, of: Depth])[] = [
  ["tags", "labels"],
  ["holders", "tags"],
  ["keys", "labels"],
  ["calls", "keys"],
];

/** Of a quarter of an hour what is kept of it, and what its hour has. */
interface Parts {
  readonly quarter: number;
  readonly few: Subtotals;
  readonly all: Subtotals;
}

/** What is added up and not yet written. */
export class Pending {
  upTo: UpTo | undefined;
  readonly after: UpTo;
  readonly #facts: KnownFacts;
  readonly #only: ReadonlySet<number> | undefined;
  readonly #quarters = new Map<number, Parts>();
  readonly #hours = new Map<number, Subtotals>();
  readonly #places = new Set<string>();
  #rows = 0;
  #groups = 0;

  /** `only`: rows of these hours, in place of all. */
  constructor(facts: KnownFacts, after: UpTo, only?: ReadonlySet<number>) {
    this.#facts = facts;
    this.#only = only;
    this.after = after;
  }

  get fits(): boolean {
    return this.#rows < AT_ONCE && this.#groups < GROUPS;
  }

  get groups(): number {
    return this.#groups;
  }

  add(stored: Linked): void {
    const at = this.count(stored) ?? this.upTo?.at ?? this.after.at;
    const { id, first, last: end, hash } = stored;
    this.#rows += end - first + 1;
    this.upTo = { seq: end, segment: id, hash, at, pruned: this.after.pruned };
  }

  /** Its rows; when the last of them was. */
  count(stored: Stored): number | undefined {
    const chapter = chapterOf(stored.first);
    let at: number | undefined;
    let last: Parts | undefined;
    counted(stored, (row, said, terms) => {
      ({ at } = row);
      const quarter = quarterOf(at);
      if (this.#only && !this.#only.has(hourOf(at))) return;
      if (last?.quarter !== quarter) {
        last = this.#during(quarter);
        this.#places.add(`${quarter} ${chapter}`);
      }
      const facts = this.#facts.of(row, said, terms);
      last.few.addTo(facts, row);
      const before = last.all.size;
      last.all.addTo(facts, row);
      this.#groups += last.all.size - before;
    });
    return at;
  }

  write(file: SumsFile): void {
    const { after } = this;
    const upTo = this.upTo!;
    const touched = new Map<string, Subtotals>();
    for (const [depth, span, start, sums] of this.all())
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

  /** Of a quarter without keys and labels; of longer stretches at every depth. */
  *all(): Generator<readonly [Depth, span: number, start: number, Subtotals]> {
    for (const [start, { few }] of this.#quarters) yield [few.depth, QUARTER, start, few];
    let deepest: ReadonlyMap<number, Subtotals> = this.#hours;
    for (const span of LONGER.toReversed()) {
      if (span !== HOUR) deepest = joined(deepest, span);
      for (const [start, sums] of deepest) {
        const made = new Map<Depth, Subtotals>([[sums.depth, sums]]);
        for (const [depth, of] of MADE_OF) {
          const own = createSubtotals(depth);
          own.take(made.get(of)!);
          made.set(depth, own);
        }
        for (const [depth, own] of made) yield [depth, span, start, own];
      }
    }
  }

  #during(quarter: number): Parts {
    let parts = this.#quarters.get(quarter);
    if (parts) return parts;
    const hour = hourOf(quarter);
    let all = this.#hours.get(hour);
    if (!all) this.#hours.set(hour, (all = createSubtotals("labels")));
    this.#quarters.set(quarter, (parts = { quarter, few: createSubtotals(DEPTHS[0]), all }));
    return parts;
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

/** Undefined: it would be hardly less than its entries. `over`: nothing comes to it any more. */
export function textOf(sums: Subtotals, over: boolean): string | undefined {
  const most = over ? Math.min(MOST_GROUPS, sums.rows / WORTH) : MOST_GROUPS;
  return sums.size > most ? undefined : sums.text();
}

function* written(file: SumsFile, touched: ReadonlyMap<string, Subtotals>, now: number) {
  for (const [id, more] of touched) {
    const [depth, span, start] = parts(id);
    const there = file.one(depth, span, start);
    if (there ? there.sums === undefined : more.rows === 0) continue;
    if (there) more.take(readSubtotals(there.sums!));
    yield [depth, span, start, textOf(more, start + span <= now)] as const;
  }
}

function parts(id: string): [Depth, number, number] {
  const [depth, span, start] = id.split(" ");
  return [depth as Depth, Number(span), Number(start)];
}
