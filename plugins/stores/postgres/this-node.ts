// This node as the database knows it: its row, its number, its chain, and what it has open. What is not known after a broken connection is found out
// before anything else is written.
import type { InstanceFacts, LimitCrossing, StoreCommand, Verdict } from "tollgate/plugin";
import { beat, join, type Alive } from "./beat.ts";
import type { Mine } from "./calls.ts";
import { presumedOf } from "./dead.ts";
import { bytes, exactly, type Means, type Writing, type Written } from "./exact.ts";
import { Heads } from "./heads.ts";
import type { Ask, Line } from "./line.ts";
import { retell } from "./retelling.ts";
import { mend, Ring } from "./ring.ts";
import { Sight } from "./sight.ts";
import { forget, leftIn, Tape } from "./tape.ts";
import { KnownTerms } from "./terms.ts";
import { crossedIn, giveDead } from "./slice-questions.ts";
import { fenced, isAway, isKnown, wordsOf } from "./trouble.ts";
import type { WriterSettings } from "./writing-door.ts";

export class ThisNode {
  readonly #line: Line;
  readonly #of: WriterSettings;
  readonly sight = new Sight();
  readonly mine = new Map<string, Mine>();
  readonly terms = new KnownTerms();
  me: { instance: string; epoch: number; n: number; head: Buffer } | undefined;
  /** Sent, and not answered: what is so if it has happened. */
  pending: { readonly head: Buffer; readonly done: () => void } | undefined;
  wrote = 0;
  readonly ring = new Ring();
  /** The database knows nothing of this node any more. */
  lost = false;
  /** Batches that are to be told again. */
  readonly owed: (readonly StoreCommand[])[] = [];
  /** The connection at which all is known. */
  known = 0;
  tape: Tape | undefined;
  readonly #heads: Heads;

  constructor(line: Line, of: WriterSettings) {
    this.#line = line;
    this.#of = of;
    this.#heads = new Heads(of.schema);
  }

  /** Before anything is asked: what is not known is found out, and what the database has lost is told. */
  async catchUp(ask: Ask): Promise<void> {
    await this.#know(ask);
    if (this.owed.length > 0 && !this.lost) await this.mend(ask);
  }

  /** False: it was taken for dead, or the database knows nothing of it. What is to be told is told under a new row then. */
  async goesOn(ask: Ask, about?: InstanceFacts): Promise<boolean> {
    await this.#know(ask);
    if (this.lost || !(await this.lives(ask, false, { about }))) return false;
    await this.mend(ask);
    return true;
  }

  async #know(ask: Ask): Promise<void> {
    if (this.pending || (this.me && this.known !== this.#line.made)) await this.findOut(ask);
    this.known = this.#line.made;
  }

  /** What the database has lost is told before this node ends, or stays on its disk for the next one. */
  async allTold(ask: Ask): Promise<Ask> {
    await this.catchUp(ask);
    return this.lost ? fenced() : ask;
  }

  /** Two copies of it: here, and on this node's own disk. */
  async keep(commands: readonly StoreCommand[], verdicts: readonly Verdict[]): Promise<void> {
    const { epoch, n } = this.writing();
    const batch = this.ring.keep(commands, verdicts, n);
    if (batch.length > 0) await this.tape?.told({ epoch, n, batch });
  }

  /**
   * Of each new connection the node's own row is asked. It says whether a batch that was under way has happened, and whether the database was
   * set back to before what was acknowledged.
   */
  async findOut(ask: Ask): Promise<void> {
    const me = this.writing();
    const [row] = await ask({
      text: `SELECT n, head FROM ${this.#of.schema}.node WHERE epoch = $1 AND id = $2`,
      values: [me.epoch, me.instance],
    });
    // It is gone with all else: this node is refused, begins anew, and tells what it has kept then.
    if (!row) return void (this.lost = true);
    const before = me.n;
    const [n, head] = [Number(row["n"]), bytes(row["head"]!)];
    const pending = this.pending;
    this.pending = undefined;
    Object.assign(this.me!, { n, head });
    if (pending?.head.equals(head)) pending.done();
    if (n >= before) return;
    const { batches, whole } = this.ring.after(n);
    if (!whole) this.sight.hear({ type: "lost", instance: me.instance, from: n + 1, to: before });
    this.owed.push(...batches);
  }

  mend(ask: Ask): Promise<void> {
    return mend(this.owed, (facts) => this.again(ask, facts));
  }

  /** What was told before, and is told once more. */
  async again(ask: Ask, facts: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    const verdicts = await this.exactly(ask, facts);
    this.crossed(verdicts.flatMap((verdict) => (verdict.ok && verdict.crossed) || []));
    await this.keep(facts, verdicts);
    return verdicts;
  }

  /** What no client's call waits to hear. */
  crossed(crossings: readonly LimitCrossing[]): void {
    if (crossings.length > 0) this.sight.hear({ type: "crossed", crossings });
  }

  /** What processes before this one have left in its folder. */
  async retell(ask: Ask, instance: string): Promise<void> {
    const { folder, schema, leaseMs, disk } = this.#of;
    if (!folder) return;
    // A process that this one succeeds may have had its name.
    const own = this.tape?.instance === instance;
    const before = this.me;
    for (const left of await leftIn(folder(), own ? instance : "", disk)) {
      const as = (epoch: number) => {
        this.me = { instance: left.instance, epoch, n: 0, head: Buffer.alloc(0) };
        this.terms.forget();
        return (facts: readonly StoreCommand[]) => this.exactly(ask, facts);
      };
      // Where it breaks, this node is the one that it was.
      const commands = await retell(ask, schema, left, { leaseMs, as }).finally(() => {
        this.me = before;
        this.terms.forget();
        if (!before) this.pending = undefined;
      });
      await forget(folder(), left, disk);
      if (commands > 0) this.sight.hear({ type: "retold", instance: left.instance, commands });
    }
    if (own) return;
    await this.tape?.end(false);
    const troubled = (error: unknown) => this.sight.hear({ type: "unkept", why: wordsOf(error) });
    this.tape = new Tape(folder(), instance, troubled, disk);
    await this.tape.begin();
  }

  writing(): Writing {
    if (!this.me) throw new Error("The store is not open.");
    return this.me;
  }

  async join(ask: Ask, instance: string, about: unknown): Promise<void> {
    const epoch = await join(ask, this.#of.schema, instance, about, this.#of.leaseMs);
    this.mine.clear();
    this.terms.forget();
    this.pending = undefined;
    this.me = { instance, epoch, n: 0, head: Buffer.alloc(0) };
    if (this.lost) this.owed.push(...this.ring.after(-1).batches);
    this.ring.begin();
    this.lost = false;
    await this.mend(ask);
  }

  async exactly(ask: Ask, batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    const { schema, clock } = this.#of;
    const means: Means = {
      ask,
      schema,
      terms: this.terms,
      own: clock === "command" ? ({ at }) => at : undefined,
      committing: (written) =>
        (this.pending = { head: written.head, done: () => this.took(written) }),
    };
    try {
      const written = await exactly(batch, this.writing(), means);
      this.pending = undefined;
      this.took(written);
      return written.verdicts;
    } catch (error) {
      if (!isAway(error)) this.pending = undefined;
      if (!isKnown(error)) throw error;
      this.terms.forget();
      throw Object.assign(new Error("Others were faster."), { code: "40001" });
    }
  }

  took({ n, head, rows, booked, settled }: Written): void {
    Object.assign(this.me!, { n, head });
    this.terms.wrote(booked);
    for (const row of rows) if (row.kind === "reserve") this.mine.set(row.attempt, { row });
    for (const attempt of settled) this.mine.delete(attempt);
    this.wrote = performance.now();
  }

  saw({ versions, t }: { versions: string; t: number }, tripMs: number): void {
    this.sight.versions(versions);
    if (this.#of.clock === "database") this.sight.clock(t, tripMs);
    this.wrote = performance.now();
  }

  /** False: this node was taken for dead. */
  async lives(ask: Ask, look = false, said?: Alive): Promise<readonly string[] | false> {
    const began = performance.now();
    const heard = await beat(ask, this.#of.schema, this.writing().epoch, look, said);
    if (heard) this.saw(heard, performance.now() - began);
    return heard?.dead ?? false;
  }

  /** What others have told the database may be gone. */
  get doubts(): boolean {
    return this.#heads.due(this.#line.made);
  }

  async doubt(ask: Ask): Promise<void> {
    for (const news of await this.#heads.look(ask, this.writing().epoch)) this.sight.hear(news);
  }

  /** Settles what the dead have left open, and says whose calls these were. */
  async recall(ask: Ask, tell: boolean, said?: Alive): Promise<number> {
    for (let many = 0; ;) {
      const dead = await this.lives(ask, true, said);
      if (dead === false) return fenced();
      if (many === 0) this.crossed(crossedIn(await giveDead(ask, this.#of.schema)));
      if (tell && many === 0) await this.doubt(ask);
      const calls = await presumedOf(ask, this.#of.schema, dead, this.sight.now());
      if (calls.commands.length === 0) return many;
      const verdicts = await this.exactly(ask, calls.commands);
      this.crossed(verdicts.flatMap((verdict) => (verdict.ok && verdict.crossed) || []));
      many += calls.commands.length;
      if (tell)
        for (const [instance, of] of calls.by)
          this.sight.hear({ type: "presumed", instance, calls: of });
    }
  }
}
