// This instance in the database: its row, its number, its chain. All that it writes goes through here, one after the other; what is not known
// after a broken connection is found out before anything else is written.
import type { StoreCommand, StoreNews, StoreOwner, Verdict } from "tollgate/plugin";
import { checkCommand } from "tollgate/store";
import { beat, join, leave, type Alive } from "./beat.ts";
import { atOnce, plan, type Mine, type Plan } from "./calls.ts";
import { labelled } from "./labelled.ts";
import { presumedOf } from "./dead.ts";
import { bytes, exactly, type Means, type Writing, type Written } from "./exact.ts";
import type { Ask, Line } from "./line.ts";
import { inOrder, judged, linkOf, pass, remember, type Missed, type Said } from "./plain.ts";
import { noted, type Noting } from "./noting.ts";
import { mend, Ring } from "./ring.ts";
import { Sight } from "./sight.ts";
import { fenced, isAway, isKnown } from "./trouble.ts";
import { trying, turns } from "./trying.ts";
import type { Writer, WriterSettings } from "./writing-door.ts";

/** Rounds of a batch that was full, before it is decided under locks. */
const ROUNDS = 8;
/** Another gateway's changes are known here as soon. */
const BEAT_MS = 1_000;

export const createWriter = (line: Line, settings: WriterSettings): Writer =>
  new InstanceWriter(line, settings);

class InstanceWriter implements Writer {
  readonly #line: Line;
  readonly #of: WriterSettings;
  readonly #sight = new Sight();
  readonly #mine = new Map<string, Mine>();
  #me: { instance: string; epoch: number; n: number; head: Buffer } | undefined;
  /** Sent, and not answered: what is so if it has happened. */
  #pending: { readonly head: Buffer; readonly done: () => void } | undefined;
  readonly #inTurn = turns();
  #beat: NodeJS.Timeout | undefined;
  #wrote = 0;
  readonly #ring = new Ring();
  /** The database knows nothing of this node any more; and batches that are to be told again. */
  #lost = false;
  readonly #owed: (readonly StoreCommand[])[] = [];
  #known = 0;

  constructor(line: Line, settings: WriterSettings) {
    this.#line = line;
    this.#of = settings;
  }

  open(
    { instance, about }: StoreOwner,
    hear: (news: StoreNews) => void,
  ): Promise<{ epoch: number; presumed: number }> {
    return this.#inTurn(() =>
      this.#tried(async (ask) => {
        this.#sight.hear = (news) => {
          // An erasure changes keys too: what this node repeats of its open calls may have been taken out of them.
          if (news.type === "keys" && this.#mine.size > 0)
            void this.remind().catch(() => undefined);
          hear(news);
        };
        const known = this.#me?.instance === instance && (await this.#lives(ask, false, { about }));
        if (!known) await this.#join(ask, instance, about);
        const before = await this.#recall(ask, false);
        clearInterval(this.#beat);
        this.#beat = setInterval(() => this.#idle(), BEAT_MS).unref();
        return { epoch: this.#me!.epoch, presumed: before };
      }),
    );
  }

  apply(batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    batch.forEach(checkCommand);
    return this.#inTurn(() =>
      this.#tried(async (ask) => {
        const alive = batch.findLast((c) => c.do === "alive");
        if (alive) await this.#recall(ask, true, alive);
        if (batch.every((c) => c.do === "alive")) return inOrder(batch, new Map());
        const commands = structuredClone(batch);
        const plain = this.#plan(commands);
        const verdicts =
          (plain && (await this.#plainly(ask, commands, plain))) ??
          (await this.#exactly(ask, commands));
        this.#ring.keep(commands, verdicts, this.#writing().n);
        return verdicts;
      }),
    );
  }

  note(noting: Noting): Promise<void> {
    return this.#inTurn(() =>
      this.#tried(async (ask) => {
        const { n, head } = await noted(ask, this.#of.schema, this.#writing(), noting);
        Object.assign(this.#me!, { n, head });
      }),
    );
  }

  remind = (): Promise<void> =>
    this.#inTurn(() => this.#tried((ask) => labelled(ask, this.#of.schema, this.#mine)));

  ask: Ask = (question) => this.#inTurn(() => this.#tried((ask) => ask(question)));

  now = (at: number): number => (this.#of.clock === "command" ? at : this.#sight.now());

  async end(goodbye: boolean): Promise<void> {
    clearInterval(this.#beat);
    const me = this.#me;
    if (goodbye && me && this.#line.there)
      await this.#inTurn(async () =>
        leave(await this.#line.ask(), this.#of.schema, me.epoch),
      ).catch(() => undefined);
    this.#me = undefined;
    await this.#line.end();
  }

  #tried<T>(work: (ask: Ask) => Promise<T>): Promise<T> {
    return trying(
      this.#line,
      async (ask) => {
        if (this.#pending || (this.#me && this.#known !== this.#line.made))
          await this.#findOut(ask);
        this.#known = this.#line.made;
        if (this.#owed.length > 0 && !this.#lost) await this.#mend(ask);
        return work(ask);
      },
      (why) => this.#sight.hear({ type: "away", why }),
    );
  }

  /** A new connection is asked for the node's own row: whether a batch that was under way has happened, and whether the database was set back. */
  async #findOut(ask: Ask): Promise<void> {
    const me = this.#writing();
    const [row] = await ask({
      text: `SELECT n, head FROM ${this.#of.schema}.node WHERE epoch = $1`,
      values: [me.epoch],
    });
    // It is gone with all else: this node is refused, begins anew, and tells what it has kept then.
    if (!row) return void (this.#lost = true);
    const [before, n, head] = [me.n, Number(row["n"]), bytes(row["head"]!)];
    const pending = this.#pending;
    this.#pending = undefined;
    Object.assign(this.#me!, { n, head });
    if (pending?.head.equals(head)) pending.done();
    if (n >= before) return;
    const { batches, whole } = this.#ring.after(n);
    if (!whole) this.#sight.hear({ type: "lost", instance: me.instance, from: n + 1, to: before });
    this.#owed.push(...batches);
  }

  #mend(ask: Ask): Promise<void> {
    return mend(
      this.#owed,
      this.#ring,
      (facts) => this.#exactly(ask, facts),
      () => this.#me!.n,
    );
  }

  #writing(): Writing {
    if (!this.#me) throw new Error("The store is not open.");
    return this.#me;
  }

  async #join(ask: Ask, instance: string, about: unknown): Promise<void> {
    const epoch = await join(ask, this.#of.schema, instance, about, this.#of.leaseMs);
    this.#mine.clear();
    this.#pending = undefined;
    this.#me = { instance, epoch, n: 0, head: Buffer.alloc(0) };
    const kept = this.#ring.begin();
    if (this.#lost) this.#owed.push(...kept);
    this.#lost = false;
    await this.#mend(ask);
  }

  #plan(batch: readonly StoreCommand[]): Plan | undefined {
    if (this.#of.clock === "command" && !atOnce(batch)) return undefined;
    return plan(batch, this.#mine, this.#writing().instance, (at) => this.now(at));
  }

  /** Undefined: this batch has to go the exact way. */
  async #plainly(
    ask: Ask,
    batch: readonly StoreCommand[],
    first: Plan,
  ): Promise<readonly Verdict[] | undefined> {
    const refused = new Map<string, Verdict>();
    let of: Plan | undefined = first;
    for (let round = 0; of && round < ROUNDS; round++) {
      if (of.steps.length + of.heard.length === 0) return inOrder(batch, refused);
      const said: Said | undefined = await this.#passed(ask, of, batch);
      if (!said || said.how === "look") return undefined;
      if (said.how === "done") return inOrder(batch, refused);
      if (!("states" in said)) return undefined;
      const verdicts = judged(of, said);
      if (said.how === "ok") return inOrder(batch, new Map([...verdicts, ...refused]));
      const before = refused.size;
      for (const [attempt, verdict] of verdicts) if (!verdict.ok) refused.set(attempt, verdict);
      if (refused.size === before) return undefined;
      of = this.#plan(batch.filter((c) => !("attempt" in c && refused.has(c.attempt))));
    }
    return undefined;
  }

  /** Undefined: what is really there has to be read first. */
  async #passed(
    ask: Ask,
    of: Plan,
    batch: readonly StoreCommand[],
  ): Promise<Exclude<Said, Missed> | undefined> {
    const me = this.#writing();
    const hash = linkOf(of, me.head);
    const at =
      this.#of.clock === "command" ? (batch.find((c) => c.do !== "alive")?.at ?? null) : null;
    const done = () => remember(of, this.#mine);
    this.#pending = { head: hash, done };
    const began = performance.now();
    try {
      const said = await pass(ask, this.#of, of, { epoch: me.epoch, n: me.n + 1, hash, at });
      this.#pending = undefined;
      if (!("versions" in said)) {
        if (said.how === "fenced") return fenced();
        await this.#findOut(ask);
        return undefined;
      }
      this.#saw(said, performance.now() - began);
      if (said.how === "ok" || said.how === "done") {
        Object.assign(this.#me!, { n: me.n + 1, head: hash });
        done();
      }
      return said;
    } catch (error) {
      if (!isAway(error)) this.#pending = undefined;
      if (!isKnown(error)) throw error;
      return undefined;
    }
  }

  async #exactly(ask: Ask, batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    const { schema, clock } = this.#of;
    const means: Means = {
      ask,
      schema,
      own: clock === "command" ? ({ at }) => at : undefined,
      committing: (written) =>
        (this.#pending = { head: written.head, done: () => this.#took(written) }),
    };
    try {
      const written = await exactly(batch, this.#writing(), means);
      this.#pending = undefined;
      this.#took(written);
      return written.verdicts;
    } catch (error) {
      if (!isAway(error)) this.#pending = undefined;
      if (isKnown(error)) throw Object.assign(new Error("Others were faster."), { code: "40001" });
      throw error;
    }
  }

  #took({ n, head, rows, settled }: Written): void {
    Object.assign(this.#me!, { n, head });
    for (const row of rows) if (row.kind === "reserve") this.#mine.set(row.attempt, { row });
    for (const attempt of settled) this.#mine.delete(attempt);
    this.#wrote = performance.now();
  }

  #saw({ versions, t }: { versions: string; t: number }, tripMs: number): void {
    this.#sight.versions(versions);
    if (this.#of.clock === "database") this.#sight.clock(t, tripMs);
    this.#wrote = performance.now();
  }

  /** False: this node was taken for dead. */
  async #lives(ask: Ask, look = false, said?: Alive): Promise<readonly string[] | false> {
    const began = performance.now();
    const heard = await beat(ask, this.#of.schema, this.#writing().epoch, look, said);
    if (heard) this.#saw(heard, performance.now() - began);
    return heard?.dead ?? false;
  }

  /** Settles what the dead have left open, and says whose calls these were. */
  async #recall(ask: Ask, tell: boolean, said?: Alive): Promise<number> {
    for (let many = 0; ;) {
      const dead = await this.#lives(ask, true, said);
      if (dead === false) return fenced();
      const calls = await presumedOf(ask, this.#of.schema, dead, this.#sight.now());
      if (calls.commands.length === 0) return many;
      await this.#exactly(ask, calls.commands);
      many += calls.commands.length;
      if (tell)
        for (const [instance, of] of calls.by)
          this.#sight.hear({ type: "presumed", instance, calls: of });
    }
  }

  #idle(): void {
    if (!this.#me || performance.now() - this.#wrote < BEAT_MS) return;
    const looked = this.#inTurn(async () => this.#me && this.#lives(await this.#line.ask()));
    looked.catch((error: unknown) => isAway(error) && this.#line.drop());
  }
}
