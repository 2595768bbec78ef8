// What was counted, by stretches of one length: the one that runs, open, and those before it, closed and written down. Bounded in
// three ways: so many stretches, so many series in each, so many bytes in all; the oldest go first.
import { Cell, CellReader, CellWriter, ofItsOwn, skipCell } from "./cell.ts";

export interface SlotBounds {
  /** How long one is. */
  readonly ms: number;
  /** How many are kept. */
  readonly most: number;
  /** Of all that are closed. */
  readonly bytes: number;
}

/** While one runs it may have so many series; when it is closed the smallest of them become one. */
const OPEN = 2_000;
const CLOSED = 500;
export const OTHER = "other";

interface Slot {
  /** Unix milliseconds. */
  readonly at: number;
  readonly bytes: Buffer;
}

/** "model:demo/echo": what is counted, by what, and which. "": all of it. */
export type Series = string;

export class Slots {
  readonly bounds: SlotBounds;
  #closed: Slot[] = [];
  #bytes = 0;
  #at: number;
  #open = new Map<Series, Cell>();

  constructor(bounds: SlotBounds, now: number) {
    this.bounds = bounds;
    this.#at = this.#startOf(now);
  }

  cell(series: Series): Cell {
    return cellIn(this.#open, series);
  }

  /** What comes from now on belongs to the stretch that this moment is in. A clock that goes back changes nothing. */
  reach(now: number): void {
    const at = this.#startOf(now);
    if (at <= this.#at) return;
    this.#close();
    this.#at = at;
    this.#forget(now);
  }

  /** The start of the oldest; undefined: nothing was counted. */
  get oldest(): number | undefined {
    return this.#closed[0]?.at ?? (this.#open.size > 0 ? this.#at : undefined);
  }

  /** Every cell of `from` ≤ start < `to`, whose series it wants, from the oldest on. One start may come twice. */
  read(
    from: number,
    to: number,
    wants: (series: Series) => boolean,
    take: (at: number, series: Series, cell: Cell) => void,
  ): void {
    for (const { at, bytes } of this.#closed)
      if (at >= from && at < to) decode(bytes, wants, (series, cell) => take(at, series, cell));
    if (this.#at >= from && this.#at < to)
      for (const [series, cell] of this.#open) if (wants(series)) take(this.#at, series, cell);
  }

  /** All of it, the open one too. */
  written(): Buffer[] {
    const open = this.#open.size > 0 ? [{ at: this.#at, bytes: encode(this.#open) }] : [];
    return [...this.#closed, ...open].flatMap(({ at, bytes }) => {
      const head = new CellWriter();
      head.whole(at);
      head.whole(bytes.length);
      return [head.done(), bytes];
    });
  }

  /** What was written before, by a process that is over. Throws where it was not. */
  restore(bytes: Uint8Array, now: number): void {
    const from = new CellReader(bytes);
    const slots: Slot[] = [];
    while (!from.over) {
      const slot = { at: from.whole(), bytes: ofItsOwn(from.bytes()) };
      decode(slot.bytes, () => false);
      slots.push(slot);
    }
    this.#closed = slots.sort((a, b) => a.at - b.at);
    this.#bytes = slots.reduce((sum, slot) => sum + slot.bytes.length, 0);
    this.#forget(now);
  }

  #startOf(now: number): number {
    return now - (now % this.bounds.ms);
  }

  #close(): void {
    if (this.#open.size === 0) return;
    const bytes = encode(folded(this.#open));
    this.#closed.push({ at: this.#at, bytes });
    this.#bytes += bytes.length;
    this.#open = new Map();
  }

  #forget(now: number): void {
    const { ms, most, bytes } = this.bounds;
    const oldest = this.#startOf(now) - ms * (most - 1);
    let gone = 0;
    for (const slot of this.#closed) {
      if (slot.at >= oldest && this.#bytes <= bytes) break;
      this.#bytes -= slot.bytes.length;
      gone++;
    }
    if (gone > 0) this.#closed = this.#closed.slice(gone);
  }
}

/** The series' own, or, where there are too many already, that of all others beside it. */
export function cellIn(cells: Map<Series, Cell>, series: Series): Cell {
  const there = cells.get(series);
  if (there) return there;
  const name = cells.size < OPEN ? series : otherOf(series);
  const made = cells.get(name) ?? new Cell();
  cells.set(name, made);
  return made;
}

const otherOf = (series: Series): Series => {
  const mark = series.indexOf(":");
  return mark < 0 ? series : `${series.slice(0, mark + 1)}${OTHER}`;
};

/** The largest, and what the others come to. */
function folded(open: ReadonlyMap<Series, Cell>): ReadonlyMap<Series, Cell> {
  if (open.size <= CLOSED) return open;
  const all = [...open].sort(([, a], [, b]) => b.of("requests") - a.of("requests"));
  const kept = new Map(all.slice(0, CLOSED));
  for (const [series, cell] of all.slice(CLOSED)) {
    const other = kept.get(otherOf(series)) ?? new Cell();
    other.add(cell);
    kept.set(otherOf(series), other);
  }
  return kept;
}

function encode(cells: ReadonlyMap<Series, Cell>): Buffer {
  const writer = new CellWriter();
  for (const [series, cell] of cells) {
    writer.text(series);
    cell.write(writer);
  }
  return writer.done();
}

function decode(
  bytes: Uint8Array,
  wants: (series: Series) => boolean,
  take: (series: Series, cell: Cell) => void = () => {},
): void {
  const from = new CellReader(bytes);
  while (!from.over) {
    const series = from.text();
    if (wants(series)) take(series, new Cell().read(from));
    else skipCell(from);
  }
}
