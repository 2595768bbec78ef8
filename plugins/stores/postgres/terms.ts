// What calls have in common is written once: the key that makes them, the model that they ask for, and at which price. Rows name it by a number that its node has given
// it. A row is refused whose terms are not there any more, or were erased; its node gives them a new number then.
import type { LedgerRow } from "tollgate/store";
import { numbers, texts } from "./literal.ts";
import type { Question } from "./line.ts";
import { columnsOf, termsLine, termsOf, type Columns } from "./rows.ts";
import { saltsOf } from "./salts.ts";
import { BOOKED, lineOf, TERMS, TYPES } from "./columns.ts";

/** Terms that a node remembers, at a time. */
const MOST = 10_000;

export interface Terms {
  readonly id: number;
  readonly name: string;
  readonly columns: Columns;
  /** As the chain has them, in each row of theirs. */
  readonly line: string;
}

/** A row that is to be written. */
export interface Booked {
  readonly columns: Columns;
  readonly terms: Terms;
}

/** One row in the chain. */
export const bookedLine = ({ columns, terms }: Booked): string => lineOf(columns) + terms.line;

/** Of one node. */
export class KnownTerms {
  readonly #by = new Map<string, Terms>();
  readonly #there = new Set<Terms>();
  #last: number;

  /** `last`: numbers up to it are given. */
  constructor(last = 0) {
    this.#last = last;
  }

  /** Before a batch: within one nothing is forgotten. */
  begin(): void {
    if (this.#by.size >= MOST) this.forget();
  }

  book(row: LedgerRow, began: number): Booked {
    return { columns: columnsOf(row, began), terms: this.#of(termsOf(row)) };
  }

  #of(columns: Columns): Terms {
    const name = JSON.stringify(columns);
    let terms = this.#by.get(name);
    if (!terms) {
      const labels = columns.at(-1)!;
      const salted = [...columns, labels === null ? null : saltsOf(labels)];
      terms = { id: ++this.#last, name, columns: salted, line: termsLine(salted) };
      this.#by.set(name, terms);
    }
    return terms;
  }

  /** Those of some rows: the new ones, and the numbers of those that the database has. */
  sort(rows: readonly Booked[]): { readonly fresh: readonly Terms[]; readonly known: number[] } {
    const fresh: Terms[] = [];
    const known: number[] = [];
    for (const terms of new Set(rows.map((row) => row.terms)))
      if (this.#there.has(terms)) known.push(terms.id);
      else fresh.push(terms);
    return { fresh, known };
  }

  /** They are written. */
  wrote(rows: readonly Booked[]): void {
    for (const { terms } of rows) if (this.#by.get(terms.name) === terms) this.#there.add(terms);
  }

  /** Whether the database has them is not known: they get new numbers. */
  forget(): void {
    this.#by.clear();
    this.#there.clear();
  }
}

/** As the gate reads them. */
export const termsText = (fresh: readonly Terms[]): string =>
  JSON.stringify(
    fresh.map(({ id, columns }) => ({
      id,
      ...Object.fromEntries(TERMS.map((name, i) => [name, columns[i]])),
    })),
  );

/** The same as rows `t`. */
export const termsFrom = (text: string): string =>
  `json_to_recordset(${text}::json) AS t(id bigint, ${TERMS.map((name) => `${name} text`).join(", ")})`;

/** Rows as arrays: the numbers of their terms, and one for each column. */
export const bookedArrays = (rows: readonly Booked[]): readonly string[] => [
  numbers(rows.map(({ terms }) => terms.id)),
  ...BOOKED.map((name, i) =>
    (name in TYPES ? numbers : texts)(rows.map(({ columns }) => columns[i]!)),
  ),
];

/** Rows of one batch, and what is new of their terms. */
export function booking(
  s: string,
  epoch: number,
  n: number,
  rows: readonly Booked[],
  terms: KnownTerms,
): readonly Question[] {
  const { fresh, known } = terms.sort(rows);
  const asked: Question[] = [];
  if (fresh.length > 0)
    asked.push({
      text: `INSERT INTO ${s}.terms (node, id, ${TERMS.join(", ")}) SELECT $1::int, t.* FROM ${termsFrom("$2")}`,
      values: [epoch, termsText(fresh)],
    });
  if (known.length > 0)
    asked.push({ text: `SELECT ${s}.terms_1($1, $2)`, values: [epoch, numbers(known)] });
  asked.push({
    text: `INSERT INTO ${s}.booked (node, n, i, terms, ${BOOKED.join(", ")}) SELECT $1::int, $2::bigint, e.ord - 1, e.terms, ${BOOKED.map((name) => `e.${name}`).join(", ")}
      FROM unnest(${casts(3, ["bigint", ...BOOKED.map((name) => TYPES[name] ?? "text")])}) WITH ORDINALITY AS e(terms, ${BOOKED.join(", ")}, ord)`,
    values: [epoch, n, ...bookedArrays(rows)],
  });
  return asked;
}

const casts = (from: number, types: readonly string[]): string =>
  types.map((type, i) => `$${from + i}::${type}[]`).join(", ");
