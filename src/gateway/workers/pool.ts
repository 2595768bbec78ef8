// The workers of a gateway, from the side of the primary: hired together, given the same orders, replaced when one dies.
// What a dead one had open is settled at once. May import: the gateway floor and below; knows nothing of requests.
import cluster from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { flagsOfOurs } from "../../lib/debugger.ts";
import { problem } from "../../config/problems.ts";
import type { Located } from "../../config/types.ts";
import type { ProblemLocator } from "../generation/plugin-setup.ts";
import { type BoundPlace, chosenPlace } from "../http/places.ts";
import type { WorkerStatus } from "../types.ts";
import type { ReadingSource } from "../readings/all.ts";
import type { LiveSource } from "../requests/under-way.ts";
import { carrying } from "./carrier.ts";
import { settleLeft, tellEnd } from "./ends.ts";
import { firstOf } from "./first-problems.ts";
import { handOut } from "./hand-out.ts";
import type { WorkerPoolOptions } from "./pool-options.ts";
import { spawn, type Member } from "./worker-handle.ts";
import type { Told, WorkerCommands, WorkerConfig } from "./commands.ts";

/** For plugins that take their time; a plugin's own setup has a shorter one. */
const PREPARE_MS = 60_000;
const WORD_MS = 10_000;
/** After the time that requests in flight have, for everything else to end. */
const END_MS = 15_000;
const PAUSE_MS = { first: 100, last: 10_000 };
/** A worker that lives so long has started well. */
const SOUND_MS = 10_000;
/** So many in a row, and no other worker there: it will not get better by itself. */
const MOST_FAILURES = 6;
/** Between the choice of a free port and its opening another program may take it. */
const TRIES = 5;

export class WorkerPool {
  readonly #of: WorkerPoolOptions;
  readonly #apply: ReturnType<typeof carrying>;
  readonly #serving = new Set<Member>();
  readonly #all = new Set<Member>();
  /** What the dead left is handed to the ledger before that closes. */
  readonly #endings = new Set<Promise<void>>();
  /** On their way out, with another one in their place already. */
  readonly #retired = new WeakSet<Member>();
  readonly #follow: () => void;
  #order: WorkerConfig;
  /** Where its ports are, once they are open. */
  places: readonly BoundPlace[] = [];
  #failures = 0;
  #opened = false;
  #announced = false;
  #ending = false;

  constructor(of: WorkerPoolOptions, order: WorkerConfig) {
    this.#of = of;
    this.#order = order;
    this.#apply = carrying(of.services.writes);
    this.#follow = of.services.lists.onHeard((provider) => {
      for (const member of this.#all)
        member.tell("lists", provider, of.services.lists.of(provider));
    });
    cluster.setupPrimary({
      exec: of.program,
      args: process.argv.slice(2),
      execArgv: flagsOfOurs(),
      serialization: "advanced",
    });
  }

  urls: readonly string[] = [];
  get url(): string {
    return this.urls[0] ?? "";
  }

  /** Calls under way, of all. */
  inflight(): number {
    return [...this.#all].reduce((sum, { holds }) => sum + holds.size, 0);
  }

  /** All of them, or none and what is in the way. */
  async open(): Promise<readonly Located[]> {
    const workers = Array.from({ length: this.#of.size }, (_, i) => this.#spawn(i + 1));
    try {
      const problems = await firstOf(workers.map((member) => this.#prepare(member, this.#order)));
      if (problems.length > 0) await this.kill();
      else await this.#openPort(workers);
      return problems;
    } catch (error) {
      await this.kill();
      throw error;
    }
  }

  /** All build it, and only when all are ready does it answer anywhere. */
  async change(order: WorkerConfig, place: ProblemLocator): Promise<readonly Located[]> {
    const workers = [...this.#serving];
    const problems = await firstOf(workers.map((member) => this.#prepare(member, order))).catch(
      (error: Error) => [place("workers", problem.workerFailed(error.message))],
    );
    if (problems.length > 0) {
      await this.#each(workers, (member) => member.ask("abandon", WORD_MS));
      return problems;
    }
    this.#order = order;
    // A worker that cannot is of no use; one that has joined since these were asked knows of the order before.
    const joined = [...this.#serving].filter((member) => !workers.includes(member));
    const commit = (member: Member) => member.ask("commit", WORD_MS, this.places);
    await Promise.all([
      this.#each(workers, (member) => commit(member).catch(member.kill)),
      this.#each(joined, (member) => this.#catchUp(member).catch(member.kill)),
    ]);
    return [];
  }

  /** All but the one that asks, which may be the primary; the first that knows. */
  peers(id: string, question: unknown, asking?: Member): Promise<unknown> {
    const others = [...this.#serving].filter((member) => member !== asking);
    const known = others.map(async (member) => {
      const answer = await member.wonder("peer", WORD_MS, id, question);
      return answer ?? Promise.reject(new Error("It does not know."));
    });
    return Promise.any(known).catch(() => undefined);
  }

  /** For readings: those too that begin, and those that finish what they have. */
  sources(): readonly (ReadingSource & LiveSource)[] {
    return [...this.#all].map(({ source }) => source);
  }

  /** Resolves when every process has heard it. */
  tell = <N extends Told>(name: N, ...args: Parameters<WorkerCommands[N]>): Promise<unknown> =>
    this.#each([...this.#all], (member) => member.ask(name, WORD_MS, ...args));

  async status(): Promise<WorkerStatus[]> {
    const told: WorkerStatus[] = [];
    await this.#each([...this.#serving], async (member) => {
      told[member.place] = await member.ask("status", WORD_MS);
    });
    return told.filter(Boolean);
  }

  /** Whether any of them has been asked for /readyz. */
  async announce(): Promise<boolean> {
    this.#announced = true;
    const asked = await Promise.all([...this.#all].map((each) => each.wonder("announce", WORD_MS)));
    return asked.includes(true);
  }

  leave = (drainMs: number): Promise<number> => this.close(drainMs, true);
  async close(drainMs: number, succeeded = false): Promise<number> {
    this.#ending = true;
    await handOut(this.#all, () => this.places.forEach(this.#of.shut));
    let cut = 0;
    await this.#each([...this.#all], async (member) => {
      const stopped = member.ask("stop", drainMs + END_MS, drainMs, succeeded);
      // It could not write all that it had, say: what it left is settled here.
      cut += await stopped.catch(() => (member.kill(), 0));
      const late = setTimeout(member.kill, END_MS);
      await member.over;
      clearTimeout(late);
    });
    this.#follow();
    await Promise.all(this.#endings);
    return cut;
  }

  async kill(): Promise<void> {
    this.#ending = true;
    this.#follow();
    for (const member of this.#all) member.kill();
    await Promise.all(this.#endings);
  }

  /** A worker that dies meanwhile is told by its end. */
  async #each(workers: readonly Member[], work: (member: Member) => Promise<unknown>) {
    await Promise.allSettled(workers.map(work));
  }

  #spawn(place: number): Member {
    const { services } = this.#of;
    const member = spawn(place, {
      ...services,
      apply: this.#apply,
      ailing: () => this.#retireWorker(member),
      troubled: (why) => services.ledger.doubt(why),
      late: (asked, withinMs) =>
        services.log.error(
          { worker: place, asked, withinMs },
          "a worker does not answer; it is ended",
        ),
      peers: async (id, of, near) =>
        (await this.peers(id, of, member)) ?? services.elsewhere.ask(id, of, near),
      others: () => [...this.#serving].some((each) => each !== member),
    });
    this.#all.add(member);
    if (services.health.trouble) member.tell("health", services.health.trouble);
    for (const provider of services.lists.providers())
      member.tell("lists", provider, services.lists.of(provider));
    const ended = member.over.then((how) => this.#ended(member, how));
    this.#endings.add(ended);
    void ended.then(() => this.#endings.delete(ended));
    return member;
  }

  async #prepare(member: Member, order: WorkerConfig): Promise<readonly Located[]> {
    return member.ask("prepare", PREPARE_MS, order);
  }

  /** The first one shows whether the ports can be had; the others join it. */
  async #openPort(workers: readonly Member[]): Promise<void> {
    const { listen, handed } = this.#of;
    for (let tries = listen.some(({ port }) => port === 0) ? TRIES : 1; ; tries--) {
      this.places = await Promise.all(listen.map((each, i) => chosenPlace(each, handed[i])));
      try {
        this.urls = await workers[0]!.ask("commit", WORD_MS, this.places);
        break;
      } catch (error) {
        if (tries <= 1) throw error;
      }
    }
    for (const member of workers.slice(1)) await member.ask("commit", WORD_MS, this.places);
    // While the port opens no worker takes the place of one that ends.
    const gone = workers.find((member) => !this.#all.has(member));
    if (gone) throw new Error(`A worker has ended (${await gone.over}).`);
    for (const member of workers) this.#serving.add(member);
    this.#opened = true;
  }

  async #ended(member: Member, how: string): Promise<void> {
    this.#serving.delete(member);
    this.#all.delete(member);
    this.#of.ended(member.source);
    if (!this.#ending && this.#opened) {
      tellEnd(this.#of.services, member, how);
      if (!this.#retired.has(member)) void this.#replace(member, how);
    }
    // A silent store keeps no worker from ending: the next start finds what is open.
    await Promise.race([
      settleLeft(this.#of.services, member),
      sleep(WORD_MS, undefined, { ref: false }),
    ]);
  }

  /** Another one takes over at once, and it may finish what it has. */
  #retireWorker(member: Member): void {
    if (this.#ending || this.#retired.has(member)) return;
    if (!this.#serving.delete(member)) return member.kill();
    this.#retired.add(member);
    this.#of.services.log.warn(
      { worker: member.place, pid: member.pid },
      "a worker is not well: it finishes what it has, and another one takes its place",
    );
    const { drainMs } = this.#of;
    member.ask("stop", drainMs() + END_MS, drainMs(), false).catch(() => member.kill());
    void this.#replace(member, "an error that was not caught");
  }

  async #replace({ place, since }: Member, how: string): Promise<void> {
    this.#failures = performance.now() - since > SOUND_MS ? 0 : this.#failures + 1;
    if (this.#failures >= MOST_FAILURES && this.#serving.size === 0) {
      const times = `${this.#failures} times in a row`;
      return this.#of.broken(new Error(`No worker stays up: ${times} one ended (${how}).`));
    }
    if (this.#failures > 1)
      await sleep(Math.min(PAUSE_MS.last, PAUSE_MS.first * 2 ** this.#failures));
    if (this.#ending) return;
    const member = this.#spawn(place);
    try {
      await this.#catchUp(member);
    } catch (error) {
      // If it is not dead yet it is of no use: its end brings the next try.
      this.#of.services.log.error({ worker: place, err: error }, "a worker did not start");
      member.kill();
      return;
    }
    this.#serving.add(member);
    this.#of.services.log.info({ worker: place, pid: member.pid }, "a worker has been replaced");
  }

  /** What is current may change while it builds. */
  async #catchUp(member: Member): Promise<void> {
    let order: WorkerConfig;
    do {
      order = this.#order;
      const problems = await this.#prepare(member, order);
      if (problems.length > 0) throw new Error(problems.map(({ message }) => message).join("; "));
      await member.ask("commit", WORD_MS, this.places);
    } while (order !== this.#order);
    if (this.#announced) await member.ask("announce", WORD_MS);
  }
}
