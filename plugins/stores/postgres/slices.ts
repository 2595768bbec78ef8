// The slices of this node: of which budgets it has set a part aside, when it takes one, and when it gives it back. While the database is there
// nothing is spent from them: they are there for when it is away.
import type { Verdict } from "tollgate/plugin";
import { isCalendar } from "tollgate/store";
import { kindOf, type Sum } from "./calls.ts";
import type { Ask } from "./line.ts";
import { numbers, texts } from "./literal.ts";
import { recalled } from "./slicing.ts";

/** How a node is apart from its database: for how long it goes on alone, and with what part of what is left of a budget. */
export interface Apart {
  readonly forMs: number;
  /** 0.02: two in a hundred. */
  readonly share: number;
}

/** Meters in one statement. */
const AT_ONCE = 500;
/** Meters of which slices are held. */
const MOST = 10_000;
/** A meter that had no room is asked for again. */
const AGAIN_MS = 10_000;
/** A meter at which many are refused is recalled so often. */
const RECALL_MS = 1_000;

interface Touched {
  max: bigint;
  at: number;
  /** It is not asked for before. */
  again: number;
}

export class Slices {
  readonly #schema: string;
  readonly #of: Apart;
  readonly #own = new Map<string, bigint>();
  readonly #touched = new Map<string, Touched>();
  readonly #refused = new Map<string, { at: number; others: boolean }>();
  /** They were spent from, and all of them go back first. */
  #spent = false;
  #made = 0;
  /** Gateways that live, this one included. */
  live = 1;

  constructor(schema: string, of: Apart) {
    this.#schema = schema;
    this.#of = of;
  }

  /** What is set aside of a meter; undefined: nothing, or what there was may be spent. */
  part(id: string): bigint | undefined {
    return this.#spent ? undefined : this.#own.get(id);
  }

  /** Calls have claimed these. */
  touch(sums: readonly Sum[]): void {
    const at = performance.now();
    for (const { id, max } of sums) {
      if (max === null || !isCalendar(kindOf(id).per)) continue;
      const known = this.#touched.get(id);
      if (known) Object.assign(known, { max, at });
      else if (this.#touched.size < MOST) this.#touched.set(id, { max, at, again: at });
    }
  }

  /** From now on nothing of them is known to be unspent. */
  spent(): void {
    this.#spent = true;
  }

  /** `made`: how many connections there were. A new one may lead to a database that does not know of the last slices. */
  async tend(ask: Ask, node: string, made: number): Promise<void> {
    if (this.#spent) await this.giveAll(ask, node);
    const now = performance.now();
    const stale: string[] = [];
    for (const [id, { at }] of this.#touched)
      if (at < now - 2 * this.#of.forMs) {
        this.#touched.delete(id);
        if (this.#own.has(id)) stale.push(id);
      }
    const wanted = [...this.#touched]
      .filter(([id, { again }]) => again <= now && !this.#own.has(id))
      .slice(0, AT_ONCE);
    if (this.#own.size + wanted.length === 0) return;
    if (made !== this.#made) await this.#read(ask, node);
    this.#made = made;
    const [row] = await ask({ text: recalled(this.#schema), values: [node] });
    this.live = Math.max(1, Number(row!["live"]));
    const back = [...(JSON.parse(row!["back"]!) as string[]), ...stale];
    if (back.length > 0) await this.#give(ask, node, back);
    if (wanted.length > 0) await this.#take(ask, node, wanted, now);
  }

  /**
   * A client was refused at these meters. "own": what this node had set aside of them has gone back, so that it is worth another try.
   * "others": other nodes have slices of them, and will have given them back in a second or so.
   */
  async ease(
    ask: Ask,
    node: string,
    ids: readonly string[],
  ): Promise<"own" | "others" | undefined> {
    const now = performance.now();
    const fresh = ids.filter((id) => (this.#refused.get(id)?.at ?? -Infinity) < now - RECALL_MS);
    if (this.#refused.size > MOST) this.#refused.clear();
    if (fresh.length > 0) {
      const [row] = await ask({
        text: `SELECT ${this.#schema}.recall_1($1::text[])::text AS many`,
        values: [texts(fresh)],
      });
      for (const id of fresh) this.#refused.set(id, { at: now, others: Number(row!["many"]) > 0 });
    }
    const mine = ids.filter((id) => this.#own.has(id));
    if (mine.length > 0) {
      await this.#give(ask, node, mine);
      return "own";
    }
    return ids.some((id) => this.#refused.get(id)?.others) ? "others" : undefined;
  }

  async giveAll(ask: Ask, node: string): Promise<void> {
    await give(ask, this.#schema, node);
    this.#own.clear();
    this.#spent = false;
  }

  async #read(ask: Ask, node: string): Promise<void> {
    const rows = await ask({
      text: `SELECT meter, amount FROM ${this.#schema}.slice WHERE node = $1`,
      values: [node],
    });
    this.#own.clear();
    for (const { meter, amount } of rows) this.#own.set(meter!, BigInt(amount!));
  }

  async #take(
    ask: Ask,
    node: string,
    wanted: readonly (readonly [string, Touched])[],
    now: number,
  ): Promise<void> {
    const rows = await ask({
      text: `SELECT id, part FROM ${this.#schema}.slice_1($1, $2::numeric, $3::text[], $4::numeric[])`,
      values: [
        node,
        String(this.#of.share),
        texts(wanted.map(([id]) => id)),
        numbers(wanted.map(([, { max }]) => max)),
      ],
    });
    for (const [, touched] of wanted) touched.again = now + AGAIN_MS;
    for (const { id, part } of rows) this.#own.set(id!, BigInt(part!));
  }

  async #give(ask: Ask, node: string, ids: readonly string[]): Promise<void> {
    await give(ask, this.#schema, node, ids);
    for (const id of ids) {
      this.#own.delete(id);
      const touched = this.#touched.get(id);
      if (touched) touched.again = performance.now() + AGAIN_MS;
    }
  }
}

/** What a node has set aside goes back, all of it or of these meters. Says how many slices that were. */
export async function give(
  ask: Ask,
  s: string,
  node: string,
  ids?: readonly string[],
): Promise<number> {
  const [row] = await ask({
    text: `SELECT ${s}.unslice_1($1, $2::text[])::text AS many`,
    values: [node, ids === undefined ? null : texts(ids)],
  });
  return Number(row!["many"]);
}

/** Others give back within a second or so what they have set aside. */
const SOON_MS = 1_000;
export const sooner = (verdict: Verdict): Verdict =>
  verdict.ok ? verdict : { ...verdict, retryAfterMs: Math.min(verdict.retryAfterMs, SOON_MS) };
