// A table: columns that say how they are shown and sorted, rows that may open, a foot with the sum. It works without a chart.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";

export interface Column<T> {
  readonly name: string;
  readonly of: (row: T) => ComponentChildren;
  /** What it is sorted by. Absent: it is not. */
  readonly by?: (row: T) => string | number;
  readonly number?: boolean;
  /** Stands in the row's head: what the row is about. */
  readonly head?: boolean;
  /** In the table's foot. */
  readonly sum?: ComponentChildren;
}

export interface TableOf<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly id: (row: T) => string;
  readonly open?: (row: T) => void;
  readonly chosen?: string | undefined;
  readonly empty?: ComponentChildren;
  /** Shown at once; more by a button. */
  readonly most?: number;
  /** Rows that came just now. */
  readonly isNew?: (row: T) => boolean;
}

interface Sorted {
  readonly at: number;
  readonly down: boolean;
}

export function Table<T>(of: TableOf<T>) {
  const { columns, rows, most = 100 } = of;
  const [sorted, sort] = useState<Sorted>();
  const [shown, more] = useState(most);
  const [box, wider] = useWider();
  const [end, see] = useState(false);
  if (rows.length === 0 && of.empty) return html`${of.empty}`;
  const all = sorted ? inOrder(rows, columns[sorted.at]!, sorted.down) : rows;
  return html`<div class="table">
    <div
      class="scroll ${wider ? "wider" : ""}"
      ref=${box}
      tabindex="0"
      role="region"
      aria-label=${of.label}
      onScroll=${(event: Event) => see(isAtEnd(event.currentTarget as HTMLElement))}
    >
      <table>
        <thead>
          <tr>
            ${columns.map((column, at) => head(column, at, sorted, sort))}
          </tr>
        </thead>
        <tbody>
          ${all.slice(0, shown).map((row) => line(of, row))}
        </tbody>
        ${columns.some(({ sum }) => sum !== undefined) && foot(columns)}
      </table>
    </div>
    ${wider && !end && html`<p class="more small faint" aria-hidden="true">Scroll for more columns →</p>`}
    ${all.length > shown && html`<p class="row in"><button type="button" class="button small" onClick=${() => more(shown + 200)}>Show more of ${all.length}</button></p>`}
  </div>`;
}

/** Whether what is in a box is wider than the box. */
function useWider() {
  const box = useRef<HTMLDivElement>(null);
  const [wider, set] = useState(false);
  useEffect(() => {
    const own = box.current;
    if (!own) return undefined;
    const look = () => set(own.scrollWidth > own.clientWidth + 1);
    const seen = new ResizeObserver(look);
    seen.observe(own);
    if (own.firstElementChild) seen.observe(own.firstElementChild);
    return () => seen.disconnect();
  }, [box.current]);
  return [box, wider] as const;
}

const isAtEnd = ({ scrollWidth, clientWidth, scrollLeft }: HTMLElement): boolean =>
  scrollWidth - clientWidth - scrollLeft < 8;

function head<T>(
  column: Column<T>,
  at: number,
  sorted: Sorted | undefined,
  sort: (to: Sorted) => void,
) {
  const { name, by, number } = column;
  const own = sorted?.at === at;
  const order = own ? (sorted.down ? "descending" : "ascending") : undefined;
  const turn = () => sort({ at, down: own ? !sorted.down : number === true });
  return html`<th scope="col" key=${name} class=${number ? "number" : ""} aria-sort=${order}>
    ${by ? html`<button type="button" onClick=${turn}>${name}${own && html`<span aria-hidden="true">${sorted.down ? "↓" : "↑"}</span>`}</button>` : name || html`<span class="unseen">Actions</span>`}
  </th>`;
}

function line<T>({ columns, id, open, chosen, isNew }: TableOf<T>, row: T) {
  const key = id(row);
  const follow = (event: MouseEvent) => {
    if (!(event.target as Element).closest("a, button, input, select, label")) open?.(row);
  };
  return html`<tr
    key=${key}
    class="${open ? "opens" : ""} ${isNew?.(row) ? "new" : ""}"
    aria-selected=${chosen === key ? "true" : undefined}
    onClick=${open && follow}
  >
    ${columns.map((column) =>
      column.head
        ? html`<th scope="row" key=${column.name}>${column.of(row)}</th>`
        : html`<td key=${column.name} class=${column.number ? "number" : ""}>
            ${column.of(row)}
          </td>`,
    )}
  </tr>`;
}

const foot = <T>(columns: readonly Column<T>[]) =>
  html`<tfoot>
    <tr>
      ${columns.map(({ name, sum, number }, at) =>
        at === 0
          ? html`<th scope="row" key=${name}>${sum ?? "All"}</th>`
          : html`<td key=${name} class=${number ? "number" : ""}>${sum}</td>`,
      )}
    </tr>
  </tfoot>`;

function inOrder<T>(rows: readonly T[], { by }: Column<T>, down: boolean): readonly T[] {
  if (!by) return rows;
  const sign = down ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [by(a), by(b)];
    return (
      sign * (typeof x === "number" && typeof y === "number" ? x - y : `${x}`.localeCompare(`${y}`))
    );
  });
}
