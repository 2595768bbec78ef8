// PostgreSQL in this process (PGlite): the store's schema and functions run unchanged, on virtual
// time. It has one session, so two transactions never run at the same time. If the order of two
// batches matters inside the admission function, `race` runs one batch in the middle of another.
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { migrate } from "../../../../plugins/stores/postgres/schema/migrations.ts";
import type {
  RunSql,
  Row,
} from "../../../../plugins/stores/postgres/connection/pipelined-connection.ts";
import { planted } from "../fleet-sql-mutants.ts";
import {
  extended,
  messagesIn,
  parsedText,
  PARSED,
  prepare,
  simple,
  withPrepared,
  type Message,
  type Statement,
} from "./protocol.ts";

/** Tables that a gateway's calls change. */
const CHANGED =
  "change_counter node meter open_call batch ledger_row terms note price chain rollup_position budget_lease lease_recall lease_use".split(
    " ",
  );

/**
 * Helpers of the simulator. `between` runs another batch after the admission function has read
 * meters and before it locks them. `locked` reports each lock.
 */
const HELPERS = `
CREATE SCHEMA sim;
CREATE FUNCTION sim.fail(code text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'simulated' USING ERRCODE = code; END $$;
CREATE FUNCTION sim.locked(id text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN RAISE NOTICE 'locked %', id; RETURN true; END $$;
CREATE FUNCTION sim.between() RETURNS void LANGUAGE plpgsql AS $$
DECLARE other text := current_setting('sim.other', true); said text;
BEGIN
  IF coalesce(other, '') = '' THEN RETURN; END IF;
  PERFORM set_config('sim.other', '', false);
  BEGIN
    EXECUTE other INTO said;
  EXCEPTION WHEN OTHERS THEN
    said := 'failed;' || SQLSTATE;
  END;
  PERFORM set_config('sim.said', said, false);
  RAISE NOTICE 'locked';
END $$;`;

/** Statements that are prepared. They cannot fail while they are parsed. */
const REPEATED = /^(?:SELECT|INSERT|UPDATE|DELETE) /;

/** Places at which the admission function calls the helpers. */
const HOOKS = [
  [/IF fresh THEN PERFORM \w+\.lock_meters_1\(m_id\); END IF;/g, "PERFORM sim.between(); $&"],
  [
    /SELECT \*, ctid AS place FROM (\w+\.meter WHERE id = x\.id OFFSET 0 FOR NO KEY UPDATE)/g,
    "SELECT *, ctid AS place, sim.locked(id) FROM $1",
  ],
] as const;

export interface Answer {
  readonly bytes: Buffer;
  /** I: no transaction; T: in one; E: in one that failed. */
  readonly status: string;
  readonly error: string | undefined;
  /** Meters of each batch, in the order in which they were locked. */
  readonly locks: readonly (readonly string[])[];
}

export class SimulatedDatabase {
  readonly #lite: PGlite;
  #clean = "";
  #sound: readonly Row[] = [];
  #worlds = 0;
  #copies = false;
  /** Names of prepared statements, by their text. */
  readonly #prepared = new Map<string, string>();

  private constructor(lite: PGlite) {
    this.#lite = lite;
  }

  static async create(): Promise<SimulatedDatabase> {
    const made = new SimulatedDatabase(
      await untimed(async () => PGlite.create({ loadDataDir: await emptyData() })),
    );
    await migrate(made.ask, "tollgate", {});
    made.rows(HELPERS);
    made.rows("SET plan_cache_mode = force_generic_plan");
    made.#sound = made.rows(
      "SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname IN ('apply_batch_1', 'return_dead_leases_1', 'heartbeat_1')",
    );
    await made.plant("");
    made.#clean = `BEGIN; SET LOCAL session_replication_role = replica;
      ${CHANGED.map((table) => `DELETE FROM tollgate.${table};`).join(" ")}
      INSERT INTO tollgate.change_counter DEFAULT VALUES; INSERT INTO tollgate.chain DEFAULT VALUES; INSERT INTO tollgate.rollup_position DEFAULT VALUES;
      SELECT setval(pg_get_serial_sequence('tollgate.node', 'epoch'), 1, false), set_config('sim.other', '', false); COMMIT`;
    return made;
  }

  /** The store's functions with one defect of fleet-plants. "": without a defect. */
  async plant(name: string): Promise<void> {
    for (const { text } of this.#sound) this.rows(text!);
    await planted(name, async (text) => Object.values(this.rows(text)[0] ?? {})[0] ?? "");
    const [gate] = this.rows(
      "SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname = 'apply_batch_1'",
    );
    let text = gate!["text"]!;
    for (const [line, instead] of HOOKS) {
      const changed = text.replaceAll(line, instead);
      if (changed === text) throw new Error(`The gate has no line like ${line.source}.`);
      text = changed;
    }
    this.rows(text);
  }

  /** As created: without rows. */
  clear(): void {
    this.rows(this.#clean);
    if (++this.#worlds % 50 === 0) this.rows("VACUUM");
  }

  /** Data of a replica that will lag. */
  copy(): void {
    this.rows(
      this.#copies
        ? CHANGED.map((t) => `TRUNCATE copy.${t}; INSERT INTO copy.${t} TABLE tollgate.${t};`).join(
            " ",
          )
        : `CREATE SCHEMA copy; ${CHANGED.map((t) => `CREATE TABLE copy.${t} AS TABLE tollgate.${t};`).join(" ")}`,
    );
    this.#copies = true;
  }

  /** The replica becomes the primary. */
  setBack(): void {
    this.rows(`BEGIN; SET LOCAL session_replication_role = replica;
      ${CHANGED.map((t) => `DELETE FROM tollgate.${t}; INSERT INTO tollgate.${t} OVERRIDING SYSTEM VALUE SELECT * FROM copy.${t};`).join(" ")} COMMIT`);
  }

  /** One group of messages up to its Sync. */
  run(bytes: Uint8Array): Answer {
    const answered = this.#answer(bytes);
    let [status, error] = ["I", undefined as string | undefined];
    const locks: string[][] = [[]];
    for (const { type, body } of messagesIn(answered)) {
      if (type === "Z") status = String.fromCharCode(body[0]!);
      if (type === "E") error = field(body, "C");
      if (type === "N") {
        const [what, id] = (field(body, "M") ?? "").split(" ");
        if (what === "locked" && id !== undefined) locks.at(-1)!.push(id);
        else if (what === "locked") locks.push([]);
      }
    }
    return { bytes: answered, status, error, locks };
  }

  /**
   * Runs `batch`, and `other` after `batch` has read its meters and before it locks them. `said`:
   * the result of `other`. Undefined: it did not run.
   */
  race(batch: Uint8Array, other: Statement): { answer: Answer; said: string | undefined } {
    this.rows(
      `SELECT set_config('sim.said', '', false), set_config('sim.other', ${quoted(literally(other))}, false)`,
    );
    const answer = this.run(batch);
    const [row] = this.rows("SELECT current_setting('sim.said') AS said");
    this.rows("SELECT set_config('sim.other', '', false)");
    // A failed batch also undoes everything that ran inside it.
    return { answer, said: answer.error === undefined ? row!["said"]! || undefined : undefined };
  }

  /** The response to a batch that ran inside another one. */
  told(said: string): Answer {
    const [, code] = /^failed;(.*)/.exec(said) ?? [];
    return this.run(
      extended(
        code === undefined
          ? `SELECT ${quoted(said)}::text AS said`
          : `SELECT sim.fail(${quoted(code)}) AS said`,
      ),
    );
  }

  /** Whether this node's lease has expired, by the database. */
  isSilent(epoch: string): boolean {
    const [row] = this.rows(
      `SELECT (last_heartbeat + lease < clock_timestamp())::text AS silent FROM tollgate.node WHERE epoch = ${Number(epoch)}`,
    );
    return row?.["silent"] === "true";
  }

  /** Number of nodes whose lease expired. */
  dead(): number {
    return Number(
      this.rows("SELECT count(*) AS many FROM tollgate.node WHERE state = 'dead'")[0]!["many"],
    );
  }

  refuse(code: string): Answer {
    return this.run(extended(`SELECT sim.fail(${quoted(code)})`));
  }

  /** Statements of the simulator itself. */
  rows(text: string): readonly Row[] {
    const rows: Row[] = [];
    let names: string[] = [];
    for (const { type, body } of messagesIn(Buffer.from(this.#exec(simple(text))))) {
      if (type === "E")
        throw Object.assign(new Error(field(body, "M")), { code: field(body, "C") });
      if (type === "T") names = columns(body);
      if (type === "D") rows.push(values(body, names));
    }
    return rows;
  }

  /**
   * Answers a group of messages. A statement is parsed and planned once, because planning would take
   * most of the time. Its answer is the same.
   */
  #answer(bytes: Uint8Array): Buffer {
    const messages = [...messagesIn(Buffer.from(bytes))];
    const name = this.#preparedName(messages);
    if (name === undefined) return Buffer.from(this.#exec(bytes));
    return Buffer.concat([PARSED, this.#exec(withPrepared(messages, name))]);
  }

  #preparedName(messages: readonly Message[]): string | undefined {
    const text = parsedText(messages);
    if (text === undefined || !REPEATED.test(text)) return undefined;
    const known = this.#prepared.get(text);
    if (known !== undefined) return known;
    const name = `s${this.#prepared.size}`;
    const answers = messagesIn(Buffer.from(this.#exec(prepare(name, text))));
    // In a transaction that has failed, nothing can be prepared.
    if ([...answers].some(({ type }) => type === "E")) return undefined;
    this.#prepared.set(text, name);
    return name;
  }

  #exec(bytes: Uint8Array): Uint8Array {
    const { setTimeout } = globalThis;
    globalThis.setTimeout = NEVER;
    try {
      return this.#lite.execProtocolRawSync(bytes);
    } finally {
      globalThis.setTimeout = setTimeout;
    }
  }

  readonly ask: RunSql = async (statement) => this.rows(literally(statement));

  close(): Promise<void> {
    return this.#lite.close();
  }
}

/**
 * The data folder of a new server. Creating one takes 5 s of CPU time and loading one a fifth of
 * that, so it is cached next to the dependencies.
 */
async function emptyData(): Promise<Blob> {
  const modules = join(import.meta.dirname, "../../../../node_modules");
  const manifest = await readFile(join(modules, "@electric-sql/pglite/package.json"), "utf8");
  const file = join(modules, ".cache", `pglite-${JSON.parse(manifest).version}.tar.gz`);
  const kept = await readFile(file).catch(() => undefined);
  if (kept) return new Blob([new Uint8Array(kept)]);
  const lite = await PGlite.create();
  const data = await lite.dumpDataDir("gzip");
  await lite.close();
  await mkdir(dirname(file), { recursive: true });
  await writeFile(`${file}.${process.pid}`, Buffer.from(await data.arrayBuffer()));
  await rename(`${file}.${process.pid}`, file);
  return data;
}

/** The server's own timers do not run, because they would wait for real time. */
const NEVER = (() => 0) as unknown as typeof setTimeout;

async function untimed<T>(work: () => Promise<T>): Promise<T> {
  const { setTimeout } = globalThis;
  globalThis.setTimeout = NEVER;
  try {
    return await work();
  } finally {
    globalThis.setTimeout = setTimeout;
  }
}

/** A statement with its values. */
const literally = ({ text, values: given = [] }: Pick<Statement, "text" | "values">): string =>
  given.length === 0
    ? text
    : text.replaceAll(/\$(\d+)/g, (_, place: string) => {
        const value = given[Number(place) - 1];
        if (value === null || value === undefined) return "NULL";
        return Buffer.isBuffer(value) ? `'\\x${value.toString("hex")}'` : quoted(String(value));
      });

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

function field(body: Buffer, of: string): string | undefined {
  for (let at = 0; body[at] !== 0;) {
    const end = body.indexOf(0, at + 1);
    if (String.fromCharCode(body[at]!) === of) return body.toString("utf8", at + 1, end);
    at = end + 1;
  }
  return undefined;
}

function columns(body: Buffer): string[] {
  const names: string[] = [];
  for (let at = 2; at < body.length;) {
    const end = body.indexOf(0, at);
    names.push(body.toString("utf8", at, end));
    at = end + 19;
  }
  return names;
}

function values(body: Buffer, names: readonly string[]): Row {
  const row: Record<string, string | null> = {};
  let at = 2;
  for (const name of names) {
    const length = body.readInt32BE(at);
    row[name] = length < 0 ? null : body.toString("utf8", at + 4, at + 4 + length);
    at += 4 + Math.max(0, length);
  }
  return row;
}
