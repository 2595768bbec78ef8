// Call terms are facts that many calls share, such as the key, the model, and the price. They are
// stored once, and rows refer to them by a number that the node assigns. A row is rejected if its
// terms were deleted or erased. The node then assigns a new number.
import {
  type LedgerRow,
  rowColumns,
  termsChainLine,
  termsColumns,
  type ColumnValues,
  createSalts,
  ROW_COLUMNS,
  chainLine,
  TERMS_COLUMNS,
  COLUMN_TYPES,
} from "tollgate/store";
import { numberArray, textArray } from "../connection/array-literal.ts";
import type { SqlQuery } from "../connection/pipelined-connection.ts";

/** Maximum number of terms that a node caches. */
const MAX_TERMS = 10_000;

export interface CachedTerms {
  readonly id: number;
  readonly cacheKey: string;
  readonly columns: ColumnValues;
  /** The part of the chain line that all rows with these terms share. */
  readonly chainLine: string;
}

/** A row to be written, with its terms. */
export interface PlannedRow {
  readonly columns: ColumnValues;
  readonly terms: CachedTerms;
}

/** Returns the chain line of a row. */
export const plannedRowLine = ({ columns, terms }: PlannedRow): string =>
  chainLine(columns) + terms.chainLine;

/** Caches the terms of one node and assigns their numbers. */
export class TermsCache {
  readonly #byName = new Map<string, CachedTerms>();
  readonly #stored = new Set<CachedTerms>();
  #lastId: number;

  /**
   * @param last The highest number in use.
   */
  constructor(last = 0) {
    this.#lastId = last;
  }

  /** Called before a batch. Within a batch, no terms are dropped from the cache. */
  beginBatch(): void {
    if (this.#byName.size >= MAX_TERMS) this.invalidate();
  }

  planRow(row: LedgerRow, began: number): PlannedRow {
    return { columns: rowColumns(row, began), terms: this.#termsFor(termsColumns(row)) };
  }

  #termsFor(columns: ColumnValues): CachedTerms {
    const name = JSON.stringify(columns);
    let terms = this.#byName.get(name);
    if (!terms) {
      const labels = columns.at(-1)!;
      const salted = [...columns, labels === null ? null : createSalts(labels)];
      terms = {
        id: ++this.#lastId,
        cacheKey: name,
        columns: salted,
        chainLine: termsChainLine(salted),
      };
      this.#byName.set(name, terms);
    }
    return terms;
  }

  /** Splits the terms of rows into new terms and the numbers of stored terms. */
  partition(rows: readonly PlannedRow[]): {
    readonly fresh: readonly CachedTerms[];
    readonly known: number[];
  } {
    const fresh: CachedTerms[] = [];
    const known: number[] = [];
    for (const terms of new Set(rows.map((row) => row.terms)))
      if (this.#stored.has(terms)) known.push(terms.id);
      else fresh.push(terms);
    return { fresh, known };
  }

  /** Marks the terms of rows as stored. */
  markStored(rows: readonly PlannedRow[]): void {
    for (const { terms } of rows)
      if (this.#byName.get(terms.cacheKey) === terms) this.#stored.add(terms);
  }

  /**
   * Clears the cache, because the terms in the database are unknown. Terms get new numbers after
   * that.
   */
  invalidate(): void {
    this.#byName.clear();
    this.#stored.clear();
  }
}

/** Encodes new terms as the JSON argument of the admission function. */
export const encodeTerms = (fresh: readonly CachedTerms[]): string =>
  JSON.stringify(
    fresh.map(({ id, columns }) => ({
      id,
      ...Object.fromEntries(TERMS_COLUMNS.map((name, i) => [name, columns[i]])),
    })),
  );

/** Returns SQL that decodes these terms as rows `t`. */
export const termsRecordsetSql = (text: string): string =>
  `json_to_recordset(${text}::json) AS t(id bigint, ${TERMS_COLUMNS.map((name) => `${name} text`).join(", ")})`;

/** Returns rows as array literals: first the numbers of the terms, then one array per column. */
export const rowArrays = (rows: readonly PlannedRow[]): readonly string[] => [
  numberArray(rows.map(({ terms }) => terms.id)),
  ...ROW_COLUMNS.map((name, i) =>
    (name in COLUMN_TYPES ? numberArray : textArray)(rows.map(({ columns }) => columns[i]!)),
  ),
];

/** Returns the statements that insert the rows of a batch and their new terms. */
export function insertRowsQueries(
  schema: string,
  epoch: number,
  n: number,
  rows: readonly PlannedRow[],
  terms: TermsCache,
): readonly SqlQuery[] {
  const { fresh, known } = terms.partition(rows);
  const queries: SqlQuery[] = [];
  if (fresh.length > 0)
    queries.push({
      text: `INSERT INTO ${schema}.terms (node, id, ${TERMS_COLUMNS.join(", ")}) SELECT $1::int, t.* FROM ${termsRecordsetSql("$2")}`,
      values: [epoch, encodeTerms(fresh)],
    });
  if (known.length > 0)
    queries.push({
      text: `SELECT ${schema}.check_terms_1($1, $2)`,
      values: [epoch, numberArray(known)],
    });
  queries.push({
    text: `INSERT INTO ${schema}.ledger_row (node, n, i, terms, ${ROW_COLUMNS.join(", ")}) SELECT $1::int, $2::bigint, e.ord - 1, e.terms, ${ROW_COLUMNS.map((name) => `e.${name}`).join(", ")}
      FROM unnest(${arrayCasts(3, ["bigint", ...ROW_COLUMNS.map((name) => COLUMN_TYPES[name] ?? "text")])}) WITH ORDINALITY AS e(terms, ${ROW_COLUMNS.join(", ")}, ord)`,
    values: [epoch, n, ...rowArrays(rows)],
  });
  return queries;
}

const arrayCasts = (from: number, types: readonly string[]): string =>
  types.map((type, i) => `$${from + i}::${type}[]`).join(", ");
