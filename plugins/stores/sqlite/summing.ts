// Adds up what has been written since the last time: commit by commit, off the writer's way, a little at a time. Rows whose time is past
// go where they belong, so nothing has to be late.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import {
  createSubtotals,
  DEPTHS,
  factsOf,
  type Depth,
  type LedgerRow,
  readSubtotals,
  type RowFacts,
  type Subtotals,
} from "tollgate/store";
import { chapterOf } from "./mention.ts";
import { rowsOf, type Stored } from "./stored.ts";
import { quarterOf, SPANS, type SumsFile, type UpTo } from "./sums-file.ts";

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
/** Of a stretch that is over: as many entries a group at least, or it is no help. */
const WORTH = 4;
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
  readonly #facts = new Map<string, RowFacts>();
  #under: Promise<void> | undefined;
  #hurry = false;
  #held = 0;
  #over = false;

  constructor(ledger: DatabaseSync, sums: SumsFile) {
    this.#sums = sums;
    this.#next = ledger.prepare(
      "SELECT s.id, s.last, s.hash, b.first, b.instance, b.terms, b.rows " +
        `FROM segment s JOIN batch b ON b.first = s.first WHERE s.id > ? ORDER BY s.id LIMIT ${PAGE}`,
    );
    this.#newest = ledger.prepare("SELECT last FROM segment ORDER BY id DESC LIMIT 1");
  }

  /** Entries that are not in the sums yet. */
  behind(): number {
    return Number(this.#newest.get()?.["last"] ?? 0) - this.#sums.upTo.seq;
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
      const pending = new Pending(this.#facts, this.#sums.upTo);
      let { segment } = pending.after;
      for (let began = performance.now(); pending.fits && !this.#over;) {
        const page = this.#next.all(segment) as unknown as Linked[];
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

/** What is added up and not yet written. */
class Pending {
  upTo: UpTo | undefined;
  readonly after: UpTo;
  readonly #facts: Map<string, RowFacts>;
  readonly #quarters = new Map<number, Subtotals>();
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
    const rows = rowsOf(stored);
    const chapter = chapterOf(stored.first);
    let at = this.upTo?.at ?? 0;
    for (const row of rows) {
      at = row.at;
      if (row.kind === "reserve") continue;
      const quarter = quarterOf(row.at);
      let sums = this.#quarters.get(quarter);
      if (!sums) this.#quarters.set(quarter, (sums = createSubtotals("labels")));
      const before = sums.size;
      sums.addTo(this.#factsOf(row), row);
      this.#groups += sums.size - before;
      this.#places.add(`${quarter} ${chapter}`);
    }
    this.#rows += rows.length;
    const { id, last, hash } = stored;
    this.upTo = { seq: last, segment: id, hash, at };
  }

  write(file: SumsFile): void {
    const { after } = this;
    const upTo = this.upTo!;
    const touched = new Map<string, Subtotals>();
    for (const [depth, span, start, sums] of this.#all()) {
      const id = `${depth} ${span} ${start}`;
      const into = touched.get(id);
      if (into) into.take(sums);
      else {
        const own = createSubtotals(depth);
        own.take(sums);
        touched.set(id, own);
      }
    }
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

  *#all(): Generator<readonly [Depth, span: number, start: number, Subtotals]> {
    for (const depth of DEPTHS)
      for (const span of SPANS)
        for (const [quarter, sums] of this.#quarters)
          yield [depth, span, Math.floor(quarter / span) * span, sums];
  }

  /** Made once for many rows: of the same terms, with the same end. */
  #factsOf(row: LedgerRow): RowFacts {
    const { target, asked, labels } = row;
    let id = `${row.kind === "adjust" ? "a" : row.state}\n${row.outcome}\n${row.key}\n${row.price}\n${row.account}\n${target.provider}\n${target.model}\n${target.credential}\n${asked?.frontend}`;
    for (const name in labels) id += `\n${name}\n${labels[name]}`;
    let facts = this.#facts.get(id);
    if (!facts || !isOf(facts, row)) {
      if (this.#facts.size >= FACTS) this.#facts.clear();
      this.#facts.set(id, (facts = factsOf(row)));
    }
    return facts;
  }
}

/** Names may hold anything, line ends too. */
function isOf(facts: RowFacts, row: LedgerRow): boolean {
  const other = factsOf(row);
  for (const name in other)
    if (name !== "labels" && facts[name as "key"] !== other[name as "key"]) return false;
  for (const name in other.labels) if (facts.labels[name] !== other.labels[name]) return false;
  return Object.keys(facts.labels).length === Object.keys(other.labels).length;
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
