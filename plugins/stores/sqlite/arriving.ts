// Another store's ledger on its way into a file, beside where a ledger would be opened: it is put there when all of it is in it, and is verified.
import { halfOf } from "./half.ts";
import { existsSync, renameSync, rmSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { fail, type MovedRest, type MovedRows, type Settle } from "tollgate/plugin";
import {
  isCalendar,
  newMeter,
  rowFrom,
  toJson,
  used,
  type LedgerRow,
  type Taken,
} from "tollgate/store";
import { audit } from "./audited.ts";
import { headOf } from "./chain.ts";
import type { SqliteJournal, StoredCall } from "./journal.ts";
import { totalsIn } from "./leaving.ts";
import { lock } from "./lock.ts";
import { verify } from "./reader.ts";
import { Session } from "./session.ts";
import { sumsLink, textHash, type Base } from "./standing.ts";
import { rowsOf, STORED, type Stored } from "./stored.ts";
import { textOf } from "./terms.ts";
import { amount, newTerms, SettleLine, settledText, type ReserveLine } from "./wire.ts";

/** The instance of what is no row of another one. */
const MOVER = "move";

export class Arriving {
  readonly #file: string;
  readonly #half: string;
  readonly #held: ReturnType<typeof lock>;
  #session: Session | undefined;
  readonly #open = new Map<string, StoredCall>();
  readonly after: number;

  constructor(file: string) {
    this.#file = file;
    this.#half = halfOf(file);
    this.#held = lock(file);
    try {
      if (existsSync(file))
        fail("conflict", `There is a ledger already: ${file}.`, { code: "not_empty" });
      this.#session = new Session(
        { file: this.#half, durability: "power", ballastMb: 0 },
        MOVER,
        false,
      );
      const { db } = this.#session;
      db.exec("CREATE TABLE IF NOT EXISTS moving (after INTEGER NOT NULL) STRICT");
      this.after = Number(
        db.prepare("SELECT max(after) AS after FROM moving").get()?.["after"] ?? 0,
      );
      this.#session.step((_, journal) => {
        for (const { call } of journal.open()) this.#open.set(call.attempt, call);
      });
    } catch (error) {
      this.end();
      throw error;
    }
  }

  take({ rows, next }: MovedRows): void {
    const all = rows.map(rowFrom);
    const groups: LedgerRow[][] = [];
    for (const row of all)
      if (groups.at(-1)?.[0]?.instance === row.instance) groups.at(-1)!.push(row);
      else groups.push([row]);
    // The place is said with the last of them: what is told again after a crash is there already, and is passed over.
    groups.forEach((some, i) =>
      this.#session!.step((db, journal) => {
        journal.writes(some[0]!.instance);
        for (const row of some) this.#row(journal, row);
        if (i < groups.length - 1) return;
        db.exec("DELETE FROM moving");
        db.prepare("INSERT INTO moving (after) VALUES (?)").run(next);
      }),
    );
  }

  #row(journal: SqliteJournal, row: LedgerRow): void {
    const { attempt, kind } = row;
    if (kind === "adjust") return void journal.corrected(row);
    if (kind === "settle") {
      const call = this.#open.get(attempt);
      if (!call) return;
      this.#open.delete(attempt);
      return journal.settle(
        call,
        new SettleLine(Math.floor(row.at), attempt, settledText(settling(row))),
      );
    }
    if (journal.knows(attempt)) return;
    const line: ReserveLine = {
      do: "reserve",
      at: Math.floor(row.at),
      attempt,
      claims: [],
      terms: newTerms(textOf(row)),
      who: `${JSON.stringify(attempt)},${JSON.stringify(row.request)},${row.n}`,
      hold: JSON.stringify(amount(row.holdNano)),
    };
    this.#open.set(attempt, journal.reserve(line, row.taken)!);
  }

  async finish(rest: MovedRest) {
    const session = this.#session!;
    this.#rest(session, rest);
    const totals = totalsIn(session.db);
    if (toJson(totals) !== toJson(rest.totals))
      this.#undone(
        `What rows come to here is not what they came to there: ${totals.length} groups, and ${rest.totals.length} there.`,
      );
    const { hash } = headOf(session.db);
    session.db.exec("DROP TABLE moving");
    session.db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    session.db.close();
    this.#session = undefined;
    const [problem] = (await verify(this.#half, undefined)).problems;
    if (problem) this.#undone(`What arrived does not verify: ${problem.path} ${problem.message}`);
    rmSync(`${this.#half}-wal`, { force: true });
    rmSync(`${this.#half}-shm`, { force: true });
    renameSync(this.#half, this.#file);
    return { head: hash, totals };
  }

  end(): void {
    try {
      this.#session?.db.close();
    } finally {
      this.#session = undefined;
      this.#held.release();
    }
  }

  /** It begins anew the next time: what is in it cannot be taken back. */
  #undone(message: string): never {
    this.#session?.db.close();
    this.#session = undefined;
    for (const name of ["", "-wal", "-shm"]) rmSync(this.#half + name, { force: true });
    return fail("invalid", message, { code: "other_sums" });
  }

  #rest(session: Session, rest: MovedRest): void {
    for (const [entry, end] of rest.audit) {
      audit(session, entry);
      if (end) audit(session, end);
    }
    session.step((db, journal) => {
      journal.writes(MOVER);
      for (const key of rest.keys) journal.key(key);
      for (const account of rest.accounts) journal.accounts.put(account);
      for (const [hash, price] of rest.prices) journal.price(hash, price);
      const meter = db.prepare(
        "INSERT INTO meter (id, level, at, max, told) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE " +
          "SET level = excluded.level, at = excluded.at, max = excluded.max, told = excluded.told",
      );
      for (const { id, level, at, max, told } of rest.meters)
        meter.run(id, String(level), Math.floor(at), String(max), String(told));
      for (const [attempt, usage, costNano] of rest.heard) {
        const call = this.#open.get(attempt);
        if (call) journal.progress(call, { do: "progress", at: 0, attempt, usage, costNano });
      }
    });
    const at = Date.now();
    if (rest.pruned) this.#pruned(session, rest, at);
    session.step((_, journal) => {
      journal.note(at, {
        moved: { head: rest.head ?? null, sums: textHash(toJson(rest.totals)) },
      });
    });
  }

  #pruned(session: Session, { pruned, meters }: MovedRest, at: number): void {
    const { rows, since, till, sums } = pruned!;
    session.step((db, journal) => {
      const lay = db.prepare("INSERT INTO sums (n, quarter, text, hash) VALUES (?, ?, ?, ?)");
      let last = "";
      sums.forEach(([quarter, text], i) => {
        last = sumsLink(last, quarter, text);
        lay.run(i + 1, quarter, text, last);
      });
      const spent = spentIn(db);
      const counted = meters.flatMap(({ id, level }): [string, string][] => {
        const before = level - (spent.get(id) ?? 0n);
        return isCalendar(newMeter(id).per) && before !== 0n ? [[id, String(before)]] : [];
      });
      const base: Base = {
        segment: 0,
        last: 0,
        hash: "",
        since,
        till,
        rows,
        at,
        sums: sums.length,
        carried: [],
        meters: counted,
        gone: [],
      };
      const text = JSON.stringify(base);
      db.prepare("INSERT INTO base (id, last, sums, text) VALUES (1, 0, ?, ?)").run(
        sums.length,
        text,
      );
      journal.note(at, { pruned: { last: 0, base: textHash(text), sums: last } });
    });
  }
}

/** What is absent is left out. */
const settling = (row: LedgerRow): Settle => ({
  ...(Object.fromEntries(
    Object.entries(row).filter(([, value]) => value !== undefined),
  ) as unknown as Settle),
  do: "settle",
});

/** What windows of the calendar have counted of rows that are there. */
function spentIn(db: DatabaseSync): ReadonlyMap<string, bigint> {
  const spent = new Map<string, bigint>();
  const taken = new Map<string, readonly Taken[]>();
  const count = (id: string, amount: bigint) => {
    if (isCalendar(newMeter(id).per)) spent.set(id, (spent.get(id) ?? 0n) + amount);
  };
  const batches = db.prepare(`SELECT ${STORED} FROM batch ORDER BY first`);
  for (const stored of batches.iterate() as Iterable<unknown>)
    for (const row of rowsOf(stored as Stored))
      if (row.kind === "reserve") taken.set(row.attempt, row.taken);
      else
        for (const [id, amount] of taken.get(row.attempt) ?? [])
          if (row.kind === "settle") count(id, used(newMeter(id).unit, amount, row));
          else if (newMeter(id).unit === "nano_usd") count(id, row.costNano ?? 0n);
  return spent;
}
