// Permanently erases personal data: label texts in rows and rollups, and key and account records
// with their earlier versions. Rows keep the hashes that the chain covers. A table lists the hashes
// without text, and a note in the chain records their number.
import type { AccountRecord, ErasureResult, ErasureRequest, KeyRecord } from "tollgate/plugin";
import {
  fromJson,
  toJson,
  hashSet,
  toErasedSalt,
  hashLabel,
  isErasedSalt,
  hashOrErased,
  ERASED,
  redactRecord,
  textFilter,
  type LabelTexts,
} from "tollgate/store";
import { type ErasureNote } from "../schema/erased-hashes.ts";
import type { RunSql, SqlQuery, Row } from "../connection/pipelined-connection.ts";
import { numberArray, textArray } from "../connection/array-literal.ts";
import type { Writer } from "../writer-interface.ts";

/** Maximum number of label sets per statement. */
const LABELS_PER_STATEMENT = 1_000;
/** Maximum time to wait until other gateways have seen the change, in milliseconds. */
const PROPAGATION_TIMEOUT_MS = 3_000;

export async function erase(
  sql: RunSql,
  schema: string,
  writer: Pick<Writer, "appendNotes" | "refreshLabels">,
  what: ErasureRequest,
): Promise<ErasureResult> {
  const all = new Set<string>();
  const once = async (): Promise<void> => {
    const sayings = await findLabelErasures(sql, schema, what);
    const notes = await findNoteErasures(sql, schema, what);
    const hashes = [
      ...new Set([
        ...sayings.flatMap(({ erasedHashes }) => erasedHashes),
        ...notes.map(({ proved }) => proved),
      ]),
    ];
    if (hashes.length === 0) return;
    await writeErasureNotes(sql, schema, writer, what, hashes);
    for (let i = 0; i < sayings.length; i += LABELS_PER_STATEMENT)
      await sql(erasureQuery(schema, sayings.slice(i, i + LABELS_PER_STATEMENT)));
    await sql({
      text: `SELECT ${schema}.erase_notes_1($1::int[], $2::bigint[], $3::int[], $4::text[])`,
      values: [
        numberArray(notes.map(({ node }) => node)),
        numberArray(notes.map(({ n }) => n)),
        numberArray(notes.map(({ i }) => i)),
        textArray(notes.map(({ proved }) => toErasedSalt(proved))),
      ],
    });
    await writer.refreshLabels();
    for (const its of hashes) all.add(its);
  };
  await once();
  // A gateway with an open call, possibly this one, may have settled the call with the old labels.
  // The erasure is therefore repeated.
  if (all.size > 0) {
    await waitForPropagation(sql, schema);
    await once();
  }
  return { hashes: [...all] };
}

interface LabelErasure {
  readonly key: string;
  readonly labels: string;
  readonly newLabels: string;
  /** Rows of terms with these labels, each with its new salts. */
  readonly terms: readonly (readonly [of: Row, gone: string])[];
  /** Hashes that have no text afterwards. */
  readonly erasedHashes: readonly string[];
}

/** Builds the statement that erases labels in the database. */
function erasureQuery(schema: string, sayings: readonly LabelErasure[]): SqlQuery {
  const all = sayings.flatMap(({ terms }, i) =>
    terms.map(([of, gone]) => ({ index: i + 1, of, gone })),
  );
  return {
    text: `SELECT ${schema}.erase_1($1::text[], $2::text[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::text[], $8::text[])`,
    values: [
      textArray(sayings.map(({ key }) => key)),
      textArray(sayings.map(({ labels }) => labels)),
      textArray(sayings.map(({ newLabels }) => newLabels)),
      numberArray(all.map(({ index }) => index)),
      numberArray(all.map(({ of }) => of["node"]!)),
      numberArray(all.map(({ of }) => of["id"]!)),
      textArray(all.map(({ of }) => of["salt"]!)),
      textArray(all.map(({ gone }) => gone)),
    ],
  };
}

/** Finds each set of labels to erase, with all terms that have it. */
async function findLabelErasures(
  sql: RunSql,
  schema: string,
  what: ErasureRequest,
): Promise<readonly LabelErasure[]> {
  const [where, values] =
    "key" in what
      ? ["e.key = $1", [what.key]]
      : "label" in what
        ? ["e.labels::json ->> $1 = $2", [what.label.name, what.label.value]]
        : ["hashes" in what ? "true" : "false", []];
  const rows = await sql({
    text: `SELECT e.node, e.id, e.key, e.labels, e.salt FROM ${schema}.terms e WHERE e.labels IS NOT NULL AND e.salt IS NOT NULL AND ${where}`,
    values: values as string[],
  });
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const id = JSON.stringify([row["key"], row["labels"]]);
    const group = groups.get(id);
    if (group) group.push(row);
    else groups.set(id, [row]);
  }
  return [...groups.values()].flatMap((group) => toLabelErasure(group, what) ?? []);
}

function toLabelErasure(group: readonly Row[], what: ErasureRequest): LabelErasure | undefined {
  const { key, labels } = group[0]!;
  const labelTexts = JSON.parse(labels!) as LabelTexts;
  const values = "hashes" in what ? new Set(what.hashes) : undefined;
  const all = group.map(({ salt }) => JSON.parse(salt!) as LabelTexts);
  const names = Object.keys(labelTexts).filter(
    (name) =>
      all.some((salts) => !isErasedSalt(salts[name] ?? "")) &&
      (values
        ? all.some((salts) => values.has(hashLabel(salts[name] ?? "", labelTexts[name]!)))
        : "key" in what || ("label" in what && name === what.label.name)),
  );
  if (names.length === 0) return undefined;
  const gone = new Set<string>();
  const news = all.map((salts) => {
    const changed: Record<string, string> = { ...salts };
    for (const name of names) {
      const its = hashLabel(salts[name] ?? "", labelTexts[name]!);
      gone.add(its);
      changed[name] = toErasedSalt(its);
    }
    return JSON.stringify(changed);
  });
  const now = { ...labelTexts, ...Object.fromEntries(names.map((name) => [name, ERASED])) };
  return {
    key: key!,
    labels: labels!,
    newLabels: JSON.stringify(now),
    terms: group.map((of, i) => [of, news[i]!] as const),
    erasedHashes: [...gone],
  };
}

interface NoteErasure {
  readonly node: number;
  readonly n: number;
  readonly i: number;
  readonly proved: string;
}

/**
 * Finds the notes of records with the data to erase. They include the newest note of each record,
 * which is written again without the data.
 */
async function findNoteErasures(
  sql: RunSql,
  schema: string,
  what: ErasureRequest,
): Promise<readonly NoteErasure[]> {
  const rows = await sql({
    text: `SELECT node, n, i, kind, text, salt FROM ${schema}.note WHERE kind IN ('key', 'account') AND text <> ''`,
  });
  return rows.flatMap((row) => {
    const proved = hashOrErased(row["salt"]!, row["text"]!);
    const record = fromJson<KeyRecord | AccountRecord>(row["text"]!);
    const goes =
      "hashes" in what
        ? what.hashes.includes(proved)
        : redact(record, row["kind"] as "key" | "account", what) !== undefined;
    return goes
      ? [{ node: Number(row["node"]), n: Number(row["n"]), i: Number(row["i"]), proved }]
      : [];
  });
}

/** Returns the redacted record, or undefined if it does not contain the data. */
const redact = <R extends KeyRecord | AccountRecord>(
  record: R,
  kind: "key" | "account",
  what: ErasureRequest,
): R | undefined => redactRecord(record, textFilter(what, kind, record.id) ?? (() => true));

/** Writes the redacted records, and a note with the number of hashes without text. */
async function writeErasureNotes(
  sql: RunSql,
  schema: string,
  writer: Pick<Writer, "appendNotes">,
  what: ErasureRequest,
  hashes: readonly string[],
): Promise<void> {
  const changed = await findRedactedRecords(sql, schema, what, new Set(hashes));
  const known = await sql({
    text: `SELECT hash FROM ${schema}.erased WHERE hash = ANY ($1::text[])`,
    values: [textArray(hashes)],
  });
  const there = new Set(known.map((row) => row["hash"]));
  const fresh = hashes.filter((its) => !there.has(its));
  const id = crypto.randomUUID();
  const at = Date.now();
  await writer.appendNotes({
    notes: [
      ...changed.map(({ kind, id: of, text }) => ({ kind, id: of, at, text })),
      {
        kind: "erased",
        id,
        at,
        text: JSON.stringify({ count: fresh.length, hash: hashSet(fresh) } satisfies ErasureNote),
      },
    ],
    statements: [
      {
        text: `INSERT INTO ${schema}.erased SELECT x.hash, $2 FROM unnest($1::text[]) AS x(hash)`,
        values: [textArray(fresh), id],
      },
      ...changed.map(({ kind, id: of, text }) => ({
        text: `UPDATE ${schema}.${kind} SET record = $2 WHERE ${kind === "key" ? "digest" : "id"} = $1`,
        values: [of, text],
      })),
      {
        text: `UPDATE ${schema}.change_counter SET keys = keys + 1, accounts = accounts + 1, changed = clock_timestamp()`,
      },
    ],
  });
}

interface RedactedRecord {
  readonly kind: "key" | "account";
  readonly id: string;
  readonly text: string;
}

async function findRedactedRecords(
  sql: RunSql,
  schema: string,
  what: ErasureRequest,
  hashes: ReadonlySet<string>,
): Promise<readonly RedactedRecord[]> {
  const changed: RedactedRecord[] = [];
  for (const kind of ["key", "account"] as const) {
    const id = kind === "key" ? "digest" : "id";
    const rows = await sql({
      text: `SELECT r.${id} AS id, r.record, o.salt FROM ${schema}.${kind} r
        LEFT JOIN LATERAL (SELECT n.salt FROM ${schema}.note n WHERE n.kind = $1 AND n.id = r.${id} AND n.text = r.record LIMIT 1) o ON true`,
      values: [kind],
    });
    for (const row of rows) {
      if ("hashes" in what && !hashes.has(hashOrErased(row["salt"] ?? "", row["record"]!)))
        continue;
      const now = redact(fromJson<KeyRecord | AccountRecord>(row["record"]!), kind, what);
      if (!now) continue;
      // Other gateways handle the new version of an account like any other change.
      const record =
        kind === "account" ? { ...now, version: (now as AccountRecord).version + 1 } : now;
      changed.push({ kind, id: row["id"]!, text: toJson(record) });
    }
  }
  return changed;
}

/** Waits until all live gateways have seen the change, or until the timeout. */
async function waitForPropagation(sql: RunSql, schema: string): Promise<void> {
  for (const until = performance.now() + PROPAGATION_TIMEOUT_MS; ;) {
    const [row] = await sql({
      text: `SELECT count(*) AS nodes, count(*) FILTER (WHERE w.seen_versions IS DISTINCT FROM f.keys || ' ' || f.accounts) AS late
        FROM ${schema}.node w, ${schema}.change_counter f WHERE w.state = 'live'`,
    });
    if (Number(row!["nodes"]) <= 1) return;
    if (row!["late"] === "0" || performance.now() > until) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
