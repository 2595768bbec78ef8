// The slices of this node: of which budgets it has set a part aside, when it takes one, and when it gives it back. Of hot budgets they are what its
// calls are counted in; all others are there for when the database is away, and nothing is spent from them before.
import type { LimitCrossing } from "tollgate/plugin";
import { Busy, type Touched } from "./busy.ts";
import type { Sum } from "./calls.ts";
import type { Ask, Row } from "./line.ts";
import {
  areAny,
  crossedIn,
  give,
  read,
  recall,
  take,
  touched,
  wantedBack,
  type Apart,
  type Wanted,
} from "./slice-questions.ts";

/** Meters in one statement. */
const AT_ONCE = 500;
/** Meters of which it is remembered that a client was refused. */
const MOST = 10_000;
/** A meter that had no room is asked for again. */
const AGAIN_MS = 10_000;
/** A meter at which many are refused is recalled so often. */
const RECALL_MS = 1_000;
/** A budget that no call has drawn on for so long is forgotten, and its slice goes back. */
const IDLE_MS = 10_000;
/** A fleet that is too small for hot budgets is counted so often. */
const COUNT_MS = 10_000;

interface Own {
  amount: bigint;
  spent: bigint;
  /** The limit that it was taken of, and what the meter said then. Undefined: nothing is spent from it. */
  readonly of?: { readonly max: bigint; readonly level: bigint; readonly held: bigint };
}

/** What a batch takes of meters, and of slices. */
export interface Split {
  readonly metered: readonly Sum[];
  readonly sliced: readonly Sum[];
}

interface SlicesOf {
  readonly schema: string;
  readonly apart: Apart | undefined;
  /** A budget on which so many draw is hot; 0: none is. */
  readonly from: number;
  /** Hears what was crossed when meters were told what slices have spent. */
  crossed(crossings: readonly LimitCrossing[]): void;
}

export class Slices {
  readonly #of: SlicesOf;
  readonly #own = new Map<string, Own>();
  readonly #busy = new Busy();
  readonly #refused = new Map<string, { at: number; others: boolean }>();
  /** They were spent from, and all of them go back first. */
  #spent = false;
  #made = 0;
  #counted = -Infinity;
  #anyAt = -Infinity;
  #any = false;
  /** Gateways that live, this one included. */
  live = 1;

  constructor(of: SlicesOf) {
    this.#of = of;
  }

  /** What is set aside of a meter; undefined: nothing, or what there was may be spent. */
  part(id: string): bigint | undefined {
    return this.#spent ? undefined : this.#own.get(id)?.amount;
  }

  /** Calls have claimed these. */
  touch(sums: readonly Sum[]): void {
    this.#busy.touch(sums);
  }

  /** From now on nothing of them is known to be unspent. */
  spent(): void {
    this.#spent = true;
  }

  /** They are not as this node thought. */
  forget(): void {
    this.#own.clear();
    this.#made = -1;
  }

  /** Which of a batch's sums are counted in slices: those that fit there. */
  split(sums: readonly Sum[], made: number): Split | undefined {
    if (this.#own.size === 0 || this.#spent || made !== this.#made) return undefined;
    const metered: Sum[] = [];
    const sliced: Sum[] = [];
    for (const sum of sums) {
      const own = this.#own.get(sum.id);
      if (!own?.of || (sum.max !== null && sum.max < own.of.max)) metered.push(sum);
      else if (own.amount < sum.run || own.amount < (sum.need ?? 0n)) metered.push(sum);
      else sliced.push(sum);
    }
    return sliced.length > 0 ? { metered, sliced } : undefined;
  }

  /** It is sent: what it takes is not there any more, until it is known whether that has happened. */
  send(sliced: readonly Sum[]): (happened: boolean) => void {
    const owns = sliced.map((sum) => [sum, this.#own.get(sum.id)!] as const);
    const taken = ({ run }: Sum) => (run > 0n ? run : 0n);
    for (const [sum, own] of owns) own.amount -= taken(sum);
    return (happened) => {
      for (const [sum, own] of owns) {
        own.amount += taken(sum) - (happened ? sum.run : 0n);
        if (happened) own.spent += sum.used;
      }
    };
  }

  /** A sliced meter as the book is to see it: what others have set aside is held, what this node has is room. */
  state(id: string): string {
    const { amount, spent, of } = this.#own.get(id)!;
    const { level, held, max } = of!;
    // A peak that nothing comes to: what is crossed is told when the meter hears what was spent.
    return [level + spent, held - spent - amount, 0, max, level + spent + max].join(" ");
  }

  get any(): boolean {
    return this.#own.size > 0;
  }

  /** Those of them of which this node has set something aside, so that their meters say less than there is. */
  of(ids: readonly string[]): readonly string[] {
    return ids.filter((id) => this.#own.has(id));
  }

  /** `made`: how many connections there were. A new one may lead to a database that does not know of the last slices. */
  async tend(ask: Ask, node: string, made: number): Promise<void> {
    if (this.#spent) await this.giveAll(ask, node);
    const now = performance.now();
    const kept = this.#of.apart ? 2 * this.#of.apart.forMs : IDLE_MS;
    const gone = this.#busy.forget(now - kept);
    const busy = this.#busy.look();
    const standing = this.#of.apart
      ? [...this.#busy.all].filter(([id, of]) => of.again <= now && !this.#own.has(id))
      : [];
    const mayBeHot = this.#mayBeHot(busy, now);
    if (made !== this.#made && this.#made !== 0) await this.#read(ask, node);
    this.#made = made;
    if (this.#own.size + standing.length === 0 && !mayBeHot) return;
    if (this.#own.size + standing.length > 0) {
      const needed = await wantedBack(ask, this.#of.schema, node);
      this.live = needed.live;
      const back = new Set([...needed.back, ...gone]);
      for (const [id, { of }] of this.#own) if (this.#isOver(id, of?.max ?? 0n)) back.add(id);
      const mine = [...back].filter((id) => this.#own.has(id));
      if (mine.length > 0) await this.give(ask, node, mine);
    }
    if (standing.length > 0) await this.#stand(ask, node, standing.slice(0, AT_ONCE), now);
    if (mayBeHot) await this.#heat(ask, node, busy, now);
    await this.#tell(ask, node);
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
    if (!(await this.#areAny(ask))) return undefined;
    const now = performance.now();
    const fresh = ids.filter((id) => (this.#refused.get(id)?.at ?? -Infinity) < now - RECALL_MS);
    if (this.#refused.size > MOST) this.#refused.clear();
    if (fresh.length > 0) {
      const others = (await recall(ask, this.#of.schema, fresh)) > 0;
      for (const id of fresh) this.#refused.set(id, { at: now, others });
    }
    const mine = ids.filter((id) => this.#own.has(id));
    if (mine.length > 0) {
      await this.give(ask, node, mine);
      return "own";
    }
    return ids.some((id) => this.#refused.get(id)?.others) ? "others" : undefined;
  }

  async giveAll(ask: Ask, node: string): Promise<void> {
    this.#of.crossed(crossedIn(await give(ask, this.#of.schema, node)));
    this.#own.clear();
    this.#spent = false;
  }

  async give(ask: Ask, node: string, ids: readonly string[]): Promise<void> {
    this.#of.crossed(crossedIn(await give(ask, this.#of.schema, node, ids)));
    for (const id of ids) {
      this.#own.delete(id);
      const touched = this.#busy.all.get(id);
      if (touched) touched.again = performance.now() + AGAIN_MS;
    }
  }

  /** No call has drawn on it of late, or its limit is a lower one now. */
  #isOver(id: string, max: bigint): boolean {
    const touched = this.#busy.all.get(id);
    if (touched && touched.max < max) return true;
    return !this.#of.apart && (!touched || touched.calls < 1);
  }

  #mayBeHot(busy: readonly unknown[], now: number): boolean {
    if (this.#of.from === 0 || busy.length === 0) return false;
    return this.live >= this.#of.from || this.#counted < now - COUNT_MS;
  }

  /** One question a second for all refusals: mostly there are no slices. */
  async #areAny(ask: Ask): Promise<boolean> {
    if (this.#own.size > 0) return true;
    const now = performance.now();
    if (this.#anyAt > now - RECALL_MS) return this.#any;
    this.#any = await areAny(ask, this.#of.schema);
    this.#anyAt = now;
    return this.#any;
  }

  async #read(ask: Ask, node: string): Promise<void> {
    const all = await read(ask, this.#of.schema, node);
    this.#own.clear();
    for (const [meter, amount] of all) this.#own.set(meter, { amount, spent: 0n });
  }

  async #stand(ask: Ask, node: string, of: readonly (readonly [string, Touched])[], now: number) {
    for (const [, touched] of of) touched.again = now + AGAIN_MS;
    const wanted = of.map(([id, { max }]) => ({ id, max, want: null, take: 0n }));
    for (const row of await this.#take(ask, node, wanted))
      this.#own.set(row["id"]!, { amount: BigInt(row["amount"]!), spent: 0n });
  }

  /** Those of the busy ones that enough others draw on as well are spent from slices from now on. */
  async #heat(ask: Ask, node: string, busy: readonly (readonly [string, Touched])[], now: number) {
    this.#counted = now;
    const ids = busy.map(([id]) => id);
    const { live, hot } = await touched(ask, this.#of.schema, { node, ids, from: this.#of.from });
    this.live = live;
    const cold = busy.flatMap(([id]) => (!hot.has(id) && this.#own.get(id)?.of ? [id] : []));
    if (cold.length > 0) await this.give(ask, node, cold);
    await this.#fill(
      ask,
      node,
      busy.filter(([id, { again }]) => hot.has(id) && (again <= now || this.#own.get(id)?.of)),
    );
  }

  /** What was spent is told where nothing more was asked for. */
  #tell(ask: Ask, node: string): Promise<void> {
    return this.#fill(
      ask,
      node,
      [...this.#own].flatMap(([id, { spent, of }]) =>
        spent > 0n ? [[id, { max: of!.max, want: 0n, calls: 0 }] as const] : [],
      ),
    );
  }

  async #fill(
    ask: Ask,
    node: string,
    of: readonly (readonly [string, Pick<Touched, "max" | "want" | "calls">])[],
  ): Promise<void> {
    if (of.length === 0) return;
    const wanted = of.map(([id, { max, want, calls }]) => ({
      id,
      max,
      want,
      take: calls < 1 ? want : want / BigInt(Math.ceil(calls)),
    }));
    const rows = await this.#take(ask, node, wanted);
    const maxes = new Map(of.map(([id, { max }]) => [id, max]));
    const said = new Map(rows.map((row) => [row["id"]!, row]));
    for (const { id } of wanted) {
      const row = said.get(id);
      if (!row) this.#own.delete(id);
      else
        this.#own.set(id, {
          amount: BigInt(row["amount"]!),
          spent: 0n,
          of: { max: maxes.get(id)!, level: BigInt(row["level"]!), held: BigInt(row["held"]!) },
        });
    }
  }

  async #take(ask: Ask, node: string, wanted: readonly Wanted[]): Promise<readonly Row[]> {
    const rows = await take(ask, this.#of.schema, { node, apart: this.#of.apart, wanted });
    this.#of.crossed(crossedIn(rows));
    return rows;
  }
}
