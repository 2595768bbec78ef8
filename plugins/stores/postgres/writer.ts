// All that this node writes goes through here, one after the other: the plain way where it can, the exact way where it must, and on its own disk
// while the database is away.
import type { InstanceFacts, StoreCommand, StoreNews, StoreOwner, Verdict } from "tollgate/plugin";
import { checkCommand, claimed } from "tollgate/store";
import { Ample } from "./ample.ts";
import { Outage } from "./apart.ts";
import { leave } from "./beat.ts";
import { labelled } from "./labelled.ts";
import { Denials } from "./denials.ts";
import type { Writing } from "./exact.ts";
import { copied } from "./copied.ts";
import type { Ask, Line } from "./line.ts";
import type { Passing } from "./passing.ts";
import { inOrder } from "./plain.ts";
import { plainly } from "./plainly.ts";
import { noted, type Noting } from "./noting.ts";
import { reunited } from "./reuniting.ts";
import { Room } from "./room.ts";
import { Slices } from "./slices.ts";
import { ThisNode } from "./this-node.ts";
import { isAway, unreachable, wordsOf } from "./trouble.ts";
import { trying, turns, type Trouble } from "./trying.ts";
import type { Writer, WriterSettings } from "./writing-door.ts";

/** A gateway looks so often whether the database has said anything, and asks where it has not. */
const BEAT_MS = 1_200;
/** What was said so lately is new enough: with the time between two looks it is a second and a half in which another gateway's changes are known here. */
const LATELY_MS = 250;
/** A node that goes on alone looks so often whether the database is back. */
const LOOK_MS = 250;
/** Silence for so long is a database that is away, for a node that can go on alone. */
const SILENT_MS = 2_000;

export const createWriter = (line: Line, settings: WriterSettings): Writer =>
  new InstanceWriter(line, settings);

class InstanceWriter implements Writer {
  readonly #line: Line;
  readonly #of: WriterSettings;
  readonly #node: ThisNode;
  readonly #inTurn = turns();
  #beat: NodeJS.Timeout | undefined;
  #about: InstanceFacts | undefined;
  readonly #slices: Slices | undefined;
  readonly #outage: Outage | undefined;
  readonly #room = new Room();
  readonly #denials: Denials | undefined;
  readonly #ample = new Ample();

  constructor(line: Line, settings: WriterSettings) {
    this.#line = line;
    this.#of = settings;
    this.#node = new ThisNode(line, settings);
    if (settings.clock !== "command") this.#denials = new Denials();
    const { folder, schema, slicesFrom = 0 } = settings;
    const away = folder ? settings.away : undefined;
    if (away || slicesFrom > 0)
      this.#slices = new Slices({
        schema,
        apart: away,
        from: slicesFrom,
        crossed: (crossings) => this.#node.crossed(crossings),
      });
    if (folder) this.#outage = new Outage(away, this.#slices, () => this.#node.tape);
  }

  get apart(): boolean {
    return this.#outage?.on ?? false;
  }

  open(
    { instance, about }: StoreOwner,
    hear: (news: StoreNews) => void,
  ): Promise<{ epoch: number; presumed: number }> {
    // One that was taken for dead can tell nothing before it is opened.
    return this.#inTurn(() =>
      this.#anyhow(async (ask) => {
        this.#node.sight.hear = (news) => {
          // An erasure changes keys too: what this node repeats of its open calls may have been taken out of them.
          if (news.type === "keys" && this.#node.mine.size > 0)
            void this.remind().catch(() => undefined);
          hear(news);
        };
        this.#about = about ?? this.#about;
        if (this.#node.me?.instance !== instance || !(await this.#node.goesOn(ask, about))) {
          await this.#node.retell(ask, instance);
          await this.#node.join(ask, instance, about);
        }
        const before = await this.#node.recall(ask, false);
        clearInterval(this.#beat);
        this.#beat = setInterval(() => this.#idle(), BEAT_MS).unref();
        return { epoch: this.#node.me!.epoch, presumed: before };
      }),
    );
  }

  apply(batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    batch.forEach(checkCommand);
    if (this.apart) return this.#alone(batch);
    return this.#inTurn(() =>
      this.#tried(
        (ask) => this.#written(ask, batch),
        (trouble) => this.#mayGoOn(trouble, batch),
      ),
    ).catch((error: unknown) => {
      this.#room.heard(error);
      if (!this.apart) throw error;
      return this.#alone(batch);
    });
  }

  note(noting: Noting): Promise<void> {
    return this.#inTurn(() =>
      this.#tried(async (ask) => {
        const { n, head } = await noted(ask, this.#of.schema, this.#node.writing(), noting);
        Object.assign(this.#node.me!, { n, head });
      }),
    );
  }

  remind = (): Promise<void> =>
    this.#inTurn(() => this.#tried((ask) => labelled(ask, this.#of.schema, this.#node.mine)));

  ask: Ask = (question) => this.#inTurn(() => this.#tried((ask) => ask(question)));

  now = (at: number): number => (this.#of.clock === "command" ? at : this.#node.sight.now());

  async end(goodbye: boolean): Promise<void> {
    clearInterval(this.#beat);
    const me = this.#node.me;
    const left =
      goodbye && me && this.#line.there && !this.apart
        ? await this.#inTurn(() => this.#leave(me)).then(
            () => true,
            () => false,
          )
        : false;
    this.#node.me = undefined;
    await this.#node.tape?.end(left);
    await this.#line.end();
  }

  async #leave({ instance, epoch }: Writing): Promise<void> {
    const ask = await this.#node.allTold(await this.#line.ask());
    await this.#slices?.giveAll(ask, instance);
    await leave(ask, this.#of.schema, epoch);
  }

  async #written(ask: Ask, batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    const alive = batch.findLast((c) => c.do === "alive");
    if (alive) {
      this.#about = alive.about ?? this.#about;
      await this.#node.recall(ask, true, alive);
    }
    if (batch.every((c) => c.do === "alive")) {
      this.#room.check();
      return inOrder(batch, new Map());
    }
    const commands = copied(batch);
    const verdicts =
      (await plainly(ask, this.#passing, commands)) ?? (await this.#exactly(ask, commands));
    await this.#node.keep(commands, verdicts);
    return verdicts;
  }

  /** It looks at meters alone: what is set aside here of those that it claims goes back first. */
  async #exactly(ask: Ask, batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    this.#denials?.clear();
    const slices = this.#slices;
    if (slices?.any) {
      const claims = batch.flatMap((c) =>
        c.do === "reserve" ? claimed(c.claims, this.now(c.at), NONE) : [],
      );
      const mine = slices.of(claims.map(({ meter }) => meter.id));
      if (mine.length > 0) await slices.give(ask, this.#node.writing().instance, mine);
    }
    return this.#node.exactly(ask, batch);
  }

  #tried<T>(work: (ask: Ask) => Promise<T>, away?: (trouble: Trouble) => void): Promise<T> {
    return this.#anyhow(async (ask) => {
      await this.#node.catchUp(ask);
      return work(ask);
    }, away);
  }

  /** `away` hears of each connection that breaks under the work. */
  #anyhow<T>(
    work: (ask: Ask) => Promise<T>,
    away = ({ times, why }: Trouble) => {
      if (times === 2) this.#node.sight.hear({ type: "away", why });
    },
  ): Promise<T> {
    return this.apart ? this.#outage!.away() : trying(this.#line, work, away);
  }

  /** A node with a disk of its own does not wait for its database: what it can, it decides by itself. */
  #mayGoOn({ times, ms, why }: Trouble, batch: readonly StoreCommand[]): void {
    if (!this.#outage) {
      if (times === 2) this.#node.sight.hear({ type: "away", why });
    } else if (times >= 2 || (this.#outage.goesOn && ms > SILENT_MS)) {
      this.#goOn(why, batch);
      unreachable(new Error(why));
    }
  }

  #goOn(why: string, batch: readonly StoreCommand[] = []): void {
    this.#outage!.begin(batch);
    this.#node.sight.hear({ type: this.#outage!.goesOn ? "alone" : "away", why });
    this.#look();
  }

  #alone(batch: readonly StoreCommand[]): Promise<readonly Verdict[]> {
    return this.#outage!.decide(copied(batch), (at) => this.now(at));
  }

  /** Again and again, until the database is back and knows all that has happened. */
  #look(): void {
    setTimeout(async () => {
      await this.#inTurn(() => this.#return()).catch(() => this.#line.drop());
      if (this.apart && this.#node.me) this.#look();
    }, LOOK_MS).unref();
  }

  async #return(): Promise<void> {
    const ask = await this.#line.ask();
    const commands = await reunited(ask, this.#node, this.#outage!, this.#about);
    // Where all that was new was refused, there may be nothing to say.
    if (this.#outage!.goesOn || commands > 0) this.#node.sight.hear({ type: "together", commands });
  }

  get #passing(): Passing {
    return {
      line: this.#line,
      of: this.#of,
      node: this.#node,
      slices: this.#slices,
      denials: this.#denials,
      ample: this.#ample,
      now: this.now,
    };
  }

  /** Another gateway's changes are to be known here soon, also where no batch brings the news. */
  #idle(): void {
    if (!this.#node.me || this.apart) return;
    const quiet = performance.now() - this.#node.wrote >= LATELY_MS;
    if (!quiet && !this.#slices && !this.#node.doubts) return;
    const looked = this.#inTurn(async () => {
      if (!this.#node.me || this.apart) return;
      const ask = await this.#line.ask();
      if (quiet) await this.#node.lives(ask);
      if (this.#node.doubts) await this.#node.doubt(ask);
      await this.#slices?.tend(ask, this.#node.me.instance, this.#line.made);
    });
    const began = performance.now();
    looked.catch((error: unknown) => {
      if (!isAway(error)) return;
      this.#line.drop();
      // A break is mended with the next batch; a silence would be that batch's, too.
      const silent = performance.now() - began > SILENT_MS;
      if (silent && this.#outage?.goesOn && this.#node.me && !this.apart)
        this.#goOn(wordsOf(error));
    });
  }
}

const NONE: ReadonlyMap<string, never> = new Map<string, never>();
