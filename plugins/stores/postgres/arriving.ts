// Another store's ledger on its way into this one. Rows keep their times and the instances that wrote them: each of these is a node with a chain of its
// own. A node called "move" lives until all of it is there, and while it lives no gateway opens the store.
import { fail, type MovedIn, type MovedRest, type MovedRows } from "tollgate/plugin";
import { rowFrom, toJson, type LedgerRow } from "tollgate/store";
import { ArrivingRest, linked, MOVER, type Chain } from "./arriving-rest.ts";
import { all, bytes } from "./exact.ts";
import { COMPARED } from "./leaving.ts";
import type { Ask } from "./line.ts";
import { texts } from "./literal.ts";
import { close, summed } from "./reads.ts";
import { hashOf } from "./rows.ts";
import { bookedLine, booking, KnownTerms } from "./terms.ts";
import { totalsOf } from "./totals.ts";

/** Whether a move into it has begun, and is not over. */
export async function isMoving(ask: Ask, s: string): Promise<boolean> {
  const [row] = await ask({
    text: `SELECT EXISTS (SELECT 1 FROM ${s}.node WHERE id = $1 AND state = 'live')::text AS moving`,
    values: [MOVER],
  });
  return row!["moving"] === "true";
}

export const unfinished = (): never =>
  fail(
    "conflict",
    "A move into this database is not finished: run tollgate store copy again, or drop its schema.",
    { code: "moving" },
  );

/** `end`: its connection. */
export async function arriving(ask: Ask, s: string, end: () => Promise<void>): Promise<MovedIn> {
  const moved = new Arrival(ask, s, end);
  await moved.begin();
  return moved;
}

/** A node whose rows arrive. */
interface Arriving extends Chain {
  readonly terms: KnownTerms;
}

class Arrival implements MovedIn {
  after = 0;
  readonly #ask: Ask;
  readonly #s: string;
  readonly #end: () => Promise<void>;
  readonly #rest: ArrivingRest;
  readonly #chains = new Map<string, Arriving>();
  /** Began; of calls that are not settled yet. */
  readonly #open = new Map<string, number>();

  constructor(ask: Ask, s: string, end: () => Promise<void>) {
    this.#ask = ask;
    this.#s = s;
    this.#end = end;
    this.#rest = new ArrivingRest(s);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }

  async begin(): Promise<void> {
    const [ask, s] = [this.#ask, this.#s];
    const nodes = await ask({
      text: `SELECT epoch, id, about, state, n, head,
        (SELECT coalesce(max(t.id), 0) FROM ${s}.terms t WHERE t.node = w.epoch) AS last FROM ${s}.node w`,
    });
    const mover = nodes.find(({ id, state }) => id === MOVER && state === "live");
    if (!mover && nodes.length > 0)
      fail("conflict", "There is a ledger in this database already.", { code: "not_empty" });
    if (!mover) {
      await ask({
        text: `INSERT INTO ${s}.node (id, about, lease) VALUES ($1, '{"after":0}', '1000 years')`,
        values: [MOVER],
      });
      return this.begin();
    }
    this.after = (JSON.parse(mover["about"]!) as { after: number }).after;
    for (const node of nodes)
      this.#chains.set(node["id"]!, {
        epoch: Number(node["epoch"]),
        n: Number(node["n"]),
        head: bytes(node["head"]!),
        terms: new KnownTerms(Number(node["last"])),
      });
    for (const row of await ask({ text: `SELECT attempt, began FROM ${s}.open` }))
      this.#open.set(row["attempt"]!, Number(row["began"]));
  }

  async take({ rows, next }: MovedRows): Promise<void> {
    const s = this.#s;
    await this.#whole(async (ask) => {
      const began = await this.#beginnings(ask, rows.map(rowFrom));
      for (const month of new Set([...began.values()].map(monthOf)))
        await ask({ text: `SELECT ${s}.month_1($1)`, values: [month] });
      for (const some of byInstance(rows.map(rowFrom))) await this.#batch(ask, some, began);
      const open = rows.filter(({ kind }) => kind === "reserve").map(({ attempt }) => attempt);
      const over = rows.filter(({ kind }) => kind === "settle").map(({ attempt }) => attempt);
      await ask({
        text: `INSERT INTO ${s}.open (attempt, node, began)
          SELECT e.attempt, e.node, e.began FROM ${s}.booked e WHERE e.attempt = ANY ($1::text[]) AND e.kind = 0`,
        values: [texts(open)],
      });
      await ask({
        text: `DELETE FROM ${s}.open WHERE attempt = ANY ($1::text[])`,
        values: [texts(over)],
      });
      await ask({
        text: `UPDATE ${s}.node SET about = $2 WHERE id = $1`,
        values: [MOVER, JSON.stringify({ after: next })],
      });
      for (const attempt of over) this.#open.delete(attempt);
    });
    this.after = next;
  }

  async finish(rest: MovedRest) {
    const s = this.#s;
    const totals = await this.#whole(async (ask) => {
      await this.#rest.records(ask, rest);
      await this.#rest.counted(ask, rest);
      await this.#rest.pruned(ask, rest);
      const all = await totalsOf(ask, s, { by: COMPARED });
      const same = toJson(all) === toJson(rest.totals);
      if (!same)
        fail(
          "invalid",
          `What rows come to here is not what they came to there: ${all.length} groups, and ${rest.totals.length} there.`,
          { code: "other_sums" },
        );
      await ask({ text: `UPDATE ${s}.node SET state = 'left' WHERE id = $1`, values: [MOVER] });
      await ask({
        text: `UPDATE ${s}.fleet SET keys = keys + 1, accounts = accounts + 1, changed = clock_timestamp()`,
      });
      return all;
    });
    await close(this.#ask, s);
    await summed(this.#ask, s);
    const [chain] = await this.#ask({ text: `SELECT encode(link, 'hex') AS link FROM ${s}.chain` });
    return { head: chain!["link"]!, totals };
  }

  /** One transaction; what it fails with has not happened, and it begins anew then. */
  async #whole<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
    try {
      await this.#ask({ text: "BEGIN" });
      await this.#ask({
        text: "SELECT set_config('idle_in_transaction_session_timeout', '0', true)",
      });
      const done = await work(this.#ask);
      await this.#ask({ text: "COMMIT" });
      return done;
    } catch (error) {
      await this.#ask({ text: "ROLLBACK" }).catch(() => undefined);
      throw error;
    }
  }

  /** When the calls of some rows began. */
  async #beginnings(ask: Ask, rows: readonly LedgerRow[]): Promise<ReadonlyMap<string, number>> {
    const began = new Map<string, number>();
    for (const { kind, attempt, at } of rows)
      if (kind === "reserve") {
        began.set(attempt, at);
        this.#open.set(attempt, at);
      }
    const others = rows.filter(({ attempt }) => !began.has(attempt));
    const known = others.filter(({ attempt }) => this.#open.has(attempt));
    for (const { attempt } of known) began.set(attempt, this.#open.get(attempt)!);
    const unknown = others.filter(({ attempt }) => !began.has(attempt));
    for (const { attempt, at } of unknown) began.set(attempt, at);
    for (const row of await ask({
      text: `SELECT attempt, began FROM ${this.#s}.booked WHERE attempt = ANY ($1::text[]) AND kind = 0`,
      values: [texts(unknown.map(({ attempt }) => attempt))],
    }))
      began.set(row["attempt"]!, Number(row["began"]));
    return began;
  }

  async #batch(
    ask: Ask,
    rows: readonly LedgerRow[],
    began: ReadonlyMap<string, number>,
  ): Promise<void> {
    const chain = await this.#chain(ask, rows[0]!.instance);
    chain.terms.begin();
    const booked = rows.map((row) => chain.terms.book(row, began.get(row.attempt)!));
    await linked(ask, this.#s, chain, hashOf(chain.head, booked.map(bookedLine)), booked.length);
    await all(booking(this.#s, chain.epoch, chain.n, booked, chain.terms).map(ask));
    chain.terms.wrote(booked);
  }

  async #chain(ask: Ask, instance: string): Promise<Arriving> {
    // The one that moves writes notes alone.
    const id = instance === MOVER ? `${instance} ` : instance;
    let chain = this.#chains.get(id);
    if (!chain) {
      const [row] = await ask({
        text: `INSERT INTO ${this.#s}.node (id, state, alive, lease) VALUES ($1, 'left', '-infinity', '0') RETURNING epoch`,
        values: [id],
      });
      chain = {
        epoch: Number(row!["epoch"]),
        n: 0,
        head: Buffer.alloc(0),
        terms: new KnownTerms(),
      };
      this.#chains.set(id, chain);
    }
    return chain;
  }
}

const monthOf = (at: number): string => `${new Date(at).toISOString().slice(0, 7)}-01T00:00:00Z`;

/** Rows that follow on one another and were written by one instance. */
function* byInstance(rows: readonly LedgerRow[]): Generator<readonly LedgerRow[], void> {
  let some: LedgerRow[] = [];
  for (const row of rows) {
    if (some.length > 0 && some[0]!.instance !== row.instance) {
      yield some;
      some = [];
    }
    some.push(row);
  }
  if (some.length > 0) yield some;
}
