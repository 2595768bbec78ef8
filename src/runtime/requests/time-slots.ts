// Keeps counts in time slots of one length: the open slot, and the closed slots in encoded form.
// Three limits apply: the number of slots, the series per slot, and the total bytes. The oldest
// slots are dropped first.
import { StatsCell, CellReader, CellWriter, copyToOwnBuffer, skipCell } from "./stats-cell.ts";

export interface SlotBounds {
  /** Length of a slot, in milliseconds. */
  readonly slotMs: number;
  /** Maximum number of slots. */
  readonly maxSlots: number;
  /** Maximum total size of the closed slots, in bytes. */
  readonly maxBytes: number;
}

/**
 * Maximum number of series in an open slot. When the slot closes, the smallest series are merged.
 */
const MAX_OPEN_SERIES = 2_000;
const MAX_CLOSED_SERIES = 500;
export const OTHER_SERIES = "other";

interface ClosedSlot {
  /** Start of the slot, in Unix milliseconds. */
  readonly at: number;
  readonly bytes: Buffer;
}

/**
 * Name of a series, such as "model:demo/echo": the dimension and the value. Empty for the series
 * that counts all requests.
 */
export type Series = string;

export class TimeSlots {
  readonly bounds: SlotBounds;
  #closed: ClosedSlot[] = [];
  #closedBytes = 0;
  #startedAt: number;
  #open = new Map<Series, StatsCell>();

  constructor(bounds: SlotBounds, now: number) {
    this.bounds = bounds;
    this.#startedAt = this.#startOf(now);
  }

  cellOf(series: Series): StatsCell {
    return findOrCreateCell(this.#open, series);
  }

  /** Opens the slot that contains `now`. If the clock goes back, nothing changes. */
  advanceTo(now: number): void {
    const at = this.#startOf(now);
    if (at <= this.#startedAt) return;
    this.#close();
    this.#startedAt = at;
    this.#evict(now);
  }

  /** Start of the oldest slot. Undefined if nothing was counted. */
  get oldestStart(): number | undefined {
    return this.#closed[0]?.at ?? (this.#open.size > 0 ? this.#startedAt : undefined);
  }

  /**
   * Passes each cell with `from` ≤ start < `to` in a wanted series to `take`, oldest first. Two
   * cells may have the same start.
   */
  read(
    from: number,
    to: number,
    wants: (series: Series) => boolean,
    take: (at: number, series: Series, cell: StatsCell) => void,
  ): void {
    for (const { at, bytes } of this.#closed)
      if (at >= from && at < to) decodeSlot(bytes, wants, (series, cell) => take(at, series, cell));
    if (this.#startedAt >= from && this.#startedAt < to)
      for (const [series, cell] of this.#open)
        if (wants(series)) take(this.#startedAt, series, cell);
  }

  /** Returns all slots in encoded form, including the open one. */
  serialize(): Buffer[] {
    const open =
      this.#open.size > 0 ? [{ at: this.#startedAt, bytes: encodeSlot(this.#open) }] : [];
    return [...this.#closed, ...open].flatMap(({ at, bytes }) => {
      const head = new CellWriter();
      head.writeInteger(at);
      head.writeInteger(bytes.length);
      return [head.toBuffer(), bytes];
    });
  }

  /** Restores the slots that an earlier process serialized. Throws if the bytes are invalid. */
  restore(bytes: Uint8Array, now: number): void {
    const from = new CellReader(bytes);
    const slots: ClosedSlot[] = [];
    while (!from.isAtEnd) {
      const slot = { at: from.readInteger(), bytes: copyToOwnBuffer(from.readBytes()) };
      decodeSlot(slot.bytes, () => false);
      slots.push(slot);
    }
    this.#closed = slots.sort((a, b) => a.at - b.at);
    this.#closedBytes = slots.reduce((sum, slot) => sum + slot.bytes.length, 0);
    this.#evict(now);
  }

  #startOf(now: number): number {
    return now - (now % this.bounds.slotMs);
  }

  #close(): void {
    if (this.#open.size === 0) return;
    const bytes = encodeSlot(mergeSmallSeries(this.#open));
    this.#closed.push({ at: this.#startedAt, bytes });
    this.#closedBytes += bytes.length;
    this.#open = new Map();
  }

  #evict(now: number): void {
    const { slotMs, maxSlots, maxBytes } = this.bounds;
    const oldest = this.#startOf(now) - slotMs * (maxSlots - 1);
    let expired = 0;
    for (const slot of this.#closed) {
      if (slot.at >= oldest && this.#closedBytes <= maxBytes) break;
      this.#closedBytes -= slot.bytes.length;
      expired++;
    }
    if (expired > 0) this.#closed = this.#closed.slice(expired);
  }
}

/**
 * Returns the cell of a series. If there are too many series, returns the shared cell for other
 * series.
 */
export function findOrCreateCell(cells: Map<Series, StatsCell>, series: Series): StatsCell {
  const there = cells.get(series);
  if (there) return there;
  const name = cells.size < MAX_OPEN_SERIES ? series : otherSeriesOf(series);
  const cell = cells.get(name) ?? new StatsCell();
  cells.set(name, cell);
  return cell;
}

const otherSeriesOf = (series: Series): Series => {
  const mark = series.indexOf(":");
  return mark < 0 ? series : `${series.slice(0, mark + 1)}${OTHER_SERIES}`;
};

/** Keeps the largest series and merges the rest. */
function mergeSmallSeries(open: ReadonlyMap<Series, StatsCell>): ReadonlyMap<Series, StatsCell> {
  if (open.size <= MAX_CLOSED_SERIES) return open;
  const all = [...open].sort(([, a], [, b]) => b.get("requests") - a.get("requests"));
  const largest = new Map(all.slice(0, MAX_CLOSED_SERIES));
  for (const [series, cell] of all.slice(MAX_CLOSED_SERIES)) {
    const other = largest.get(otherSeriesOf(series)) ?? new StatsCell();
    other.add(cell);
    largest.set(otherSeriesOf(series), other);
  }
  return largest;
}

function encodeSlot(cells: ReadonlyMap<Series, StatsCell>): Buffer {
  const writer = new CellWriter();
  for (const [series, cell] of cells) {
    writer.writeText(series);
    cell.write(writer);
  }
  return writer.toBuffer();
}

function decodeSlot(
  bytes: Uint8Array,
  wants: (series: Series) => boolean,
  take: (series: Series, cell: StatsCell) => void = () => {},
): void {
  const from = new CellReader(bytes);
  while (!from.isAtEnd) {
    const series = from.readText();
    if (wants(series)) take(series, new StatsCell().read(from));
    else skipCell(from);
  }
}
