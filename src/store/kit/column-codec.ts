// Converts ledger rows to text columns and back. A row consists of terms, which are values that
// many calls share, and of all other values. Facts by which reports group or filter have columns. All
// other facts are stored as JSON. In stores of several nodes, each node has a chain over the
// columns of its batches, and one chain covers all nodes.
import { createHash } from "node:crypto";
import type { Opt, Privacy, ClientRequestInfo, Usage } from "../../plugin/index.ts";
import { fromJson, toJson } from "../bigint-json.ts";
import { rowQualifier, NO_SETTLE_FIELDS, type LedgerRow } from "../ledger-row.ts";
import type { MeterAmount } from "../meter.ts";
import { encodeAmount } from "./commit-text.ts";
import { hashLabels, hashOrErased } from "./salted-text.ts";

// The columns of ledger rows and of their terms, for stores that keep a row in columns.

/** Units that nearly every call reports. They have columns, so sums need no JSON parsing. */
export const UNIT_COLUMNS = [
  "input",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "output",
  "reasoning",
] as const;

/** Columns of a ledger row, in the order in which the chain hashes them. */
export const ROW_COLUMNS = [
  "kind",
  "attempt",
  "qualifier",
  "started_at",
  "at",
  "state",
  "outcome",
  "cost",
  "hold",
  "upstream_id",
  ...UNIT_COLUMNS,
  "usage",
  "rest",
] as const;

/** SQL types of the columns that are not text. */
export const COLUMN_TYPES: { readonly [name: string]: string } = {
  kind: "smallint",
  started_at: "bigint",
  at: "bigint",
  cost: "bigint",
  hold: "bigint",
  ...Object.fromEntries(UNIT_COLUMNS.map((unit) => [unit, "bigint"])),
};

/**
 * Columns of the terms. The chain hashes them after the row's columns. `salt` is not hashed
 * separately, because it is part of the label hashes.
 */
export const TERMS_COLUMNS = [
  "key",
  "account",
  "provider",
  "model",
  "credential",
  "frontend",
  "price",
  "how",
  "labels",
  "salt",
] as const;

/** All columns of a row and its terms. */
export const ALL_COLUMNS = [...ROW_COLUMNS, ...TERMS_COLUMNS] as const;

const isNumberColumn = ROW_COLUMNS.map((name) => name in COLUMN_TYPES);
/**
 * Returns the row's part of its chain line: numbers, the lengths of texts, and then the texts. Null
 * and empty are distinguished, and text of one column cannot be mistaken for text of another.
 */
export function chainLine(columns: readonly (string | null)[]): string {
  let [numbers, lengths, texts] = ["", "", ""];
  for (let i = 0; i < ROW_COLUMNS.length; i++) {
    const column = columns[i]!;
    if (isNumberColumn[i]) numbers += `${column ?? ""} `;
    else if (column === null) lengths += " ";
    else {
      lengths += `${Buffer.byteLength(column)} `;
      texts += column;
    }
  }
  return numbers + lengths + texts;
}

type Column = (typeof ALL_COLUMNS)[number];
/** Column values of a row, in column order. */
export type ColumnValues = readonly (string | null)[];

const ROW_KINDS = ["reserve", "settle", "adjust"] as const;

/** Fields of a row that have no column. Defaults are omitted. */
interface RowRest extends Partial<
  Pick<LedgerRow, "upstreamCostNano" | "parts" | "finish" | "ms" | "reason" | "actor">
> {
  /** Request ID and attempt number. If unset, they are parsed from the attempt ID. */
  readonly request?: Opt<string>;
  readonly n?: Opt<number>;
  readonly meterAmounts?: Opt<readonly MeterAmount[]>;
}

/**
 * Fields of the terms that have no column. Terms can be as numerous as calls, so defaults are
 * omitted.
 */
interface TermsExtra {
  readonly protocol?: Opt<string>;
  /** Privacy level. If unset, "off". */
  readonly privacy?: Opt<Privacy>;
  /**
   * Request info without the frontend, which has a column. The protocol is omitted if it equals the
   * provider's.
   */
  readonly clientRequest?: Opt<Partial<ClientRequestInfo>>;
  /** ID of the own call of the job. */
  readonly job?: Opt<string>;
}

/** Replaces characters that a text column cannot store: NUL and unpaired surrogates. */
export const toColumnText = (text: string): string =>
  text.includes("\0") || !text.isWellFormed()
    ? text.toWellFormed().replaceAll("\0", "\uFFFD")
    : text;

const toNullableColumnText = (text: string | null | undefined): string | null =>
  text === null || text === undefined ? null : toColumnText(text);

function encodeLabels(labels: LedgerRow["labels"]): string | null {
  let encoded: { [name: string]: string } | undefined;
  for (const name in labels) {
    const value = labels[name];
    // Assignment through entries is also correct for a label named `__proto__`.
    if (value !== undefined)
      (encoded ??= Object.create(null) as { [name: string]: string })[toColumnText(name)] =
        toColumnText(value);
  }
  return encoded ? JSON.stringify(encoded) : null;
}

const ATTEMPT_ID = /^(.*)\.(\d+)$/su;
/** Parses a gateway attempt ID, `<request>.<n>`. */
function parseAttemptId(attempt: string): { readonly request: string; readonly n: number } {
  const [, request = "", n = "0"] = ATTEMPT_ID.exec(attempt) ?? [];
  return { request, n: Number(n) };
}

const compactRequestInfo = (
  { frontend: _, protocol, ...facts }: ClientRequestInfo,
  own: string | null,
): Partial<ClientRequestInfo> => ({ ...facts, ...(protocol !== own && { protocol }) });

function encodeTermsExtra({
  privacy,
  clientRequest,
  target: { protocol },
  job,
}: LedgerRow): string | null {
  const how: TermsExtra = {
    ...(protocol !== null && { protocol }),
    ...(privacy !== "off" && { privacy }),
    clientRequest: clientRequest && compactRequestInfo(clientRequest, protocol),
    ...(job !== undefined && { job }),
  };
  return toJsonOrNull(how);
}

const toJsonOrNull = (value: object): string | null => {
  const text = toJson(value);
  return text === "{}" ? null : text;
};

/** Returns the terms of a row in column order, without the salts. */
export const termsColumns = (row: LedgerRow): ColumnValues => [
  toColumnText(row.key),
  toNullableColumnText(row.account),
  toColumnText(row.target.provider),
  toColumnText(row.target.model),
  toColumnText(row.target.credential),
  toColumnText(row.clientRequest?.frontend ?? ""),
  toNullableColumnText(row.price),
  encodeTermsExtra(row),
  encodeLabels(row.labels),
];

/** Returns the meter amounts of a reserve from its `rest` column. */
export const decodeMeterAmounts = (rest: string | null): readonly MeterAmount[] =>
  rest === null ? [] : (fromJson<RowRest>(rest).meterAmounts ?? []);

function encodeRest(row: LedgerRow): string | null {
  const { request, n } = row;
  const isNamed = Number.isSafeInteger(n) && n >= 0 && row.attempt === `${request}.${n}`;
  if (row.kind === "reserve") {
    if (isNamed && row.meterAmounts.length === 0) return null;
    return toJsonOrNull({
      ...(!isNamed && { request, n }),
      ...(row.meterAmounts.length > 0 && { meterAmounts: row.meterAmounts }),
    } satisfies RowRest);
  }
  const { upstreamCostNano, parts, finish, ms, reason, actor } = row;
  return toJsonOrNull({
    upstreamCostNano,
    parts,
    finish,
    ms,
    reason,
    actor,
    ...(!isNamed && { request, n }),
  } satisfies RowRest);
}

/**
 * Encodes units that have no column as JSON. Returns null for most calls, because they have no such
 * units.
 */
function encodeOtherUnits(usage: Usage, counted: ColumnValues): string | null {
  const inColumns = (unit: string) =>
    counted[UNIT_COLUMNS.indexOf(unit as (typeof UNIT_COLUMNS)[number])] != null;
  if (Object.keys(usage).every(inColumns)) return null;
  const others: { [unit: string]: number | undefined } = { ...usage };
  for (const unit of UNIT_COLUMNS) if (inColumns(unit)) delete others[unit];
  const text = JSON.stringify(others);
  return text === "{}" ? null : text;
}

/**
 * Returns the unit columns for safe integers, and all other units as JSON. Unit columns are summed.
 * The usage of an adjustment is only informational, so it is stored as JSON.
 */
function usageColumns({ kind, usage }: LedgerRow): ColumnValues {
  const counted = UNIT_COLUMNS.map((unit) => {
    const many = usage[unit];
    const isWhole = kind !== "adjust" && Number.isSafeInteger(many) && !Object.is(many, -0);
    return isWhole ? String(many) : null;
  });
  return [...counted, encodeOtherUnits(usage, counted)];
}

/**
 * Encodes a row without its terms, which `termsColumns` encodes.
 * @param began Time of the call's reserve. All rows of a call are in the same partition.
 */
export const rowColumns = (row: LedgerRow, began: number): ColumnValues => [
  String(ROW_KINDS.indexOf(row.kind)),
  row.attempt,
  toColumnText(rowQualifier(row)),
  String(Math.floor(began)),
  String(Math.floor(row.at)),
  row.state,
  toColumnText(row.outcome),
  encodeAmount(row.costNano),
  encodeAmount(row.holdNano),
  toNullableColumnText(row.upstreamId),
  ...usageColumns(row),
  encodeRest(row),
];

/** A row with its columns by name, and the name of its instance. Every value is text. */
export type ColumnRow = Readonly<Record<Column | "instance", string>> & {
  readonly [name: string]: string | null;
};

/** Decodes the usage of a row. */
export function decodeUsage(found: Readonly<Record<string, string | null>>): Usage {
  const usage: { [unit: string]: number } = {};
  for (const unit of UNIT_COLUMNS) {
    const many = found[unit] ?? null;
    if (many !== null) usage[unit] = Number(many);
  }
  const others = found["usage"] ?? null;
  return others === null ? usage : { ...usage, ...(JSON.parse(others) as Usage) };
}

/** Decodes a row from its columns. */
export function decodeColumns(found: ColumnRow): LedgerRow {
  const kind = ROW_KINDS[Number(found.kind)]!;
  const text = found as Readonly<Record<string, string | null>>;
  const {
    protocol = null,
    privacy = "off",
    clientRequest,
    job,
  } = parseOptional<TermsExtra>(text["how"]);
  const {
    meterAmounts = [],
    request,
    n,
    ...rest
  } = { ...parseAttemptId(found.attempt), ...parseOptional<RowRest>(text["rest"]) };
  const nano = (text: string | null) => (text === null ? null : BigInt(text));
  const optional = (text: string | null) => text ?? undefined;
  return {
    ...NO_SETTLE_FIELDS,
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
    clientRequest:
      clientRequest &&
      ({ protocol, ...clientRequest, frontend: found.frontend } as ClientRequestInfo),
    meterAmounts,
    holdNano: nano(found.hold),
    usage: decodeUsage(found),
    costNano: nano(found.cost),
    state: found.state as LedgerRow["state"],
    outcome: found.outcome,
    upstreamId: optional(found.upstream_id),
    ...(job !== undefined && { job }),
  };
}

const parseOptional = <T extends object>(text: string | null | undefined): Partial<T> =>
  text === null || text === undefined ? {} : fromJson<T>(text);

/**
 * Returns the part of a chain line that covers the terms.
 * @param columns Terms in column order, with the salts. Labels without salts are hashes.
 */
export function termsChainLine(columns: ColumnValues): string {
  const [labels, salts] = [columns[LABELS_INDEX] ?? null, columns[SALT_INDEX] ?? null];
  const hashes = labels === null || salts === null ? labels : hashLabels(labels, salts);
  let line = "";
  for (let i = 0; i < LABELS_INDEX; i++) line += encodeChainField(columns[i]!);
  return (
    line + encodeChainField(typeof hashes === "string" ? hashes : hashes && JSON.stringify(hashes))
  );
}

const LABELS_INDEX = TERMS_COLUMNS.indexOf("labels");
const SALT_INDEX = TERMS_COLUMNS.indexOf("salt");
const encodeChainField = (column: string | null): string =>
  column === null ? "\0" : `=${column}\0`;

/** Returns the chain line of a row with all its columns. */
export const rowChainLine = (columns: ColumnValues): string =>
  chainLine(columns) + termsChainLine(columns.slice(ROW_COLUMNS.length));

/** Returns the chain line of a note. */
export const noteChainLine = (kind: string, id: string, text: string, salt: string): string =>
  hashedNoteChainLine(kind, id, hashOrErased(salt, text));

/** Returns the chain line of a note from the hash of its text. */
export const hashedNoteChainLine = (kind: string, id: string, proved: string): string =>
  encodeChainField(kind) + encodeChainField(id) + encodeChainField(proved);

/** Returns the hash of a batch of a node, from the previous hash and the chain lines. */
export const hashBatch = (head: Uint8Array, lines: readonly string[]): Buffer =>
  createHash("sha256").update(head).update(lines.join("")).digest();

/** Returns the hash of the chain of all nodes' batches, from the previous hash and a batch. */
export function chainLink(head: Uint8Array, node: number, n: number, batch: Uint8Array): Buffer {
  const number = Buffer.alloc(12);
  number.writeInt32BE(node, 0);
  number.writeBigInt64BE(BigInt(n), 4);
  return createHash("sha256").update(head).update(number).update(batch).digest();
}
