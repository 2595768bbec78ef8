// A row of the ledger as columns of text, and back: its own, and those of its terms. What reports sum and search by has a column; the rest is JSON.
import { createHash } from "node:crypto";
import type { Opt, Privacy, RequestFacts, Usage } from "tollgate/plugin";
import { fromJson, nth, toJson, UNSAID, type LedgerRow, type Taken } from "tollgate/store";
import { provedLabels, provedNote } from "./salts.ts";
import { BOOKED, COLUMNS, COUNTED, lineOf, TERMS } from "./columns.ts";

type Column = (typeof COLUMNS)[number];
/** A row as the database has it, in the order of its columns. */
export type Columns = readonly (string | null)[];

const KINDS = ["reserve", "settle", "adjust"] as const;

/** What a row says that has no column of its own, but for what goes without saying. */
interface Rest extends Partial<
  Pick<LedgerRow, "upstreamCostNano" | "parts" | "finish" | "ms" | "reason" | "actor">
> {
  /** Absent: as the attempt is named. */
  readonly request?: Opt<string>;
  readonly n?: Opt<number>;
  readonly taken?: Opt<readonly Taken[]>;
}

/** How calls are made, of their terms: they are as often in a ledger as there are calls. */
interface How {
  readonly protocol?: Opt<string>;
  /** Absent: "off". */
  readonly privacy?: Opt<Privacy>;
  /** Without the frontend, which has a column, and without a protocol that is the provider's too. */
  readonly asked?: Opt<Partial<RequestFacts>>;
}

/** Text as a column can hold it: NUL has no place in any. */
export const clean = (text: string): string =>
  text.includes("\0") || !text.isWellFormed()
    ? text.toWellFormed().replaceAll("\0", "\uFFFD")
    : text;

const cleanOr = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : clean(text);

function labelsText(labels: LedgerRow["labels"]): string | null {
  let said: { [name: string]: string } | undefined;
  for (const name in labels) {
    const value = labels[name];
    // Also one that is called __proto__.
    if (value !== undefined)
      (said ??= Object.create(null) as { [name: string]: string })[clean(name)] = clean(value);
  }
  return said ? JSON.stringify(said) : null;
}

const amount = (nano: bigint | null): string | null => (nano === null ? null : String(nano));

const NAMED = /^(.*)\.(\d+)$/su;
/** What the gateway's own names of attempts say. */
function namedBy(attempt: string): { readonly request: string; readonly n: number } {
  const [, request = "", n = "0"] = NAMED.exec(attempt) ?? [];
  return { request, n: Number(n) };
}

const shortFacts = (
  { frontend: _, protocol, ...facts }: RequestFacts,
  own: string | null,
): Partial<RequestFacts> => ({ ...facts, ...(protocol !== own && { protocol }) });

function howText({ privacy, asked, target: { protocol } }: LedgerRow): string | null {
  const how: How = {
    ...(protocol !== null && { protocol }),
    ...(privacy !== "off" && { privacy }),
    asked: asked && shortFacts(asked, protocol),
  };
  return textOf(how);
}

const textOf = (said: object): string | null => {
  const text = toJson(said);
  return text === "{}" ? null : text;
};

/** What a row says of its call's terms, in the order of their columns; without salts. */
export const termsOf = (row: LedgerRow): Columns => [
  clean(row.key),
  cleanOr(row.account),
  clean(row.target.provider),
  clean(row.target.model),
  clean(row.target.credential),
  clean(row.asked?.frontend ?? ""),
  cleanOr(row.price),
  howText(row),
  labelsText(row.labels),
];

/** What a reserve took, from its `rest`. */
export const takenOf = (rest: string | null): readonly Taken[] =>
  rest === null ? [] : (fromJson<Rest>(rest).taken ?? []);

function restOf(row: LedgerRow): string | null {
  const { request, n } = row;
  const isNamed = Number.isSafeInteger(n) && n >= 0 && row.attempt === `${request}.${n}`;
  if (row.kind === "reserve") {
    if (isNamed && row.taken.length === 0) return null;
    return textOf({
      ...(!isNamed && { request, n }),
      ...(row.taken.length > 0 && { taken: row.taken }),
    } satisfies Rest);
  }
  const { upstreamCostNano, parts, finish, ms, reason, actor } = row;
  return textOf({
    upstreamCostNano,
    parts,
    finish,
    ms,
    reason,
    actor,
    ...(!isNamed && { request, n }),
  } satisfies Rest);
}

/** Most calls have none. */
function othersText(usage: Usage, counted: Columns): string | null {
  const inColumns = (unit: string) =>
    counted[COUNTED.indexOf(unit as (typeof COUNTED)[number])] != null;
  if (Object.keys(usage).every(inColumns)) return null;
  const others: { [unit: string]: number | undefined } = { ...usage };
  for (const unit of COUNTED) if (inColumns(unit)) delete others[unit];
  const text = JSON.stringify(others);
  return text === "{}" ? null : text;
}

/** Whole numbers of the units that have columns, and the others as JSON. Columns are added up: what a correction says of units is for the reader. */
function usageColumns({ kind, usage }: LedgerRow): Columns {
  const counted = COUNTED.map((unit) => {
    const many = usage[unit];
    const isWhole = kind !== "adjust" && Number.isSafeInteger(many) && !Object.is(many, -0);
    return isWhole ? String(many) : null;
  });
  return [...counted, othersText(usage, counted)];
}

/** `began`: when the call's reserve says that it was made; all rows of a call lie together. */
export const columnsOf = (row: LedgerRow, began: number): Columns => [
  String(KINDS.indexOf(row.kind)),
  row.attempt,
  clean(nth(row)),
  String(Math.floor(began)),
  String(Math.floor(row.at)),
  row.state,
  clean(row.outcome),
  amount(row.costNano),
  amount(row.holdNano),
  cleanOr(row.upstreamId),
  ...usageColumns(row),
  restOf(row),
];

/** What a query for rows selects, from `e` and its node `w`. */
export const SELECTED = `${COLUMNS.map((name) => `e.${name}`).join(", ")}, w.id AS instance`;

/** A row with the node that wrote it. `s`: the schema. */
export const joined = (s: string): string => `JOIN ${s}.node w ON w.epoch = e.node`;

/** As a query gives it: every value is text. */
export type Found = Readonly<Record<Column | "instance", string>> & {
  readonly [name: string]: string | null;
};

/** What a row has used, from its columns. */
export function usageOf(found: Readonly<Record<string, string | null>>): Usage {
  const usage: { [unit: string]: number } = {};
  for (const unit of COUNTED) {
    const many = found[unit] ?? null;
    if (many !== null) usage[unit] = Number(many);
  }
  const others = found["usage"] ?? null;
  return others === null ? usage : { ...usage, ...(JSON.parse(others) as Usage) };
}

/** A row from its columns. */
export function rowOf(found: Found): LedgerRow {
  const kind = KINDS[Number(found.kind)]!;
  const text = found as Readonly<Record<string, string | null>>;
  const { protocol = null, privacy = "off", asked } = parsed<How>(text["how"]);
  const {
    taken = [],
    request,
    n,
    ...rest
  } = { ...namedBy(found.attempt), ...parsed<Rest>(text["rest"]) };
  const nano = (text: string | null) => (text === null ? null : BigInt(text));
  const optional = (text: string | null) => text ?? undefined;
  return {
    ...UNSAID,
    ...rest,
    kind,
    attempt: found.attempt,
    request: request!,
    n: n!,
    at: Number(found.at),
    instance: found.instance,
    key: found.key,
    target: {
      provider: found.provider,
      model: found.model,
      protocol,
      credential: found.credential,
    },
    privacy,
    labels: text["labels"] == null ? {} : (JSON.parse(text["labels"]) as LedgerRow["labels"]),
    account: optional(found.account),
    price: found.price,
    asked: asked && ({ protocol, ...asked, frontend: found.frontend } as RequestFacts),
    taken,
    holdNano: nano(found.hold),
    usage: usageOf(found),
    costNano: nano(found.cost),
    state: found.state as LedgerRow["state"],
    outcome: found.outcome,
    upstreamId: optional(found.up),
  };
}

const parsed = <T extends object>(text: string | null | undefined): Partial<T> =>
  text === null || text === undefined ? {} : fromJson<T>(text);

/** What follows a row's own part in its line: its terms, from their columns. */
export function termsLine(columns: Columns): string {
  let line = "";
  for (let i = 0; i < LABELS; i++) line += said(columns[i]!);
  return line + said(provedLabels(columns[LABELS]!, columns[SALT] ?? null));
}

const LABELS = TERMS.indexOf("labels");
const SALT = TERMS.indexOf("salt");
const said = (column: string | null): string => (column === null ? "\0" : `=${column}\0`);

/** The same of a row with all its columns. */
export const wholeLine = (columns: Columns): string =>
  lineOf(columns) + termsLine(columns.slice(BOOKED.length));

/** A note in the chain. */
export const noteLine = (kind: string, id: string, text: string, salt: string): string =>
  provedNoteLine(kind, id, provedNote(salt, text));

/** The same from what the chain has of its text. */
export const provedNoteLine = (kind: string, id: string, proved: string): string =>
  said(kind) + said(id) + said(proved);

/** The hash of a batch: of what was before it, and of each of its lines. */
export const hashOf = (head: Uint8Array, lines: readonly string[]): Buffer =>
  createHash("sha256").update(head).update(lines.join("")).digest();
