// A person is taken out: what labels say, in rows and sums of days, and records of keys and accounts with all that was written of them before. Rows
// keep the hashes that the chain has of it, a table says which hashes stand for nothing any more, and a note in the chain how many these are.
import type { AccountRecord, Erased, Erasure, KeyRecord } from "tollgate/plugin";
import { fromJson, toJson } from "tollgate/store";
import { sumOf, type ErasedNote } from "./erased.ts";
import type { Ask, Question, Row } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { goneOf, hashOfLabel, isGone, provedNote } from "./salts.ts";
import type { Writer } from "./writing-door.ts";

/** What is said in its place. */
const ERASED = "erased";
/** Sayings that go in one statement. */
const AT_ONCE = 1_000;
/** The other gateways hear of it as soon. */
const HEARD_MS = 3_000;

type Labels = Readonly<Record<string, string>>;

export async function erase(
  ask: Ask,
  s: string,
  writer: Pick<Writer, "note" | "remind">,
  what: Erasure,
): Promise<Erased> {
  const all = new Set<string>();
  const once = async (): Promise<void> => {
    const sayings = await sayingsOf(ask, s, what);
    const notes = await notesOf(ask, s, what);
    const hashes = [
      ...new Set([...sayings.flatMap(({ gone }) => gone), ...notes.map(({ proved }) => proved)]),
    ];
    if (hashes.length === 0) return;
    await said(ask, s, writer, what, hashes);
    for (let i = 0; i < sayings.length; i += AT_ONCE)
      await ask(erasing(s, sayings.slice(i, i + AT_ONCE)));
    await ask({
      text: `SELECT ${s}.erase_notes_1($1::int[], $2::bigint[], $3::int[], $4::text[])`,
      values: [
        numbers(notes.map(({ node }) => node)),
        numbers(notes.map(({ n }) => n)),
        numbers(notes.map(({ i }) => i)),
        texts(notes.map(({ proved }) => goneOf(proved))),
      ],
    });
    await writer.remind();
    for (const its of hashes) all.add(its);
  };
  await once();
  // A gateway that had a call open then, this one too, may have settled it in the words of before.
  if (all.size > 0) {
    await heard(ask, s);
    await once();
  }
  return { values: [...all] };
}

interface Saying {
  readonly key: string;
  readonly labels: string;
  readonly now: string;
  /** With what each of its terms has in the place of its salts then. */
  readonly terms: readonly (readonly [of: Row, gone: string])[];
  /** Hashes that stand for nothing then. */
  readonly gone: readonly string[];
}

/** The database's part of it. */
function erasing(s: string, sayings: readonly Saying[]): Question {
  const all = sayings.flatMap(({ terms }, i) =>
    terms.map(([of, gone]) => ({ said: i + 1, of, gone })),
  );
  return {
    text: `SELECT ${s}.erase_1($1::text[], $2::text[], $3::text[], $4::int[], $5::int[], $6::bigint[], $7::text[], $8::text[])`,
    values: [
      texts(sayings.map(({ key }) => key)),
      texts(sayings.map(({ labels }) => labels)),
      texts(sayings.map(({ now }) => now)),
      numbers(all.map(({ said }) => said)),
      numbers(all.map(({ of }) => of["node"]!)),
      numbers(all.map(({ of }) => of["id"]!)),
      texts(all.map(({ of }) => of["salt"]!)),
      texts(all.map(({ gone }) => gone)),
    ],
  };
}

/** Each saying of labels that has to go, with all terms that say it. */
async function sayingsOf(ask: Ask, s: string, what: Erasure): Promise<readonly Saying[]> {
  const [where, values] =
    "key" in what
      ? ["e.key = $1", [what.key]]
      : "label" in what
        ? ["e.labels::json ->> $1 = $2", [what.label.name, what.label.value]]
        : ["true", []];
  const rows = await ask({
    text: `SELECT e.node, e.id, e.key, e.labels, e.salt FROM ${s}.terms e WHERE e.labels IS NOT NULL AND e.salt IS NOT NULL AND ${where}`,
    values: values as string[],
  });
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const id = JSON.stringify([row["key"], row["labels"]]);
    const group = groups.get(id);
    if (group) group.push(row);
    else groups.set(id, [row]);
  }
  return [...groups.values()].flatMap((group) => sayingOf(group, what) ?? []);
}

function sayingOf(group: readonly Row[], what: Erasure): Saying | undefined {
  const { key, labels } = group[0]!;
  const said = JSON.parse(labels!) as Labels;
  const values = "values" in what ? new Set(what.values) : undefined;
  const all = group.map(({ salt }) => JSON.parse(salt!) as Labels);
  const names = Object.keys(said).filter(
    (name) =>
      all.some((salts) => !isGone(salts[name] ?? "")) &&
      (values
        ? all.some((salts) => values.has(hashOfLabel(salts[name] ?? "", name, said[name]!)))
        : "key" in what || ("label" in what && name === what.label.name)),
  );
  if (names.length === 0) return undefined;
  const gone = new Set<string>();
  const news = all.map((salts) => {
    const changed: Record<string, string> = { ...salts };
    for (const name of names) {
      const its = hashOfLabel(salts[name] ?? "", name, said[name]!);
      gone.add(its);
      changed[name] = goneOf(its);
    }
    return JSON.stringify(changed);
  });
  const now = { ...said, ...Object.fromEntries(names.map((name) => [name, ERASED])) };
  return {
    key: key!,
    labels: labels!,
    now: JSON.stringify(now),
    terms: group.map((of, i) => [of, news[i]!] as const),
    gone: [...gone],
  };
}

interface GoneNote {
  readonly node: number;
  readonly n: number;
  readonly i: number;
  readonly proved: string;
}

/** Notes of records that say it, the newest of each among them: that one is written anew without it. */
async function notesOf(ask: Ask, s: string, what: Erasure): Promise<readonly GoneNote[]> {
  const rows = await ask({
    text: `SELECT node, n, i, kind, text, salt FROM ${s}.note WHERE kind IN ('key', 'account') AND text <> ''`,
  });
  return rows.flatMap((row) => {
    const proved = provedNote(row["salt"]!, row["text"]!);
    const record = fromJson<KeyRecord | AccountRecord>(row["text"]!);
    const goes =
      "values" in what
        ? what.values.includes(proved)
        : without(record, row["kind"]!, what) !== undefined;
    return goes
      ? [{ node: Number(row["node"]), n: Number(row["n"]), i: Number(row["i"]), proved }]
      : [];
  });
}

/** A record without it; undefined: it does not say it. */
function without<R extends KeyRecord | AccountRecord>(
  record: R,
  kind: string,
  what: Erasure,
): R | undefined {
  if ("values" in what) return bare(record);
  if ("key" in what) return kind === "key" && record.id === what.key ? bare(record) : undefined;
  const { name, value } = what.label;
  if (record.labels?.[name] !== value || value === ERASED) return undefined;
  return { ...record, labels: { ...record.labels, [name]: ERASED } };
}

function bare<R extends KeyRecord | AccountRecord>(record: R): R | undefined {
  const labels = record.labels && Object.keys(record.labels);
  const says =
    (record.name !== undefined && record.name !== ERASED) ||
    labels?.some((name) => record.labels![name] !== ERASED);
  if (!says) return undefined;
  return {
    ...record,
    ...(record.name !== undefined && { name: ERASED }),
    ...(labels && { labels: Object.fromEntries(labels.map((name) => [name, ERASED])) }),
  };
}

/** Records as they are from now on, and a note of how many hashes stand for nothing. */
async function said(
  ask: Ask,
  s: string,
  writer: Pick<Writer, "note">,
  what: Erasure,
  hashes: readonly string[],
): Promise<void> {
  const changed = await changedOf(ask, s, what, new Set(hashes));
  const known = await ask({
    text: `SELECT hash FROM ${s}.erased WHERE hash = ANY ($1::text[])`,
    values: [texts(hashes)],
  });
  const there = new Set(known.map((row) => row["hash"]));
  const fresh = hashes.filter((its) => !there.has(its));
  const id = crypto.randomUUID();
  const at = Date.now();
  await writer.note({
    notes: [
      ...changed.map(({ kind, id: of, text }) => ({ kind, id: of, at, text })),
      {
        kind: "erased",
        id,
        at,
        text: JSON.stringify({ count: fresh.length, sum: sumOf(fresh) } satisfies ErasedNote),
      },
    ],
    with: [
      {
        text: `INSERT INTO ${s}.erased SELECT x.hash, $2 FROM unnest($1::text[]) AS x(hash)`,
        values: [texts(fresh), id],
      },
      ...changed.map(({ kind, id: of, text }) => ({
        text: `UPDATE ${s}.${kind} SET record = $2 WHERE ${kind === "key" ? "digest" : "id"} = $1`,
        values: [of, text],
      })),
      {
        text: `UPDATE ${s}.fleet SET keys = keys + 1, accounts = accounts + 1, changed = clock_timestamp()`,
      },
    ],
  });
}

interface Changed {
  readonly kind: "key" | "account";
  readonly id: string;
  readonly text: string;
}

async function changedOf(
  ask: Ask,
  s: string,
  what: Erasure,
  hashes: ReadonlySet<string>,
): Promise<readonly Changed[]> {
  const changed: Changed[] = [];
  for (const kind of ["key", "account"] as const) {
    const id = kind === "key" ? "digest" : "id";
    const rows = await ask({
      text: `SELECT r.${id} AS id, r.record, o.salt FROM ${s}.${kind} r
        LEFT JOIN LATERAL (SELECT n.salt FROM ${s}.note n WHERE n.kind = $1 AND n.id = r.${id} AND n.text = r.record LIMIT 1) o ON true`,
      values: [kind],
    });
    for (const row of rows) {
      if ("values" in what && !hashes.has(provedNote(row["salt"] ?? "", row["record"]!))) continue;
      const now = without(fromJson<KeyRecord | AccountRecord>(row["record"]!), kind, what);
      if (!now) continue;
      // To other gateways an account's new version is a change like any other.
      const record =
        kind === "account" ? { ...now, version: (now as AccountRecord).version + 1 } : now;
      changed.push({ kind, id: row["id"]!, text: toJson(record) });
    }
  }
  return changed;
}

/** Resolves when all gateways that live have heard of it. */
async function heard(ask: Ask, s: string): Promise<void> {
  for (const until = performance.now() + HEARD_MS; ;) {
    const [row] = await ask({
      text: `SELECT count(*) AS nodes, count(*) FILTER (WHERE w.seen IS DISTINCT FROM f.keys || ' ' || f.accounts) AS late
        FROM ${s}.node w, ${s}.fleet f WHERE w.state = 'live'`,
    });
    if (Number(row!["nodes"]) <= 1) return;
    if (row!["late"] === "0" || performance.now() > until) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
