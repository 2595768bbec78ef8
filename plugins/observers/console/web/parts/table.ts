// A table with sortable columns, rows that can be opened, and a footer with sums. The table does
// not depend on a chart.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";

export interface Column<T> {
  readonly name: string;
  readonly render: (row: T) => ComponentChildren;
  /** Sort key of a row. If unset, the column is not sortable. */
  readonly sortKey?: (row: T) => string | number;
  readonly isNumber?: boolean;
  /** Whether the cell is the header of its row. */
  readonly isRowHeader?: boolean;
  /** Content of the table's footer. */
  readonly footer?: ComponentChildren;
}

export interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly rowId: (row: T) => string;
  readonly onOpen?: (row: T) => void;
  readonly selectedId?: string | undefined;
  readonly empty?: ComponentChildren;
  /** Number of rows to show first. A button shows more. */
  readonly initialRows?: number;
  /** Whether a row has just arrived. */
  readonly isNew?: (row: T) => boolean;
}

interface SortOrder {
  readonly column: number;
  readonly isDescending: boolean;
}

export function Table<T>(of: TableProps<T>) {
  const { columns, rows, initialRows = 100 } = of;
  const [sorted, sort] = useState<SortOrder>();
  const [shown, more] = useState(initialRows);
  const [box, wider] = useOverflow();
  const [end, see] = useState(false);
  if (rows.length === 0 && of.empty) return html`${of.empty}`;
  const all = sorted ? sortRows(rows, columns[sorted.column]!, sorted.isDescending) : rows;
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
            ${columns.map((column, at) => renderHeader(column, at, sorted, sort))}
          </tr>
        </thead>
        <tbody>
          ${all.slice(0, shown).map((row) => renderRow(of, row))}
        </tbody>
        ${columns.some(({ footer }) => footer !== undefined) && renderFooter(columns)}
      </table>
    </div>
    ${wider && !end && html`<p class="more small faint" aria-hidden="true">Scroll for more columns →</p>`}
    ${all.length > shown && html`<p class="row in"><button type="button" class="button small" onClick=${() => more(shown + 200)}>Show more of ${all.length}</button></p>`}
  </div>`;
}

/** Whether the content of a box is wider than the box. */
function useOverflow() {
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

function renderHeader<T>(
  column: Column<T>,
  at: number,
  sorted: SortOrder | undefined,
  sort: (to: SortOrder) => void,
) {
  const { name, sortKey, isNumber } = column;
  const own = sorted?.column === at;
  const order = own ? (sorted.isDescending ? "descending" : "ascending") : undefined;
  const turn = () =>
    sort({ column: at, isDescending: own ? !sorted.isDescending : isNumber === true });
  return html`<th scope="col" key=${name} class=${isNumber ? "number" : ""} aria-sort=${order}>
    ${sortKey ? html`<button type="button" onClick=${turn}>${name}${own && html`<span aria-hidden="true">${sorted.isDescending ? "↓" : "↑"}</span>`}</button>` : name || html`<span class="unseen">Actions</span>`}
  </th>`;
}

function renderRow<T>({ columns, rowId, onOpen, selectedId, isNew }: TableProps<T>, row: T) {
  const key = rowId(row);
  const follow = (event: MouseEvent) => {
    if (!(event.target as Element).closest("a, button, input, select, label")) onOpen?.(row);
  };
  return html`<tr
    key=${key}
    class="${onOpen ? "opens" : ""} ${isNew?.(row) ? "new" : ""}"
    aria-selected=${selectedId === key ? "true" : undefined}
    onClick=${onOpen && follow}
  >
    ${columns.map((column) =>
      column.isRowHeader
        ? html`<th scope="row" key=${column.name}>${column.render(row)}</th>`
        : html`<td key=${column.name} class=${column.isNumber ? "number" : ""}>
            ${column.render(row)}
          </td>`,
    )}
  </tr>`;
}

const renderFooter = <T>(columns: readonly Column<T>[]) =>
  html`<tfoot>
    <tr>
      ${columns.map(({ name, footer, isNumber }, at) =>
        at === 0
          ? html`<th scope="row" key=${name}>${footer ?? "All"}</th>`
          : html`<td key=${name} class=${isNumber ? "number" : ""}>${footer}</td>`,
      )}
    </tr>
  </tfoot>`;

function sortRows<T>(rows: readonly T[], { sortKey }: Column<T>, down: boolean): readonly T[] {
  if (!sortKey) return rows;
  const sign = down ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [x, y] = [sortKey(a), sortKey(b)];
    return (
      sign * (typeof x === "number" && typeof y === "number" ? x - y : `${x}`.localeCompare(`${y}`))
    );
  });
}
