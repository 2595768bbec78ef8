// Verifies the whole ledger: the chain of each node, the global chain, the amounts that open calls
// reserve, and the key and account records.
import type { Problem } from "tollgate/plugin";
import { hashBatch, noteChainLine, termsChainLine, TERMS_COLUMNS } from "tollgate/store";
import { parseBytea } from "../write/slow-path.ts";
import { awaitAll } from "../connection/await-all.ts";
import {
  verifyCheckpoint,
  readCheckpoint,
  type NodeAnchor,
  type Checkpoint,
} from "../retention/checkpoint.ts";
import { parseMeterId } from "../rows/batch-plan.ts";
import { verifyErasures, isErasedWithoutRecord } from "../schema/erased-hashes.ts";
import type { RunSql, Row } from "../connection/pipelined-connection.ts";
import { readChain } from "../read/global-chain.ts";
import { numberArray } from "../connection/array-literal.ts";
import { storedReservedAmounts } from "../rows/line-amounts.ts";
import { CHAIN_LINE_SQL } from "../rows/row-sql.ts";

/**
 * Number of batches per read. Larger reads keep rows in memory for longer, and most of the time is
 * spent on garbage collection.
 */
const BATCHES_PER_READ = 100;
/** Number of reads that run in advance while one result is processed. */
const READ_AHEAD = 2;
/** Maximum number of terms in memory. */
const MAX_TERMS = 100_000;
/** Maximum number of problems to list. */
const MAX_PROBLEMS = 100;

/**
 * Maximum number of runs. Rows that are compacted or erased during a run look like lost rows, so
 * the run is repeated.
 */
const MAX_TRIES = 3;

export async function verifyLedger(
  sql: RunSql,
  schema: string,
  numbered: () => Promise<void>,
): Promise<readonly Problem[]> {
  await numbered();
  for (let tries = 1; ; tries++) {
    const before = await changeMarker(sql, schema);
    const problems = await verifyOnce(sql, schema);
    if (
      problems.length === 0 ||
      tries === MAX_TRIES ||
      before === (await changeMarker(sql, schema))
    )
      return problems;
  }
}

/** Returns a marker that changes with every compaction and erasure. */
async function changeMarker(sql: RunSql, schema: string): Promise<string> {
  const [row] = await sql({
    text: `SELECT json_build_array((SELECT next_seq FROM ${schema}.checkpoint), (SELECT rollups FROM ${schema}.checkpoint), (SELECT count(*) FROM ${schema}.erased))::text AS it`,
  });
  return row!["it"]!;
}

async function verifyOnce(sql: RunSql, schema: string): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  const say = (path: string, message: string) =>
    void (problems.length < MAX_PROBLEMS && problems.push({ path, message }));
  const nodes = await sql({ text: `SELECT epoch, id, n, head FROM ${schema}.node ORDER BY epoch` });
  for await (const { path, message } of verifyCheckpoint(sql, schema)) say(path, message);
  const base = await readCheckpoint(sql, schema).catch(() => undefined);
  const anchors = new Map(base?.anchors.map((anchor) => [anchor[0], anchor]));
  const gone = await verifyErasures(sql, schema, ({ path, message }) => say(path, message));
  for (const node of nodes)
    await verifyNodeChain(
      sql,
      schema,
      node,
      { since: anchors.get(Number(node["epoch"])), gone },
      say,
    );
  await verifyGlobalChain(sql, schema, base, say);
  await verifyHeldAmounts(sql, schema, say);
  await verifyRecords(sql, schema, say);
  return problems;
}

type AddProblem = (path: string, message: string) => void;

/**
 * Verifies the chain of a node. `since` is where the chain continues after a compaction. `gone`
 * contains the hashes of erased texts.
 */
async function verifyNodeChain(
  sql: RunSql,
  schema: string,
  node: Row,
  { since, gone }: { since: NodeAnchor | undefined; gone: ReadonlySet<string> },
  say: AddProblem,
): Promise<void> {
  const [epoch, id, upTo] = [node["epoch"]!, node["id"]!, Number(node["n"])];
  let n = since?.[1] ?? 0;
  let head: Buffer = Buffer.from(since?.[2] ?? "", "hex");
  const terms = new TermsVerifier(sql, schema, epoch, gone);
  const takenOut = (at: string) =>
    say(`/node/${id}/${at}`, "A text was removed without a recorded erasure.");
  for await (const { batches, entries, notes } of readNodeBatches(sql, schema, epoch, {
    from: n,
    upTo,
  })) {
    await terms.read(entries);
    for (const { n: at, salt } of notes) if (isErasedWithoutRecord(salt!, gone)) takenOut(at!);
    for (const { n: at, terms: its } of entries) if (terms.get(its!).isTakenOut) takenOut(at!);
    const lines = chainLines(entries, notes, terms);
    for (const batch of batches) {
      if (Number(batch["n"]) !== n + 1) {
        say(`/node/${id}/${n + 1}`, "The batch is missing.");
        n = Number(batch["n"]) - 1;
      }
      n++;
      const computed = lines.get(String(n)) ?? { lines: [], entries: 0 };
      const hash = parseBytea(batch["hash"]!);
      if (computed.entries !== Number(batch["entries"]))
        say(
          `/node/${id}/${n}`,
          `The batch has ${computed.entries} rows, but was written with ${batch["entries"]}.`,
        );
      else if (!hashBatch(head, computed.lines).equals(hash))
        say(
          `/node/${id}/${n}`,
          "The batch or the batch before it was changed after it was written.",
        );
      lines.delete(String(n));
      head = hash;
    }
    for (const other of lines.keys())
      say(`/node/${id}/${other}`, "Rows belong to a batch that was never written.");
  }
  const [last] = await sql({
    text: `SELECT n, greatest(${["batch", "ledger_row", "note"].map((name) => `(SELECT max(o.n) FROM ${schema}.${name} o WHERE o.node = w.epoch)`).join(", ")}) AS last
      FROM ${schema}.node w WHERE epoch = $1`,
    values: [epoch],
  });
  const there = n < upTo ? n : Number(last?.["last"] ?? n);
  if (n < upTo || Number(last?.["n"]) < there)
    say(
      `/node/${id}`,
      `The gateway wrote ${last?.["n"]} batches, but ${there} are in the database.`,
    );
}

interface BatchRead {
  readonly batches: readonly Row[];
  readonly entries: readonly Row[];
  readonly notes: readonly Row[];
}

/**
 * Yields the batches of a node after `from` up to `upTo`, with their rows and notes. Reads ahead
 * while the caller processes results. The upper bound excludes batches that are written during the
 * run, because they could be read incompletely.
 */
async function* readNodeBatches(
  sql: RunSql,
  schema: string,
  epoch: string,
  { from, upTo }: { readonly from: number; readonly upTo: number },
): AsyncGenerator<BatchRead, void> {
  const read = async (after: number): Promise<BatchRead> => {
    const values = [epoch, after, Math.min(after + BATCHES_PER_READ, upTo)];
    const of = "WHERE node = $1 AND n > $2 AND n <= $3 ORDER BY n";
    const [batches, entries, notes] = await awaitAll([
      sql({ text: `SELECT n, hash, entries FROM ${schema}.batch ${of}`, values }),
      sql({
        text: `SELECT n, terms, ${CHAIN_LINE_SQL} AS line FROM ${schema}.ledger_row e ${of}, i`,
        values,
      }),
      sql({ text: `SELECT n, kind, id, text, salt FROM ${schema}.note ${of}, i`, values }),
    ]);
    return { batches: batches!, entries: entries!, notes: notes! };
  };
  const ahead: Promise<BatchRead>[] = [];
  for (let after = from; after < upTo || ahead.length > 0; after += BATCHES_PER_READ) {
    if (after < upTo) {
      const next = read(after);
      // The promise is awaited later, or never if the caller stops.
      next.catch(() => undefined);
      ahead.push(next);
    }
    if (ahead.length > READ_AHEAD || after >= upTo) yield await ahead.shift()!;
  }
}

/** The terms of a node that its rows refer to, in the form that the chain covers. */
class TermsVerifier {
  readonly #byId = new Map<string, { readonly line: string; readonly isTakenOut: boolean }>();
  readonly #sql: RunSql;
  readonly #schema: string;
  readonly #epoch: string;
  readonly #erasedHashes: ReadonlySet<string>;

  constructor(sql: RunSql, schema: string, epoch: string, gone: ReadonlySet<string>) {
    this.#sql = sql;
    this.#schema = schema;
    this.#epoch = epoch;
    this.#erasedHashes = gone;
  }

  async read(entries: readonly Row[]): Promise<void> {
    if (this.#byId.size > MAX_TERMS) this.#byId.clear();
    const missing = new Set(entries.map(({ terms }) => terms!).filter((id) => !this.#byId.has(id)));
    if (missing.size === 0) return;
    const rows = await this.#sql({
      text: `SELECT id, ${TERMS_COLUMNS.join(", ")} FROM ${this.#schema}.terms WHERE node = $1 AND id = ANY ($2::bigint[])`,
      values: [this.#epoch, numberArray([...missing])],
    });
    for (const row of rows)
      this.#byId.set(row["id"]!, {
        line: termsChainLine(TERMS_COLUMNS.map((name) => row[name]!)),
        // Labels always have a salt. Without this check, an attacker could replace labels by the
        // hashes in the chain.
        isTakenOut:
          (row["labels"] !== null && row["salt"] === null) ||
          isErasedWithoutRecord(row["salt"]!, this.#erasedHashes),
      });
  }

  get(id: string) {
    return this.#byId.get(id) ?? MISSING_TERMS;
  }
}

/** Placeholder for terms that do not exist. Their empty line makes the hash of the batch differ. */
const MISSING_TERMS = { line: "", isTakenOut: false };

interface BatchLines {
  readonly lines: string[];
  entries: number;
}

function chainLines(
  entries: readonly Row[],
  notes: readonly Row[],
  terms: TermsVerifier,
): Map<string, BatchLines> {
  const of = new Map<string, BatchLines>();
  const at = (n: string): BatchLines => {
    let found = of.get(n);
    if (!found) of.set(n, (found = { lines: [], entries: 0 }));
    return found;
  };
  for (const row of entries) {
    const found = at(row["n"]!);
    found.entries++;
    found.lines.push(row["line"]! + terms.get(row["terms"]!).line);
  }
  for (const { n, kind, id, text, salt } of notes)
    at(n!).lines.push(noteChainLine(kind!, id!, text!, salt!));
  return of;
}

/** Verifies the global chain of all batches, in sequence order. */
async function verifyGlobalChain(
  sql: RunSql,
  schema: string,
  base: Checkpoint | undefined,
  say: AddProblem,
): Promise<void> {
  const [chain] = await sql({ text: `SELECT next_seq, head FROM ${schema}.chain` });
  let head: Buffer = Buffer.from(base?.link ?? "", "hex");
  const to = Number(chain!["next_seq"]);
  for await (const stretch of readChain(sql, schema, { from: base?.nextSeq ?? 0, to, head })) {
    head = stretch.head;
    if (stretch.breakMessage !== undefined)
      return say(
        `/entries/${stretch.breakMessage}`,
        "The chain of all batches is broken at this batch.",
      );
  }
  const [now] = await sql({ text: `SELECT next_seq, head FROM ${schema}.chain` });
  if (
    now!["next_seq"] === chain!["next_seq"] &&
    now!["head"] === chain!["head"] &&
    !parseBytea(chain!["head"]!).equals(head)
  )
    say("/entries", "The chain of all batches was truncated.");
}

/**
 * Compares the reserved amounts of meters with the sums over open calls and budget leases, in one
 * snapshot.
 */
async function verifyHeldAmounts(sql: RunSql, schema: string, say: AddProblem): Promise<void> {
  const [row] = await sql({
    text: `SELECT (SELECT coalesce(json_agg(json_build_array(id, reserved::text)), '[]') FROM ${schema}.meter WHERE reserved <> 0) AS meters,
      (SELECT coalesce(json_agg(json_build_array(e.rest, o.line_amounts)), '[]') FROM ${schema}.open_call o
        JOIN ${schema}.ledger_row e ON e.attempt = o.attempt AND e.started_at = o.started_at AND e.kind = 0) AS open,
      (SELECT coalesce(json_agg(json_build_array(meter, (amount + spent)::text)), '[]') FROM ${schema}.budget_lease) AS slices`,
  });
  const held = new Map<string, bigint>();
  for (const open of JSON.parse(row!["open"]!) as [string | null, string | null][])
    for (const [id, amount] of storedReservedAmounts(...open))
      if (parseMeterId(id).period === 0) held.set(id, (held.get(id) ?? 0n) + amount);
  for (const [id, amount] of JSON.parse(row!["slices"]!) as [string, string][])
    held.set(id, (held.get(id) ?? 0n) + BigInt(amount));
  for (const [id, amount] of JSON.parse(row!["meters"]!) as [string, string][]) {
    if ((held.get(id) ?? 0n) !== BigInt(amount))
      say(
        `/meters/${id}`,
        `The meter has ${amount} reserved, but budget leases and open calls have ${held.get(id) ?? 0n}.`,
      );
    held.delete(id);
  }
  for (const [id, amount] of held)
    if (amount !== 0n)
      say(
        `/meters/${id}`,
        `The meter has nothing reserved, but budget leases and open calls have ${amount}.`,
      );
}

/** Reports records that no command wrote. */
async function verifyRecords(sql: RunSql, schema: string, say: AddProblem): Promise<void> {
  for (const [kind, table, id] of [
    ["key", "key", "digest"],
    ["account", "account", "id"],
  ] as const) {
    const rows = await sql({
      text: `SELECT r.${id} AS id FROM ${schema}.${table} r WHERE NOT EXISTS
        (SELECT 1 FROM ${schema}.note n WHERE n.kind = $1 AND n.id = r.${id} AND n.text = r.record)`,
      values: [kind],
    });
    for (const row of rows)
      say(`/${kind}s/${row["id"]}`, `This ${kind} was changed outside of Tollgate's commands.`);
  }
}
