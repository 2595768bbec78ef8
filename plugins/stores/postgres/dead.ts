// Calls that others have left open, and what is presumed of them.
import type { StoreCommand } from "tollgate/plugin";
import { presumed, recoveryAt, type LedgerRow, type Progress } from "tollgate/store";
import type { Ask, Row } from "./line.ts";
import { texts } from "./literal.ts";
import { joined, rowOf, SELECTED, type Found } from "./rows.ts";

/** Calls that are settled in one batch. */
const AT_ONCE = 500;

/** Settles, and how many there are of each instance. */
export interface Presumed {
  readonly commands: readonly StoreCommand[];
  readonly by: ReadonlyMap<string, number>;
}

/** Of these nodes, as many as fit in a batch. */
export async function presumedOf(
  ask: Ask,
  s: string,
  epochs: readonly string[],
  now: number,
): Promise<Presumed> {
  const by = new Map<string, number>();
  if (epochs.length === 0) return { commands: [], by };
  const rows = await ask({
    text: `SELECT o.usage AS heard, o.cost AS costs, ${SELECTED}
      FROM ${s}.open o JOIN ${s}.entry e ON e.attempt = o.attempt AND e.began = o.began AND e.kind = 0 ${joined(s)}
      WHERE o.node = ANY ($1::int[]) ORDER BY o.attempt LIMIT $2`,
    values: [texts(epochs), AT_ONCE],
  });
  const open = rows.map(leftOpen);
  for (const { row } of open) by.set(row.instance, (by.get(row.instance) ?? 0) + 1);
  const at = recoveryAt(open, now);
  return { commands: open.map(({ row, heard }) => presumed(row, heard, at)), by };
}

function leftOpen(found: Row): { row: LedgerRow; heard: Progress | undefined } {
  const { heard, costs } = found;
  return {
    row: rowOf(found as Found),
    heard:
      typeof heard === "string"
        ? { usage: JSON.parse(heard), costNano: typeof costs === "string" ? BigInt(costs) : null }
        : undefined,
  };
}
