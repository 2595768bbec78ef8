// Imports keys from another gateway's export: a JSON list, or a CSV with a header line. The export
// contains the SHA-256 of each key. Limits and models are read from the field names that exports
// use, and unknown fields are reported.
import { readFile } from "node:fs/promises";
import {
  fail,
  formatLimit,
  parseLimit,
  type Json,
  type JsonObject,
  type Limit,
} from "tollgate/plugin";
import { parseNano, shiftDecimal } from "./amounts.ts";

/** A key as `tollgate keys import` reads it. */
export type ImportedKey = JsonObject;

export interface ImportedKeys {
  /** Keys as `keys.import` accepts them. */
  readonly keys: readonly ImportedKey[];
  readonly warnings: readonly string[];
  /** The original record of each key, in the same order. */
  readonly records: readonly JsonObject[];
}

const MAX_FILE_BYTES = 64 << 20;

export async function readImportedKeys(
  file: string,
  account: string | undefined,
): Promise<ImportedKeys> {
  const bytes = await readFile(file);
  if (bytes.length > MAX_FILE_BYTES) fail("too_large", `${file} is larger than 64 MiB.`);
  const text = bytes.toString();
  const records = /^\s*[[{]/.test(text) ? parseRecords(text, file) : parseCsv(text);
  const unread = new Set<string>();
  const remarks: string[] = [];
  const keys = records.map((record, i) =>
    toKeyInput(record, `${file}: key ${i + 1}`, { account, unread, remarks }),
  );
  if (unread.size > 0) remarks.push(`Fields that were not read: ${[...unread].sort().join(", ")}.`);
  return { keys, warnings: remarks, records };
}

function parseRecords(text: string, file: string): readonly JsonObject[] {
  const notJson = (): never => fail("invalid", `${file} must be JSON.`, { code: "usage" });
  const parsed = tryParseJson(text) ?? notJson();
  const list = Array.isArray(parsed) ? parsed : ((parsed as { keys?: Json }).keys ?? notJson());
  if (!Array.isArray(list)) return notJson();
  return list.map((each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? (each as JsonObject)
      : notJson(),
  );
}

const tryParseJson = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
};

/** Field names in exports. The first field that has a value is used. */
const FIELD_NAMES = {
  digest: ["digest", "token", "keyHash", "key_hash", "hash"],
  name: ["name", "key_alias", "alias", "key_name"],
  models: ["models"],
  frontends: ["frontends"],
  privacy: ["privacy"],
  expires: ["expires", "expires_at", "expiresAt"],
  labels: ["labels"],
  limits: ["limits"],
  budget: ["max_budget", "budget"],
  span: ["budget_duration"],
  spent: ["spend", "spent"],
  requests: ["rpm_limit", "rpm"],
  tokens: ["tpm_limit", "tpm"],
  concurrent: ["max_parallel_requests", "concurrent"],
  account: ["account"],
  ended: ["blocked", "revoked"],
} as const satisfies Readonly<Record<string, readonly string[]>>;
const KNOWN_FIELDS: ReadonlySet<string> = new Set(Object.values(FIELD_NAMES).flat());

function toKeyInput(
  record: JsonObject,
  where: string,
  of: { account: string | undefined; unread: Set<string>; remarks: string[] },
): JsonObject {
  const readField = (what: keyof typeof FIELD_NAMES): Json | undefined => {
    for (const name of FIELD_NAMES[what]) {
      const value = record[name];
      if (value !== undefined && value !== null && value !== "") return value;
    }
    return undefined;
  };
  for (const [name, value] of Object.entries(record))
    if (!KNOWN_FIELDS.has(name) && !isEmpty(value)) of.unread.add(name);
  const key: { [name: string]: Json | undefined } = {
    digest: parseDigest(readField("digest"), where),
    name: toText(readField("name")),
    models: parseList(readField("models")),
    frontends: parseList(readField("frontends")),
    privacy: readField("privacy"),
    account: of.account ?? toText(readField("account")),
    expires: parseTime(readField("expires"), where),
    labels: parseObject(readField("labels")),
    limits: [...readLimits(readField, where, of.remarks)],
    spent: parseSpent(readField("spent"), where),
    revoked: readField("ended") === true || readField("ended") === "true" || undefined,
  };
  return Object.fromEntries(
    Object.entries(key).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  );
}

const isEmpty = (value: Json | undefined): boolean =>
  value === null ||
  value === undefined ||
  value === "" ||
  value === "{}" ||
  value === "[]" ||
  (typeof value === "object" && Object.keys(value).length === 0);

/**
 * Parses a digest, which some exports write as "sha256:<hex>" and other exports write as hex. A
 * literal key is rejected, because keys should not be stored in files.
 */
function parseDigest(value: Json | undefined, where: string): string {
  const hex = String(value ?? "")
    .replace(/^sha256:/, "")
    .toLowerCase();
  return /^[0-9a-f]{64}$/.test(hex)
    ? hex
    : fail("invalid", `${where} must contain the SHA-256 of its key as 64 hexadecimal digits.`, {
        code: "usage",
      });
}

const toText = (value: Json | undefined): string | undefined =>
  value === undefined ? undefined : String(value).slice(0, 200);

/**
 * Parses a list, its JSON, or comma-separated names. Returns undefined for an empty list, because
 * it means no restriction in exports.
 */
function parseList(value: Json | undefined): string[] | undefined {
  const list = Array.isArray(value) ? value : parseTextList(value);
  const names = list.map(String).filter((each) => each !== "" && each !== "*");
  return names.length > 0 ? names : undefined;
}
function parseTextList(value: Json | undefined): readonly Json[] {
  if (typeof value !== "string") return [];
  const list = value.startsWith("[") ? tryParseJson(value) : undefined;
  return Array.isArray(list)
    ? list
    : value
        .replace(/^\{|\}$/g, "")
        .split(",")
        .map((each) => each.trim());
}

function parseObject(value: Json | undefined): JsonObject | undefined {
  const object = typeof value === "string" ? tryParseJson(value) : value;
  return typeof object === "object" && object !== null && !Array.isArray(object)
    ? (object as JsonObject)
    : undefined;
}

function parseTime(value: Json | undefined, where: string): number | undefined {
  if (value === undefined) return undefined;
  const at = typeof value === "number" ? value : Date.parse(String(value));
  return Number.isFinite(at)
    ? at
    : fail("invalid", `Invalid expiry date "${String(value)}" in ${where}.`, {
        code: "usage",
      });
}

/**
 * Periods of limits. In exports, they start when a key is created or reset. In Tollgate, they
 * follow the calendar.
 */
const WINDOWS: Readonly<Record<string, Limit["per"]>> = {
  "1h": "hour",
  "24h": "day",
  "1d": "day",
  "7d": "week",
  "1w": "week",
  "28d": "month",
  "30d": "month",
  "31d": "month",
  "1mo": "month",
  "1M": "month",
};

function* readLimits(
  readField: (
    what: "limits" | "budget" | "span" | "requests" | "tokens" | "concurrent",
  ) => Json | undefined,
  where: string,
  remarks: string[],
): Generator<string, void> {
  const own = readField("limits");
  for (const each of Array.isArray(own) ? own : parseTextList(own))
    if (each !== "") yield checkedLimit(each, where);
  const budget = readField("budget");
  if (budget !== undefined) {
    const span = readField("span");
    const per = span === undefined ? "total" : WINDOWS[String(span)];
    if (per === undefined)
      remarks.push(`${where}: a budget for ${String(span)} is counted by the calendar month.`);
    const limit = formatLimit({
      unit: "nano_usd",
      max: toNano(budget, where),
      per: per ?? "month",
    });
    if (parseLimit(limit)) yield limit;
    else remarks.push(`${where}: a budget of ${String(budget)} dollars is too large for a limit.`);
  }
  for (const unit of ["requests", "tokens", "concurrent"] as const) {
    const max = readField(unit);
    if (max !== undefined)
      yield checkedLimit(formatLimit({ unit, max: Math.floor(Number(max)), per: "minute" }), where);
  }
}

/** Returns the text of a limit that the export has as a mapping. */
function limitText(value: Json): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const { unit, max, per } = value as JsonObject;
  const text = `${String(unit)}=${String(max)}${unit === "concurrent" ? "" : `/${String(per)}`}`;
  return parseLimit(text) && text;
}

const checkedLimit = (limit: Json, where: string): string =>
  typeof limit === "string" && parseLimit(limit)
    ? limit
    : fail(
        "invalid",
        `Invalid limit ${JSON.stringify(limit)} in ${where}: write ${limitText(limit) ?? "it as usd=300/month"}.`,
        { code: "usage" },
      );

/**
 * Returns a key in the form of keys.json. `importedKeys` converts it back to the same key. Amounts
 * are decimal dollars.
 * @param key A key as `keys.import` accepts it.
 */
export function toKeysJson(key: JsonObject): JsonObject {
  const { spent, ...rest } = key;
  return spent === undefined ? key : { ...rest, spent: shiftDecimal(String(spent), -9)! };
}

/** Parses the spending in the current period. Exports reset it when a new period begins. */
function parseSpent(value: Json | undefined, where: string): number | undefined {
  const spent = value === undefined ? 0 : Number(toNano(value, where));
  return spent > 0 ? spent : undefined;
}

/**
 * Converts to nano-dollars. The result is rounded, because exports contain floating-point numbers
 * with more digits.
 */
function toNano(value: Json, where: string): bigint {
  return (
    parseNano(String(value)) ??
    fail("invalid", `Invalid amount "${String(value)}" in ${where}.`, { code: "usage" })
  );
}

// Parses CSV as in RFC 4180: comma-separated cells, quoted if they contain a comma, a quote, or a
// line end. One pass, character by character.

/** Returns each line as an object whose keys are the cells of the first line. */
export function parseCsv(text: string): Record<string, string>[] {
  const [names, ...lines] = parseCells(text.replace(/^\uFEFF/, ""));
  if (!names) return [];
  return lines
    .filter((line) => line.length > 1 || line[0] !== "")
    .map((line) => Object.fromEntries(names.map((name, i) => [name.trim(), line[i] ?? ""])));
}

function parseCells(text: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  let at = 0;
  while (at < text.length) {
    const [cell, end] = text[at] === '"' ? readQuotedCell(text, at) : readPlainCell(text, at);
    line.push(cell);
    at = end;
    if (text[at] === ",") {
      at++;
      if (at === text.length) line.push("");
      continue;
    }
    if (text[at] === "\r") at++;
    if (text[at] === "\n") at++;
    lines.push(line);
    line = [];
  }
  if (line.length > 0) lines.push(line);
  return lines;
}

const CELL_END = /[,\r\n]/g;

function readPlainCell(text: string, from: number): [string, number] {
  CELL_END.lastIndex = from;
  const end = CELL_END.exec(text)?.index ?? text.length;
  return [text.slice(from, end), end];
}

function readQuotedCell(text: string, from: number): [string, number] {
  const parts: string[] = [];
  for (let at = from + 1; ;) {
    const end = text.indexOf('"', at);
    if (end < 0)
      return fail("invalid", "Invalid CSV: a quoted cell is not closed.", { code: "usage" });
    parts.push(text.slice(at, end));
    if (text[end + 1] !== '"') return [parts.join('"'), end + 1];
    at = end + 2;
  }
}
