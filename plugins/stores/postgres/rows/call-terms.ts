// What calls have in common is written once: the key that makes them, the model that they ask for, and at which price. Rows name it by a number that its node has given
// it. A row is refused whose terms are not there any more, or were erased; its node gives them a new number then.
import type { LedgerRow } from "tollgate/store";
import { numberArray, textArray } from "../connection/array-literal.ts";
import type { SqlQuery } from "../connection/pipelined-connection.ts";
import { encodeRow, termsChainLine, termsColumns, type ColumnValues } from "./row-codec.ts";
import { createSalts } from "./salted-labels.ts";
import { ROW_COLUMNS, chainLine, TERMS_COLUMNS, COLUMN_TYPES } from "./columns.ts";

/** Terms that a node remembers, at a time. */
const MAX_TERMS = 10_000;

export interface CachedTerms {
  readonly id: number;
  readonly cacheKey: string;
  readonly columns: ColumnValues;
  /** As the chain has them, in each row of theirs. */
  readonly chainLine: string;
}

/** A row that is to be written. */
export interface PlannedRow {
  readonly columns: ColumnValues;
  readonly terms: CachedTerms;
}

/** One row in the chain. */
export const plannedRowLine = ({ columns, terms }: PlannedRow): string =>
  chainLine(columns) + terms.chainLine;

/** Of one node. */
export class TermsCache {
  readonly #byName = new Map<string, CachedTerms>();
  readonly #stored = new Set<CachedTerms>();
  #lastId: number;

  /** `last`: numbers up to it are given. */
  constructor(last = 0) {
    this.#lastId = last;
  }

  /** Before a batch: within one nothing is forgotten. */
  beginBatch(): void {
    if (this.#byName.size >= MAX_TERMS) this.invalidate();
  }

  planRow(row: LedgerRow, began: number): PlannedRow {
    return { columns: encodeRow(row, began), terms: this.#termsFor(termsColumns(row)) };
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

  /** Those of some rows: the new ones, and the numbers of those that the database has. */
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

  /** They are written. */
  markStored(rows: readonly PlannedRow[]): void {
    for (const { terms } of rows)
      if (this.#byName.get(terms.cacheKey) === terms) this.#stored.add(terms);
  }

  /** Whether the database has them is not known: they get new numbers. */
  invalidate(): void {
    this.#byName.clear();
    this.#stored.clear();
  }
}

/** As the gate reads them. */
export const encodeTerms = (fresh: readonly CachedTerms[]): string =>
  JSON.stringify(
    fresh.map(({ id, columns }) => ({
      id,
      ...Object.fromEntries(TERMS_COLUMNS.map((name, i) => [name, columns[i]])),
    })),
  );

/** The same as rows `t`. */
export const termsRecordsetSql = (text: string): string =>
  `json_to_recordset(${text}::json) AS t(id bigint, ${TERMS_COLUMNS.map((name) => `${name} text`).join(", ")})`;

/** Rows as arrays: the numbers of their terms, and one for each column. */
export const rowArrays = (rows: readonly PlannedRow[]): readonly string[] => [
  numberArray(rows.map(({ terms }) => terms.id)),
  ...ROW_COLUMNS.map((name, i) =>
    (name in COLUMN_TYPES ? numberArray : textArray)(rows.map(({ columns }) => columns[i]!)),
  ),
];

/** Rows of one batch, and what is new of their terms. */
export function insertRowsQueries(
  schema: string,
  epoch: number,
  n: number,
  rows: readonly PlannedRow[],
  terms: TermsCache,
): readonly SqlQuery[] {
  const { fresh, known } = terms.partition(rows);
  const asked: SqlQuery[] = [];
  if (fresh.length > 0)
    asked.push({
      text: `INSERT INTO ${schema}.terms (node, id, ${TERMS_COLUMNS.join(", ")}) SELECT $1::int, t.* FROM ${termsRecordsetSql("$2")}`,
      values: [epoch, encodeTerms(fresh)],
    });
  if (known.length > 0)
    asked.push({
      text: `SELECT ${schema}.check_terms_1($1, $2)`,
      values: [epoch, numberArray(known)],
    });
  asked.push({
    text: `INSERT INTO ${schema}.ledger_row (node, n, i, terms, ${ROW_COLUMNS.join(", ")}) SELECT $1::int, $2::bigint, e.ord - 1, e.terms, ${ROW_COLUMNS.map((name) => `e.${name}`).join(", ")}
      FROM unnest(${arrayCasts(3, ["bigint", ...ROW_COLUMNS.map((name) => COLUMN_TYPES[name] ?? "text")])}) WITH ORDINALITY AS e(terms, ${ROW_COLUMNS.join(", ")}, ord)`,
    values: [epoch, n, ...rowArrays(rows)],
  });
  return asked;
}

const arrayCasts = (from: number, types: readonly string[]): string =>
  types.map((type, i) => `$${from + i}::${type}[]`).join(", ");
