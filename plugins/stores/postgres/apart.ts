// While the database is away: what has ended is written to the node's own disk, and told to the database later. A call that is new goes on, where the
// operator allows it, if this node has set something aside of each budget that it draws on, and at least of one. Nothing is overrun, because what is
// spent here was taken out before. Rates and calls at once are this node's part of them.
import { fault, type StoreCommand, type Verdict } from "tollgate/plugin";
import { claimed, createBook, isCalendar } from "tollgate/store";
import { kindOf } from "./calls.ts";
import { BLANK } from "./replay.ts";
import type { Apart } from "./slice-questions.ts";
import type { Slices } from "./slices.ts";
import type { Tape } from "./tape.ts";
import { unreachable } from "./trouble.ts";
import { turns } from "./trying.ts";

type Batch = readonly StoreCommand[];
type Reserve = Extract<StoreCommand, { do: "reserve" }>;
type Claims = Reserve["claims"];

/** Commands that wait for the database at most: beyond it nothing new is begun. */
const MOST_OWED = 200_000;

/** One command of the batch cannot be taken now, whatever the others are. */
const notNow = (): Error =>
  fault("unavailable", "The database is away, and nothing was set aside for this.", {
    code: "not_now",
    retryAfterMs: 1_000,
  });

export class Outage {
  readonly #of: Apart | undefined;
  readonly #slices: Slices | undefined;
  readonly #tape: () => Tape | undefined;
  #book = createBook(BLANK, () => "");
  #since: number | undefined;
  #owed: Batch[] = [];
  #many = 0;
  /** The last batch that is being decided: those before it are over when it is. */
  #deciding: Promise<void> | undefined;
  /** One batch at a time, for one that is refused takes back what the book has of it alone; and the disk is not cleared over what it is to keep. */
  readonly #inTurn = turns();
  /** Calls of a batch whose answer was lost, and that were refused then: the database may have them. */
  readonly #doubtful = new Set<string>();

  /** `of`: undefined: nothing that is new goes on. */
  constructor(of: Apart | undefined, slices: Slices | undefined, tape: () => Tape | undefined) {
    this.#of = of;
    this.#slices = slices;
    this.#tape = tape;
  }

  /** The database is away: all is decided here. */
  get on(): boolean {
    return this.#since !== undefined;
  }

  /** New calls are decided here, too. */
  get goesOn(): boolean {
    return this.#of !== undefined;
  }

  /** What only the database can answer. */
  away(): never {
    const what = this.goesOn ? "this gateway goes on alone" : "it is looked for again and again";
    return unreachable(new Error(what));
  }

  /** `sent`: the batch of which it is not known whether it has happened. */
  begin(sent: Batch): void {
    this.#since = performance.now();
    this.#book = createBook(BLANK, () => "");
    for (const c of sent) if (c.do === "reserve") this.#doubtful.add(c.attempt);
  }

  /** As the store's `apply`; resolves when it is on the disk. */
  decide(batch: Batch, now: (at: number) => number): Promise<readonly Verdict[]> {
    const deciding = this.#inTurn(() => this.#decide(batch, now));
    const over = deciding.then(
      () => {},
      () => {},
    );
    this.#deciding = over;
    void over.then(() => this.#deciding === over && (this.#deciding = undefined));
    return deciding;
  }

  async #decide(batch: Batch, now: (at: number) => number): Promise<readonly Verdict[]> {
    const facts: StoreCommand[] = [];
    try {
      const verdicts = batch.map((c) => this.#decided(c, now, facts));
      if (facts.length > 0) await this.#tape()!.owe(facts);
      this.#book.done();
      for (const c of facts) this.#doubtful.delete("attempt" in c ? c.attempt : "");
      if (facts.length > 0) this.#owed.push(facts);
      this.#many += facts.length;
      return verdicts;
    } catch (error) {
      this.#book.undo();
      throw error;
    }
  }

  /** A batch is being decided: what comes of it is to be told, too. */
  get deciding(): Promise<void> | undefined {
    return this.#deciding;
  }

  /** What is to be told next. */
  get first(): Batch | undefined {
    const [first] = this.#owed;
    if (first || this.#doubtful.size === 0) return first;
    const at = Date.now();
    return [...this.#doubtful].map((attempt) => abandoned(attempt, at));
  }

  /** The database has this batch, which `first` returned. Another one may have been decided meanwhile, and has not been sent. */
  told(batch: Batch): void {
    if (this.#owed[0] === batch) this.#owed.shift();
    else this.#doubtful.clear();
  }

  /** Nothing is left to tell. Says how many commands were told. */
  async end(): Promise<number> {
    this.#since = undefined;
    if (this.goesOn) this.#slices?.spent();
    const many = this.#many;
    this.#many = 0;
    await this.#inTurn(() => this.#tape()!.paid());
    return many;
  }

  #decided(c: StoreCommand, now: (at: number) => number, facts: StoreCommand[]): Verdict {
    switch (c.do) {
      case "reserve":
        return this.#begun(c, now(c.at), facts);
      case "settle":
        if (this.#book.open.get(c.attempt)) this.#book.apply({ ...c, at: now(c.at) });
        facts.push(c);
        return OK;
      case "price":
        facts.push(c);
        return OK;
      case "progress":
        return OK;
      case "alive":
        // A host that asks whether there is room for what is new.
        return this.goesOn ? OK : this.away();
      default:
        throw notNow();
    }
  }

  #begun(c: Reserve & { at: number }, at: number, facts: StoreCommand[]): Verdict {
    if (this.#book.open.get(c.attempt)) return OK;
    const parts = this.#mayBegin ? this.#partsOf(c.claims, at) : undefined;
    if (!parts) throw notNow();
    const verdict = this.#book.apply({ do: "reserve", at, attempt: c.attempt, claims: parts });
    if (verdict.ok) {
      facts.push(c);
      return OK;
    }
    // Of the budget there may be more: this node has no more of it.
    if (isCalendar(verdict.denied.per)) throw notNow();
    return verdict;
  }

  get #mayBegin(): boolean {
    if (!this.#of || performance.now() - this.#since! > this.#of.forMs) return false;
    return this.#many <= MOST_OWED;
  }

  /** Its claims on what this node has of each limit. Undefined: of one of them nothing. */
  #partsOf(claims: Claims, at: number): Claims | undefined {
    const slices = this.#slices!;
    const live = BigInt(slices.live);
    let budgets = 0;
    const parts: Claims[number][] = [];
    for (const { scope, unit, per, take, most, meter } of claimed(claims, at, NONE)) {
      let max = most > 0n && most < live ? 1n : most / live;
      if (isCalendar(kindOf(meter.id).per)) {
        const part = slices.part(meter.id);
        const here = this.#book.meters.get(meter.id);
        // A call that takes nothing is never refused by a limit, and has to be where there is nothing more.
        if (part === undefined || (here && here.level + here.held >= part)) return undefined;
        max = part;
        budgets++;
      }
      parts.push({ scope, unit, per, take, max });
    }
    return budgets > 0 ? parts : undefined;
  }
}

const OK: Verdict = { ok: true };
const NONE: ReadonlyMap<string, never> = new Map<string, never>();

/** Nothing was sent for it. */
const abandoned = (attempt: string, at: number): StoreCommand => ({
  do: "settle",
  at,
  attempt,
  state: "void",
  usage: {},
  costNano: 0n,
  outcome: "abandoned",
});
