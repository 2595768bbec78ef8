// A row of the ledger as columns of text, and back. What reports sum and search by has a column; the rest is JSON. A settle's row says what the
// settle said: what its reserve said stands there, and is read with it.
import { createHash } from "node:crypto";
import type { Opt, Privacy, RequestFacts, Usage } from "tollgate/plugin";
import { fromJson, nth, toJson, UNSAID, type LedgerRow, type Taken } from "tollgate/store";
import { provedLabels, provedNote, saltsOf } from "./salts.ts";
import { COLUMNS } from "./tables.ts";

type Column = (typeof COLUMNS)[number];
/** A row as the database has it, in the order of its columns. */
export type Columns = readonly (string | null)[];

const KINDS = ["reserve", "settle", "adjust"] as const;

/** What only a reserve says, but for what goes without saying: it is in each ledger as often as there are calls. */
interface ReserveRest {
  /** Absent: as the attempt is named. */
  readonly request?: Opt<string>;
  readonly n?: Opt<number>;
  readonly protocol?: Opt<string>;
  /** Absent: "off". */
  readonly privacy?: Opt<Privacy>;
  /** Without the frontend, which has a column, and without a protocol that is the provider's too. */
  readonly asked?: Opt<Partial<RequestFacts>>;
  readonly taken?: Opt<readonly Taken[]>;
}

type SaidLater = Pick<
  LedgerRow,
  "upstreamCostNano" | "parts" | "finish" | "ms" | "reason" | "actor"
>;

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
    if (value !== undefined) (said ??= {})[clean(name)] = clean(value);
  }
  return said ? JSON.stringify(said) : null;
}

const amount = (nano: bigint | null): string | null => (nano === null ? null : String(nano));

type Reserved = Pick<LedgerRow, "request" | "n" | "privacy" | "asked" | "taken"> & {
  readonly protocol: string | null;
};

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

function shortOf(row: LedgerRow, taken: readonly Taken[]): ReserveRest {
  const { request, n, privacy, asked } = row;
  const { protocol } = row.target;
  const named = namedBy(row.attempt);
  return {
    ...((named.request !== request || named.n !== n) && { request, n }),
    ...(protocol !== null && { protocol }),
    ...(privacy !== "off" && { privacy }),
    asked: asked && shortFacts(asked, protocol),
    ...(taken.length > 0 && { taken }),
  };
}

/** The same, with what goes without saying. */
function longOf(said: ReserveRest, attempt: string, frontend: string): Reserved {
  const { protocol = null, privacy = "off", asked, taken = [] } = said;
  const { request, n } = namedBy(attempt);
  return {
    request: said.request ?? request,
    n: said.n ?? n,
    protocol,
    privacy,
    asked: asked && ({ protocol, ...asked, frontend } as RequestFacts),
    taken,
  };
}

/** What a reserve took, from its `rest`. */
export const takenOf = (rest: string): readonly Taken[] => fromJson<ReserveRest>(rest).taken ?? [];

/** `alone`: there is no reserve's row to read the rest from. */
function restOf(row: LedgerRow, alone: boolean): string | null {
  if (row.kind === "reserve") return toJson(shortOf(row, row.taken));
  const { upstreamCostNano, parts, finish, ms, reason, actor } = row;
  const later: SaidLater = { upstreamCostNano, parts, finish, ms, reason, actor };
  const text = toJson(alone ? { ...later, own: shortOf(row, []) } : later);
  return text === "{}" ? null : text;
}

function usageText(usage: Usage): string | null {
  const text = JSON.stringify(usage);
  return text === "{}" ? null : text;
}

/** `began`: when the call's reserve says that it was made; all rows of a call lie together. */
export function columnsOf(row: LedgerRow, began: number, alone = false): Columns {
  const labels = labelsText(row.labels);
  const key = clean(row.key);
  return [
    String(KINDS.indexOf(row.kind)),
    row.attempt,
    clean(nth(row)),
    String(Math.floor(began)),
    String(Math.floor(row.at)),
    key,
    cleanOr(row.account),
    clean(row.target.provider),
    clean(row.target.model),
    clean(row.target.credential),
    clean(row.asked?.frontend ?? ""),
    row.state,
    clean(row.outcome),
    cleanOr(row.price),
    labels,
    amount(row.costNano),
    amount(row.holdNano),
    cleanOr(row.upstreamId),
    usageText(row.usage),
    restOf(row, alone),
    labels === null ? null : saltsOf(key, labels),
  ];
}

/** What a query for rows selects, from `e`, its reserve's row `r` and its node `w`. */
export const SELECTED = `${COLUMNS.map((name) => `e.${name}`).join(", ")}, r.rest AS reserved, w.id AS instance`;

/** A row with its reserve's and the node that wrote it. `s`: the schema. */
export const joined = (s: string): string =>
  `LEFT JOIN ${s}.entry r ON e.kind <> 0 AND r.attempt = e.attempt AND r.began = e.began AND r.kind = 0
   JOIN ${s}.node w ON w.epoch = e.node`;

/** As a query gives it: every value is text. */
export type Found = Readonly<Record<Column | "reserved" | "instance", string>> & {
  readonly [name: string]: string | null;
};

const NOWHERE: ReserveRest = { request: "", n: 0 };

/** A row from its columns. */
export function rowOf(found: Found): LedgerRow {
  const kind = KINDS[Number(found.kind)]!;
  const reserve = (kind === "reserve" ? found.rest : found.reserved) as string | null;
  const { own, ...later } =
    kind === "reserve" || (found.rest as string | null) === null
      ? {}
      : fromJson<Partial<SaidLater> & { own?: ReserveRest }>(found.rest);
  // A call whose reserve stayed behind in another store is known by what its later rows say alone.
  const known = reserve === null ? (own ?? NOWHERE) : fromJson<ReserveRest>(reserve);
  const said = longOf(known, found.attempt, found.frontend);
  const nano = (text: string | null) => (text === null ? null : BigInt(text));
  const optional = (text: string | null) => text ?? undefined;
  return {
    ...UNSAID,
    ...later,
    kind,
    attempt: found.attempt,
    request: said.request,
    n: said.n,
    at: Number(found.at),
    instance: found.instance,
    key: found.key,
    target: {
      provider: found.provider,
      model: found.model,
      protocol: said.protocol,
      credential: found.credential,
    },
    privacy: said.privacy,
    labels: (found.labels as string | null) === null ? {} : JSON.parse(found.labels),
    account: optional(found.account),
    price: found.price,
    asked: said.asked,
    taken: kind === "reserve" ? said.taken : [],
    holdNano: nano(found.hold),
    usage: (found.usage as string | null) === null ? {} : (JSON.parse(found.usage) as Usage),
    costNano: nano(found.cost),
    state: found.state as LedgerRow["state"],
    outcome: found.outcome,
    upstreamId: optional(found.up),
  };
}

/** One row in the chain: null and the empty text are told apart, and no column can reach into the next. */
export function lineOf(columns: Columns): string {
  let line = "";
  for (let i = 0; i < SALT; i++)
    line += said(i === LABELS ? provedLabels(columns[i]!, columns[SALT] ?? null) : columns[i]!);
  return line;
}

const LABELS = COLUMNS.indexOf("labels");
const SALT = COLUMNS.indexOf("salt");
const said = (column: string | null): string => (column === null ? "\0" : `=${column}\0`);

/** A note in the chain. */
export const noteLine = (kind: string, id: string, text: string, salt: string): string =>
  provedNoteLine(kind, id, provedNote(salt, text));

/** The same from what the chain has of its text. */
export const provedNoteLine = (kind: string, id: string, proved: string): string =>
  said(kind) + said(id) + said(proved);

/** The hash of a batch: of what was before it, and of each of its lines. */
export const hashOf = (head: Uint8Array, lines: readonly string[]): Buffer =>
  createHash("sha256").update(head).update(lines.join("")).digest();
