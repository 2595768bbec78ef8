// An experiment: the store's contract on PostgreSQL, in a database that outlives the gateway. It
// shows that the contract requires nothing that only SQLite has: every method is asynchronous, a
// batch is one transaction, and exactly once is a unique index.
import type { PGlite, Transaction } from "@electric-sql/pglite";
import type { StoreCommand, KeyRecord, Price, Store, Usage } from "tollgate/plugin";
import {
  type CallRows,
  checkCommand,
  createLedgerRules,
  createTotals,
  fromJson,
  createRowWriter,
  isSettledRow,
  keyCursor,
  matchesQuery,
  type LedgerRow,
  type Meter,
  createMeter,
  rowQualifier,
  createOpenRow,
  toPage,
  pageSize,
  recoveredSettle,
  recoveryTime,
  type RowJournal,
  toEntry,
  toJson,
} from "tollgate/store";

export const SCHEMA = `
  CREATE TABLE instance (epoch SERIAL PRIMARY KEY, name TEXT NOT NULL);
  CREATE TABLE entry (
    seq BIGSERIAL PRIMARY KEY, attempt TEXT NOT NULL, kind TEXT NOT NULL, nth TEXT NOT NULL,
    key TEXT NOT NULL, at BIGINT NOT NULL, state TEXT NOT NULL, upstream_id TEXT, row TEXT NOT NULL,
    UNIQUE (attempt, kind, nth)
  );
  CREATE TABLE open (attempt TEXT PRIMARY KEY, seq BIGINT NOT NULL, usage TEXT NOT NULL, cost NUMERIC);
  CREATE TABLE meter (id TEXT PRIMARY KEY, level NUMERIC NOT NULL, at BIGINT NOT NULL, max NUMERIC NOT NULL);
  CREATE TABLE key (digest TEXT PRIMARY KEY, place TEXT NOT NULL UNIQUE, record TEXT NOT NULL);
  CREATE TABLE price (hash TEXT PRIMARY KEY, price TEXT NOT NULL);
`;

type Asks = Pick<Transaction, "query">;
type Write = (tx: Asks) => Promise<unknown>;

/** Neither text nor JSON of PostgreSQL can contain NUL or half a surrogate pair. */
const readable = (value: unknown): unknown =>
  typeof value === "string"
    ? value
        .toWellFormed()
        .replaceAll("\0", "\uFFFD")
        .replaceAll(/\\u(?:0000|d[89a-f][0-9a-f]{2})/gi, "\uFFFD")
    : value;
const asking = (on: Asks): Asks => ({
  query: (text, values) => on.query(text, values?.map(readable)),
});

export function postgresStore(pglite: PGlite): Store {
  const db = asking(pglite);
  let instance = "";
  const opened = () => createLedgerRules(journal, () => instance);
  let book: ReturnType<typeof opened> | undefined;
  /** The batch's knowledge of its attempts, and its rows. */
  let known = new Map<string, { past: CallRows | undefined; names: Set<string> }>();
  let writes: Write[] = [];
  let last: Promise<unknown> = Promise.resolve();

  function write(row: LedgerRow): boolean {
    const about = known.get(row.attempt) ?? { past: undefined, names: new Set<string>() };
    known.set(row.attempt, about);
    const name = `${row.kind} ${rowQualifier(row)}`;
    if (about.names.has(name)) return false;
    about.names.add(name);
    if (row.kind === "reserve") about.past = { reserve: row, settle: undefined };
    if (row.kind === "settle") about.past = { reserve: about.past!.reserve, settle: row };
    writes.push((tx) => insert(tx, row));
    return true;
  }

  const journal: RowJournal = {
    ...createRowWriter(write, () => instance),
    hasReserve: (attempt) => known.get(attempt)?.past !== undefined,
    closedCall: (attempt) => known.get(attempt)?.past,
    progress: ({ attempt }, { usage, costNano: cost = null }) =>
      void writes.push((tx) =>
        tx.query("UPDATE open SET usage = $2, cost = $3 WHERE attempt = $1", [
          attempt,
          JSON.stringify(usage),
          cost === null ? null : `${cost}`,
        ]),
      ),
    putKey: (record) =>
      void writes.push((tx) =>
        tx.query(
          "INSERT INTO key VALUES ($1, $2, $3) ON CONFLICT (digest) DO UPDATE SET place = excluded.place, record = excluded.record",
          [record.digest, keyCursor(record), toJson(record)],
        ),
      ),
    putPrice: (hash, price) =>
      void writes.push((tx) =>
        tx.query("INSERT INTO price VALUES ($1, $2) ON CONFLICT DO NOTHING", [hash, toJson(price)]),
      ),
    recordHeartbeat() {},
  };

  async function insert(tx: Asks, row: LedgerRow): Promise<void> {
    const { rows } = await tx.query<{ seq: number }>(
      "INSERT INTO entry (attempt, kind, nth, key, at, state, upstream_id, row) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING seq",
      [
        row.attempt,
        row.kind,
        rowQualifier(row),
        row.key,
        Math.floor(row.at),
        row.state,
        row.upstreamId ?? null,
        toJson(row),
      ],
    );
    if (row.kind === "reserve")
      await tx.query("INSERT INTO open VALUES ($1, $2, '{}', NULL)", [row.attempt, rows[0]!.seq]);
    if (row.kind === "settle") await tx.query("DELETE FROM open WHERE attempt = $1", [row.attempt]);
  }

  /** One transaction: everything is written, or nothing. */
  async function transaction<T>(work: (tx: Asks) => Promise<T>): Promise<T> {
    writes = [];
    try {
      const result = await pglite.transaction(async (raw) => {
        const tx = asking(raw);
        const done = await work(tx);
        for (const write of writes) await write(tx);
        for (const meter of book!.changedMeters())
          await tx.query(
            "INSERT INTO meter VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO UPDATE SET level = excluded.level, at = excluded.at, max = excluded.max",
            [meter.id, `${meter.level}`, Math.floor(meter.at), `${meter.max}`],
          );
        return done;
      });
      book!.commit();
      return result;
    } catch (error) {
      book!.rollback();
      throw error;
    }
  }

  async function recall(tx: Asks, attempts: readonly string[]): Promise<void> {
    known = new Map();
    const { rows } = await tx.query<{ row: string }>(
      "SELECT row FROM entry WHERE attempt = ANY ($1) ORDER BY seq",
      [attempts],
    );
    for (const { row: text } of rows) {
      const row = fromJson<LedgerRow>(text);
      const about = known.get(row.attempt) ?? { past: undefined, names: new Set<string>() };
      about.names.add(`${row.kind} ${rowQualifier(row)}`);
      if (row.kind === "reserve") about.past = { reserve: row, settle: undefined };
      if (row.kind === "settle") about.past = { reserve: about.past!.reserve, settle: row };
      known.set(row.attempt, about);
    }
  }

  /** One after another: a batch sees the result of the previous one. */
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = last.then(work, work);
    last = turn.catch(() => undefined);
    return turn;
  };

  return {
    open: (owner) =>
      inTurn(async () => {
        instance = owner.instance;
        book = opened();
        const meters = await db.query<{ id: string; level: string; at: number; max: string }>(
          "SELECT * FROM meter",
        );
        for (const { id, level, at, max } of meters.rows)
          book.loadMeter({
            ...createMeter(id),
            level: BigInt(level),
            at: Number(at),
            max: BigInt(max),
          } satisfies Meter);
        const open = await db.query<{ row: string; usage: string; cost: string | null }>(
          "SELECT e.row, o.usage, o.cost FROM open o JOIN entry e ON e.seq = o.seq ORDER BY o.seq",
        );
        const calls = open.rows.map(({ row, usage, cost }) =>
          createOpenRow(fromJson<LedgerRow>(row), {
            usage: JSON.parse(usage) as Usage,
            costNano: cost === null ? null : BigInt(cost),
          }),
        );
        for (const call of calls) book.restoreCall(call);
        const dead = calls.filter(({ row }) => row.instance !== instance);
        const epoch = await transaction(async (tx) => {
          await recall(
            tx,
            dead.map(({ row }) => row.attempt),
          );
          const at = recoveryTime(dead, Date.now());
          for (const { row, progress } of dead) book!.apply(recoveredSettle(row, progress, at));
          const { rows } = await tx.query<{ epoch: number }>(
            "INSERT INTO instance (name) VALUES ($1) RETURNING epoch",
            [instance],
          );
          return rows[0]!.epoch;
        });
        return { epoch, recovered: dead.length };
      }),
    apply: (batch) =>
      inTurn(async () => {
        if (!book) throw new Error("The store is not open.");
        batch.forEach(checkCommand);
        const commands = structuredClone(batch) as readonly StoreCommand[];
        return transaction(async (tx) => {
          await recall(
            tx,
            commands.flatMap((c) => ("attempt" in c ? [c.attempt] : [])),
          );
          return commands.map((command) => book!.apply(command));
        });
      }),
    async findKey(digest) {
      const { rows } = await db.query<{ record: string }>(
        "SELECT record FROM key WHERE digest = $1",
        [digest],
      );
      return rows[0] && fromJson<KeyRecord>(rows[0].record);
    },
    async findPrice(hash) {
      const { rows } = await db.query<{ price: string }>(
        "SELECT price FROM price WHERE hash = $1",
        [hash],
      );
      return rows[0] && fromJson<Price>(rows[0].price);
    },
    async listKeys(page) {
      const size = pageSize(page);
      const { rows } = await db.query<{ record: string }>(
        'SELECT record FROM key WHERE place > $1 COLLATE "C" ORDER BY place COLLATE "C" LIMIT $2',
        [page?.after ?? "", size + 1],
      );
      return toPage(
        rows.map(({ record }) => fromJson<KeyRecord>(record)),
        size,
        keyCursor,
      );
    },
    async listEntries(query, page) {
      const size = pageSize(page);
      const { rows } = await db.query<{ seq: number; row: string }>(
        `SELECT seq, row FROM entry WHERE seq > $1
           AND ($2::text IS NULL OR key = $2) AND ($3::text IS NULL OR attempt = $3)
           AND ($4::text IS NULL OR upstream_id = $4) AND ($5::bigint IS NULL OR at >= $5)
           AND ($6::bigint IS NULL OR at < $6) AND ($7::text IS NULL OR state = $7)
           AND ($9::text IS NULL OR position('/' || $9 || '/' in '/' || (row::json ->> 'account') || '/') > 0)
           AND ($7::text IS DISTINCT FROM 'open' OR attempt IN (SELECT attempt FROM open))
         ORDER BY seq LIMIT $8`,
        [
          page?.after ?? 0,
          query.key ?? null,
          query.attempt ?? null,
          query.upstreamId ?? null,
          query.from ?? null,
          query.to ?? null,
          query.state ?? null,
          size + 1,
          query.account ?? null,
        ],
      );
      const found = toPage(
        rows.map(({ seq, row }) => toEntry(fromJson<LedgerRow>(row), Number(seq))),
        size,
        ({ seq }) => `${seq}`,
      );
      // Fields without a column are filtered here.
      const asked = Object.entries(query).map(([name, value]) => [name, readable(value)]);
      const wanted = Object.fromEntries(asked) as typeof query;
      const items = found.items.filter((entry) => matchesQuery(entry as never, wanted, false));
      return { ...found, items };
    },
    async sumEntries(query) {
      const { by, zone, ...rest } = query;
      const sums = createTotals(by, zone);
      let after: string | undefined;
      do {
        const page = await this.listEntries(rest, { after, limit: 1_000 });
        for (const entry of page.items)
          if (isSettledRow(entry as unknown as LedgerRow, query.state)) sums.add(entry as never);
        after = page.next;
      } while (after !== undefined);
      return sums.totals();
    },
  };
}
