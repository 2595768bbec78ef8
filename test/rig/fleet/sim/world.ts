// One simulation: some gateways on one database with a few budgets, random calls, and random
// faults. Then the faults stop, and the fleet's guarantees must hold. The same seed gives the same
// simulation.
import { createHash } from "node:crypto";
import { getFault } from "../../../../src/model/error.ts";
import { formatMemberScope } from "../../../../src/plugin/store/member-scope.ts";
import { reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { createChance, type Chance } from "../../rig.ts";
import type { SimulatedDatabase } from "./database.ts";
import { Gateway, type GatewaySettings } from "./gateway.ts";
import { EVENTS, type Events } from "./events.ts";
import { endLaws, gateLaws, stepLaws, type Before } from "./invariants.ts";
import { Server } from "./server.ts";
import { VirtualTime } from "./virtual-time.ts";
import { TAKE, Truth, type Budget, type Call } from "./ground-truth.ts";

export interface Seen {
  readonly wrong: readonly string[];
  /** Steps with their virtual time. */
  readonly done: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  /** Hash of all events: two runs of one seed have the same. */
  readonly digest: string;
}

/** Members that calls name, and places of their group. */
const MEMBERS = 5;
const PLACES = 3;
/** Events in a simulation. */
export const STEPS = 20;
/**
 * After faults stop, a running gateway accepts calls within this time: a start retries every 500
 * ms, and the ledger queue every second.
 */
const SERVES_MS = 10_000;
const REFUSALS = new Set(["ledger_unavailable"]);

/** `without`: omitted steps. */
export async function world(
  database: SimulatedDatabase,
  seed: number,
  without: ReadonlySet<number> = new Set(),
): Promise<Seen> {
  database.clear();
  const time = new VirtualTime();
  const restore = time.install(createChance(seed + 1));
  const made = new World(database, time, seed);
  try {
    await made.run(without);
  } catch (error) {
    made.wrong.push(`it ends with ${error instanceof Error ? error.stack : String(error)}`);
  } finally {
    restore();
  }
  const digest = createHash("sha256").update(made.done.join("\n")).digest("hex").slice(0, 12);
  return { wrong: made.wrong, done: made.done, counts: made.counts, digest };
}

class World {
  readonly wrong: string[] = [];
  readonly done: string[] = [];
  readonly #database: SimulatedDatabase;
  readonly #time: VirtualTime;
  readonly #seed: number;
  /** Of this step alone: a step that is left out changes no other one's choices. */
  #chance: Chance;
  readonly #server: Server;
  readonly #truth = new Truth();
  readonly #budgets: Budget[];
  /** Members of one group, more than it has places for. */
  readonly #members: Budget[];
  readonly #gateways: Gateway[];
  readonly #of: GatewaySettings;
  readonly #before: Before = { fenced: new Map(), slices: new Map() };
  #mishaps: number;
  #copied = false;
  #setBack = false;
  #steps = 0;

  constructor(database: SimulatedDatabase, time: VirtualTime, seed: number) {
    const chanced = createChance(seed);
    this.#seed = seed;
    this.#database = database;
    this.#time = time;
    this.#chance = chanced;
    this.#server = new Server(time, database, createChance(seed + 2));
    this.#server.wrong = (what) => void this.wrong.push(what);
    this.#of = {
      leaseMs: chanced.one([3_000, 3_000, 6_000]),
      durability: chanced.one(["flushed", "flushed", "synced"]),
      leaseThreshold: chanced.one([0, 1, 1, 2]),
      offline: chanced.often(0.5)
        ? { maxMs: chanced.one([5_000, 300_000]), share: chanced.one([0.05, 0.3]) }
        : undefined,
    };
    // A budget is leased only while much of it is left.
    const isHot = this.#of.leaseThreshold! > 0 && !this.#of.offline;
    const max = () => BigInt(chanced.one(isHot ? [30, 200, 200] : [6, 12, 30])) * TAKE;
    this.#budgets = ["account:all", "key:a", "key:b"].map((scope) => ({ scope, max: max() }));
    this.#members = Array.from({ length: MEMBERS }, (_, i) => ({
      scope: formatMemberScope("g", 3_600_000, `s${i}`),
      max: BigInt(chanced.one([2, 3])) * TAKE,
      maxMembers: PLACES,
    }));
    this.#gateways = Array.from(
      { length: 2 + chanced.below(3) },
      (_, i) => new Gateway(`m${i}`, this.#of, this.#server, time),
    );
    this.#mishaps = chanced.one([0, 0.01, 0.04]);
    this.#say(
      `${this.#gateways.length} gateways, ${JSON.stringify(this.#of)}, ${this.#budgets.map((b) => b.max).join(" ")}`,
    );
  }

  get counts(): Record<string, number> {
    const { sent, denied, refused } = this.#truth;
    return { steps: this.#steps, sent, denied, refused, ...this.#server.counts };
  }

  #say(what: string): void {
    this.done.push(`${this.#time.now.toFixed(1)} ${what}`);
  }

  async run(without: ReadonlySet<number>): Promise<void> {
    for (const gateway of this.#gateways) gateway.start();
    await this.#time.until(() => this.#gateways.every(({ ledger }) => ledger), 5_000);
    this.#server.mishaps = this.#mishaps;
    const events = Object.entries(EVENTS).flatMap(([name, [share]]) =>
      Array.from({ length: share }, () => name),
    );
    for (; this.#steps < STEPS && this.wrong.length === 0; this.#steps++) {
      if (without.has(this.#steps)) continue;
      this.#chance = createChance(this.#seed * 1_000 + this.#steps);
      const name = this.#chance.one(events);
      this.#say(name);
      EVENTS[name]![1](this.#events);
      await this.#time.pass(this.#chance.one([1, 5, 50, 300, 1_500, 3_000]));
      this.#look();
    }
    if (this.wrong.length > 0) return;
    await this.#calm();
    if (this.wrong.length > 0) return;
    this.wrong.push(...endLaws(this.#database, this.#counted, this.#truth));
  }

  #look(): void {
    if (!this.#setBack) this.wrong.push(...this.#truth.over(this.#counted));
    if (this.#server.isBusy) return;
    const { wrong, died } = stepLaws(
      this.#database,
      this.#setBack ? [] : this.#counted,
      this.#before,
      this.#server.gaveBack,
    );
    this.#server.gaveBack.clear();
    this.wrong.push(...wrong);
    for (const who of died) this.#say(`node ${who}`);
    if (this.#chance.often(0.2))
      this.wrong.push(...this.#time.inServer(() => gateLaws(this.#database)));
  }

  #any(): Gateway {
    return this.#chance.one(this.#gateways);
  }

  /** A client's call to a gateway. */
  #call(of: Gateway, more: { twice?: boolean } = {}): void {
    if (!of.serves) return;
    const [all, ...keys] = this.#budgets as [Budget, ...Budget[]];
    const budgets = [all, this.#chance.one(keys)];
    if (this.#chance.often(0.35)) budgets.push(this.#chance.one(this.#members));
    this.#ask(of, budgets, more);
  }

  /** All limits, of which none may be exceeded. */
  get #counted(): readonly Budget[] {
    return [...this.#budgets, ...this.#members];
  }

  #ask(of: Gateway, budgets: readonly Budget[], { twice = false, take = TAKE } = {}): Call {
    const attempt = `c${this.#truth.calls.size}`;
    const call: Call = {
      attempt,
      budgets,
      state: "asked",
      settled: false,
      process: of.process.name,
    };
    this.#truth.calls.set(attempt, call);
    const { process, ledger } = of;
    const cost = this.#chance.one([0n, 300n, TAKE, TAKE]);
    const lasts = this.#chance.one([1, 20, 400, 3_000]);
    this.#time.as(process, () => {
      const claims = budgets.map(({ scope, max, maxMembers }) => ({
        scope,
        maxMembers,
        unit: "nano_usd" as const,
        max,
        per: "total" as const,
        take,
      }));
      const command = reserveCommand(attempt, { at: Date.now(), claims, holdNano: take });
      const answers = [ledger!.reserve(command), ...(twice ? [ledger!.reserve(command)] : [])];
      for (const answer of answers)
        answer.then(
          (verdict) => {
            if (call.state !== "asked") return;
            call.state = verdict.ok ? "sent" : "denied";
            this.#say(`${attempt} ${call.state} by ${process.name}`);
            if (!verdict.ok) return void this.#truth.denied++;
            this.#truth.sent++;
            setTimeout(() => this.#end(of, call, cost, twice), lasts);
          },
          (error: unknown) => {
            const code = getFault(error)?.code ?? String(error);
            if (!REFUSALS.has(code)) this.wrong.push(`${attempt} is refused with ${code}`);
            if (call.state !== "asked") return;
            call.state = "refused";
            this.#truth.refused++;
            this.#say(`${attempt} refused by ${process.name}`);
          },
        );
    });
    return call;
  }

  /** The provider has answered. */
  #end(of: Gateway, call: Call, cost: bigint, twice: boolean): void {
    call.cost = cost;
    const command = settleCommand(call.attempt, { at: Date.now(), costNano: cost });
    for (const answer of [
      of.ledger!.settle(command),
      ...(twice ? [of.ledger!.settle(command)] : []),
    ])
      answer.then(
        () => {
          call.settled = true;
          this.#say(`${call.attempt} settled at ${cost}`);
        },
        (error: unknown) => this.wrong.push(`${call.attempt} cannot be settled: ${String(error)}`),
      );
  }

  /** Faults stop. All that was killed starts again, calls end, and each gateway takes a call within the time that is promised. */
  async #calm(): Promise<void> {
    this.#say("faults stop");
    const server = this.#server;
    server.mishaps = 0;
    for (const gateway of this.#gateways) {
      this.#time.resume(gateway.process);
      server.mend(gateway.link);
      gateway.disk.isFull = false;
      if (!gateway.process.alive) gateway.start();
    }
    await this.#time.until(() => !server.isDown && !server.isSilent && !server.isFull, 20_000);
    await this.#serves();
    const over = () =>
      [...this.#truth.calls.values()].every(
        (c) => c.settled || c.state !== "sent" || this.#truth.killed.has(c.process),
      );
    if (!(await this.#time.until(over, 15_000)))
      this.wrong.push("calls are not settled 15 s after faults have stopped");
    // Leases of killed gateways have expired, and their open calls are recovered by then.
    for (let i = 0; i < 20 && !isQuiet(this.#database, this.#server); i++)
      await this.#time.pass((this.#of.leaseMs * 2 + 2_000) / 20);
    this.#look();
    if (this.wrong.length > 0) return;
    await this.#spends();
    for (const gateway of this.#gateways) {
      const stopped = gateway.stop();
      let isOver = false;
      void stopped.then(
        () => (isOver = true),
        (error: unknown) => this.wrong.push(`${gateway.machine} cannot stop: ${String(error)}`),
      );
      await this.#time.until(() => isOver || this.wrong.length > 0, 20_000);
      if (!isOver) this.wrong.push(`${gateway.machine} does not stop`);
    }
  }

  /** Each gateway admits a call without a limit. */
  async #serves(): Promise<void> {
    const until = this.#time.now + SERVES_MS;
    for (const gateway of this.#gateways)
      for (let took = false; !took;) {
        if (this.#time.now > until)
          return void this.wrong.push(
            `${gateway.machine} takes no call ${SERVES_MS} ms after faults have stopped`,
          );
        if (gateway.serves) {
          const call = this.#ask(gateway, []);
          await this.#time.until(() => call.state !== "asked", 8_000);
          took = call.state === "sent";
        }
        await this.#time.pass(200);
      }
  }

  /** The rest of a budget can be spent, because leases were returned. */
  async #spends(): Promise<void> {
    const gateway = this.#any();
    const budget = this.#budgets[1]!;
    const left = Math.min(
      ...[this.#budgets[0]!, budget].map((b) => Number((b.max - this.#written(b)) / TAKE)),
    );
    if (left < 1 || this.#setBack) return;
    for (let tries = 0; tries < 8; tries++) {
      const call = this.#ask(gateway, [this.#budgets[0]!, budget]);
      await this.#time.until(() => call.state !== "asked", 8_000);
      if (call.state === "sent") {
        await this.#time.until(() => call.settled, 8_000);
        return;
      }
      await this.#time.pass(1_000);
    }
    this.wrong.push(
      `${left} calls are left of ${budget.scope}, and none is let through within 8 s`,
    );
  }

  /** Cost of a budget's calls in the ledger, which estimates calls of killed gateways. */
  #written(budget: Budget): bigint {
    const rows = this.#database.rows(
      "SELECT attempt, sum(cost) AS cost FROM tollgate.entry WHERE kind > 0 GROUP BY attempt",
    );
    return rows.reduce(
      (sum, { attempt, cost }) =>
        this.#truth.calls.get(attempt!)?.budgets.includes(budget) ? sum + BigInt(cost ?? 0) : sum,
      0n,
    );
  }

  /** Actions that events can use. */
  get #events(): Events {
    const [server, time, chanced] = [this.#server, this.#time, this.#chance];
    return {
      chance: chanced,
      of: this.#of,
      any: () => this.#any(),
      all: this.#gateways,
      server,
      call: (of, more) => this.#call(of, more),
      later: (ms, run) => void time.later(ms, run),
      resume: (gateway) => time.resume(gateway.process),
      kill: (gateway) => {
        this.#truth.killed.add(gateway.process.name);
        gateway.kill();
        this.#copied = false;
      },
      stepClock: (ms) => void (time.serverOffset += ms),
      copy: () => {
        if (server.isBusy) return;
        this.#database.copy();
        this.#copied = true;
      },
      fail: (ms) => {
        if (!this.#copied) return;
        this.#setBack = true;
        this.#copied = false;
        server.restart(ms, () => {
          this.#database.setBack();
          this.#before.fenced.clear();
          this.#before.slices = new Map();
        });
      },
    };
  }
}

/** No call and no transaction is open. */
const isQuiet = (database: SimulatedDatabase, { isBusy }: Server): boolean =>
  !isBusy && database.rows("SELECT 1 FROM tollgate.open_call").length === 0;
