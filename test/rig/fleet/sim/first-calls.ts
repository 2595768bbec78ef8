// Parallel first calls of new members at several gateways, on virtual time. In each world, a new
// group gets a burst of calls. No member may exceed its limits, no group its places, each amount is
// taken once, and no call is denied that fits. Then the windows of some members start again, and a
// place that becomes free is taken at one gateway while another one has just seen a full group.
import { formatMemberScope } from "../../../../src/plugin/store/member-scope.ts";
import type { Limit } from "../../../../src/plugin/store/limit.ts";
import { reserveCommand, settleCommand } from "../../../../src/testing/store.ts";
import { MeterTable } from "../../../../src/store/meter-table.ts";
import { PresentMembers } from "../../../../plugins/stores/postgres/write/present-members.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../../rig.ts";
import { SimulatedDatabase } from "./database.ts";
import { Gateway } from "./gateway.ts";
import { Server } from "./server.ts";
import { VirtualTime } from "./virtual-time.ts";

const GATEWAYS = 3;
const IDLE_MS = 3_600_000;
const TAKE = 1_000n;
/** Maximum time until all calls of a burst are answered, in virtual milliseconds. */
const ANSWER_MS = 20_000;

interface Member {
  readonly scope: string;
  readonly limits: readonly Limit[];
  /** Usage of the current window. */
  cost: bigint;
  calls: number;
  admitted: number;
  /** Time since its last admitted call. Denied calls do not renew a window. */
  idleMs: number;
}

interface Call {
  readonly attempt: string;
  readonly gateway: Gateway;
  readonly members: readonly Member[];
  ok: boolean | undefined;
}

export interface FirstCallsFound {
  readonly worlds: number;
  readonly counts: Record<string, number>;
  readonly wrong: readonly string[];
}

/** Maximum number of worlds that the same gateways serve. A day has more virtual time. */
const MAX_WORLDS = 1_000;

/** Runs worlds until one has a violation. */
export async function firstCalls(
  database: SimulatedDatabase,
  of: { readonly seed: number; readonly worlds: number; say?(line: string): void },
): Promise<FirstCallsFound> {
  const counts: Record<string, number> = {};
  for (let done = 0; done < of.worlds; done += MAX_WORLDS) {
    const worlds = Math.min(MAX_WORLDS, of.worlds - done);
    const found = await serveWorlds(database, { seed: of.seed + done, worlds });
    for (const [name, many] of Object.entries(found.counts))
      counts[name] = (counts[name] ?? 0) + many;
    if (found.wrong.length > 0) return { ...found, worlds: done + found.worlds, counts };
    of.say?.(`${done + worlds} worlds`);
  }
  return { worlds: of.worlds, counts, wrong: [] };
}

/** Runs worlds at the same gateways. */
async function serveWorlds(
  database: SimulatedDatabase,
  of: { readonly seed: number; readonly worlds: number },
): Promise<FirstCallsFound> {
  database.clear();
  const time = new VirtualTime();
  const restore = time.install(createChance(of.seed));
  const counts = { calls: 0, denied: 0, full: 0, restarts: 0, joined: 0 };
  try {
    const server = new Server(time, database, createChance(of.seed + 1));
    const wrong: string[] = [];
    server.wrong = (what) => void wrong.push(what);
    // No gateway dies here, so frequent heartbeats would only take time.
    const settings = { leaseMs: 60_000, durability: "flushed", leaseThreshold: 0 } as const;
    const gateways = Array.from(
      { length: GATEWAYS },
      (_, i) => new Gateway(`m${i}`, { ...settings, offline: undefined }, server, time),
    );
    for (const gateway of gateways) gateway.start();
    await time.until(() => gateways.every(({ ledger }) => ledger), 5_000);
    for (let n = 0; n < of.worlds; n++) {
      const chance = createChance(of.seed * 100_003 + n);
      const world = new FirstCallsWorld({
        database,
        time,
        gateways,
        chance,
        name: `w${n}`,
        counts,
      });
      wrong.push(...(await world.run()));
      if (wrong.length > 0)
        return { worlds: n + 1, counts, wrong: wrong.map((line) => `world ${n}: ${line}`) };
      // Meters of former worlds would only make each query slower.
      database.rows("DELETE FROM tollgate.meter");
    }
    return { worlds: of.worlds, counts, wrong };
  } finally {
    restore();
  }
}

/** Options of a world. */
interface WorldOptions {
  readonly database: SimulatedDatabase;
  readonly time: VirtualTime;
  readonly gateways: readonly Gateway[];
  readonly chance: Chance;
  readonly name: string;
  readonly counts: Record<string, number>;
}

class FirstCallsWorld {
  readonly #of: WorldOptions;
  readonly #places: number;
  readonly #members: readonly Member[];
  readonly #wrong: string[] = [];
  #calls = 0;

  constructor(of: WorldOptions) {
    this.#of = of;
    const { chance, name } = of;
    const count = 1 + chance.below(4);
    this.#places = chance.often(0.5) ? 10 : 1 + chance.below(3);
    this.#members = Array.from({ length: count }, (_, i) => {
      const scope = formatMemberScope(name, IDLE_MS, `s${i}`);
      const money = { unit: "nano_usd", max: BigInt(1 + chance.below(4)) * TAKE } as const;
      const requests = { unit: "requests", max: 1 + chance.below(5), per: "total" } as const;
      const limits: Limit[] = [
        { scope, ...money, per: chance.one(["total", "total", "day"]) },
        ...(chance.often(0.5) ? [{ scope, ...requests }] : []),
      ];
      return { scope, limits, cost: 0n, calls: 0, admitted: 0, idleMs: 0 };
    });
  }

  async run(): Promise<readonly string[]> {
    const { chance } = this.#of;
    await this.#burst();
    if (this.#wrong.length === 0 && this.#places === 10 && chance.often(0.5)) {
      // Two waits that are shorter than the idle time, with calls between them.
      await this.#age(IDLE_MS * 0.6);
      await this.#burst();
      await this.#age(IDLE_MS * 0.6);
      await this.#burst();
      await this.#age(IDLE_MS + 1_000);
      this.#of.counts["restarts"]!++;
      await this.#burst();
    }
    const present = this.#members.filter(({ calls }) => calls > 0).length;
    if (this.#wrong.length === 0 && present === this.#places) await this.#joinElsewhere();
    return this.#wrong;
  }

  /**
   * A gateway denies a new member, because the group is full. A place becomes free, another gateway
   * admits the member, and the first one must serve it from then on.
   */
  async #joinElsewhere(): Promise<void> {
    const { chance, time, gateways, name, database, counts } = this.#of;
    const one = chance.below(GATEWAYS);
    const other = (one + 1 + chance.below(GATEWAYS - 1)) % GATEWAYS;
    // No gateway has seen a full group in the last second.
    await time.pass(1_100);
    const scope = formatMemberScope(name, IDLE_MS, "late");
    const limits: Limit[] = [{ scope, unit: "nano_usd", max: 100n * TAKE, per: "total" }];
    const late: Member = { scope, limits, cost: 0n, calls: 0, admitted: 0, idleMs: 0 };
    const ask = async (gateway: Gateway): Promise<boolean> => {
      const attempt = `${name}.${this.#calls++}`;
      const call: Call = { attempt, gateway, members: [late], ok: undefined };
      this.#reserve(call, false);
      await time.until(() => call.ok !== undefined, ANSWER_MS);
      return call.ok === true;
    };
    if (await ask(gateways[one]!))
      return void this.#wrong.push("a full group has a place for another member");
    const leaves = this.#members.find(({ calls }) => calls > 0)!;
    database.rows(`DELETE FROM tollgate.meter WHERE id LIKE '%|${leaves.scope}'`);
    counts["joined"]!++;
    if (!(await ask(gateways[other]!))) return void this.#wrong.push("a free place is not used");
    if (!(await ask(gateways[one]!)))
      this.#wrong.push("a member that another gateway has admitted is denied");
  }

  /** Lets the meters of the group become older. Windows of idle members start again. */
  async #age(ms: number): Promise<void> {
    if (this.#wrong.length > 0) return;
    this.#of.database.rows(`UPDATE tollgate.meter SET at = at - ${Math.floor(ms)}`);
    for (const member of this.#members) {
      member.idleMs += ms;
      if (member.idleMs >= IDLE_MS) startAgain(member);
    }
    // Denials are cached for a moment.
    await this.#of.time.pass(1_100);
  }

  async #burst(): Promise<void> {
    if (this.#wrong.length > 0) return;
    const { chance, time, gateways, counts } = this.#of;
    const calls = Array.from({ length: 2 + chance.below(8) }, (): Call => {
      const first = chance.one(this.#members);
      // The same member by two names, or two members.
      const members = chance.often(0.2) ? [first, chance.one(this.#members)] : [first];
      const attempt = `${this.#of.name}.${this.#calls++}`;
      return { attempt, gateway: chance.one(gateways), members, ok: undefined };
    });
    // Each burst calls every member.
    for (const member of this.#members)
      if (!calls.some(({ members }) => members.includes(member)))
        calls.push({
          attempt: `${this.#of.name}.${this.#calls++}`,
          gateway: chance.one(gateways),
          members: [member],
          ok: undefined,
        });
    for (const call of calls) {
      this.#reserve(call, chance.often(0.2));
      if (chance.often(0.3)) await time.pass(chance.one([0.2, 1, 3]));
    }
    if (!(await time.until(() => calls.every(({ ok }) => ok !== undefined), ANSWER_MS)))
      return void this.#wrong.push("calls are not answered");
    counts["calls"]! += calls.length;
    for (const { members, ok } of calls)
      if (ok)
        for (const member of new Set(members))
          Object.assign(member, { idleMs: 0, admitted: member.admitted + 1 });
    this.#checkReserved(calls);
    let settled = 0;
    const admitted = calls.filter(({ ok }) => ok);
    for (const { attempt, gateway, members } of admitted) {
      const cost = chance.one([0n, 300n, TAKE, TAKE]);
      for (const member of new Set(members)) {
        member.cost += cost;
        member.calls++;
      }
      const times = chance.often(0.2) ? 2 : 1;
      time.as(gateway.process, () => {
        const command = settleCommand(attempt, { at: Date.now(), costNano: cost });
        const all = Array.from({ length: times }, () => gateway.ledger!.settle(command));
        Promise.all(all).then(
          () => settled++,
          (error: unknown) => this.#wrong.push(`${attempt} cannot be settled: ${String(error)}`),
        );
      });
    }
    await time.until(() => settled === admitted.length || this.#wrong.length > 0, ANSWER_MS);
    for (const member of this.#members) member.admitted = 0;
    this.#checkMeters();
  }

  #reserve(call: Call, twice: boolean): void {
    const { time, counts } = this.#of;
    time.as(call.gateway.process, () => {
      const claims = call.members.flatMap(({ limits }) =>
        limits.map((limit) => ({
          ...limit,
          maxMembers: this.#places,
          take: limit.unit === "requests" ? 1n : TAKE,
        })),
      );
      const command = reserveCommand(call.attempt, { at: Date.now(), claims, holdNano: TAKE });
      const answers = Array.from({ length: twice ? 2 : 1 }, () =>
        call.gateway.ledger!.reserve(command),
      );
      Promise.all(answers).then(
        ([result]) => {
          call.ok = result!.ok;
          if (!result!.ok) counts[result!.isFull ? "full" : "denied"]!++;
        },
        (error: unknown) => {
          call.ok = false;
          this.#wrong.push(`${call.attempt} is refused: ${String(error)}`);
        },
      );
    });
  }

  /** No limit is exceeded while all admitted calls are open, and no call was denied that fits. */
  #checkReserved(calls: readonly Call[]): void {
    const present = this.#members.filter(({ admitted, calls: n }) => admitted + n > 0);
    if (present.length > this.#places)
      this.#wrong.push(`${present.length} members in ${this.#places} places`);
    let isSpare = this.#members.length <= this.#places;
    for (const member of this.#members) {
      const wanted = calls.filter(({ members }) => members.includes(member)).length;
      for (const { unit, max } of member.limits) {
        const isMoney = unit === "nano_usd";
        const each = isMoney ? TAKE : 1n;
        const used = isMoney ? member.cost : BigInt(member.calls);
        if (used + BigInt(member.admitted) * each > BigInt(max))
          this.#wrong.push(
            `${member.scope}: ${member.admitted} calls and ${used} used of ${unit}=${max}`,
          );
        if (used + BigInt(wanted) * each > BigInt(max)) isSpare = false;
      }
    }
    if (isSpare && calls.some(({ ok }) => !ok)) this.#wrong.push("a call is denied that fits");
  }

  /** Each call was counted once, by each meter of each member. */
  #checkMeters(): void {
    if (this.#wrong.length > 0) return;
    const rows = this.#of.database.rows("SELECT id, level, reserved FROM tollgate.meter");
    for (const member of this.#members)
      for (const { unit, per } of member.limits) {
        // All calls of the member were denied, so its windows have not started again yet.
        if (member.idleMs >= IDLE_MS) continue;
        const row = rows.find(
          ({ id }) => id!.startsWith(`${unit}|${per}|`) && id!.endsWith(`|${member.scope}`),
        );
        const expected = unit === "nano_usd" ? member.cost : BigInt(member.calls);
        const [level, reserved] = [BigInt(row?.["level"] ?? 0), BigInt(row?.["reserved"] ?? 0)];
        if (level !== expected || reserved !== 0n)
          this.#wrong.push(
            `${member.scope} ${unit}: level ${level} and ${reserved} reserved, not ${expected}`,
          );
      }
  }
}

/** Windows in total start again. Windows per day continue. */
function startAgain(member: Member): void {
  if (member.limits[0]!.per === "total") member.cost = 0n;
  member.calls = 0;
}

/** Defects that the worlds must find. Each returns a function that removes it. */
export const FIRST_CALL_PLANTS: Readonly<
  Record<string, (database: SimulatedDatabase) => Promise<() => void>>
> = {
  // Reservations of open calls do not count.
  "no-hold": inDatabase(/m\.reserved - x\.unhold \+ x\.take/g, "m.reserved - x.unhold"),
  // A call takes its amount twice.
  "taken-twice": inDatabase(
    /m\.reserved - x\.unhold \+ x\.take/g,
    "m.reserved - x.unhold + 2 * x.take",
  ),
  // Usage is removed when its call ends.
  "no-count": inDatabase(/THEN m\.level \+ x\.used ELSE/g, "THEN m.level ELSE"),
  // A window that has expired continues.
  "no-restart": inDatabase(/x\.idle > 0 AND m\.reserved = 0 AND m\.at <= t - x\.idle/g, "false"),
  // A window starts again although its member made a call during the idle time.
  "restarts-twice": inDatabase(
    /WHEN x\.period = 0 AND x\.idle = 0 THEN m\.at/g,
    "WHEN x.period = 0 THEN m.at",
  ),
  // Members are added on the fast path, which does not count them.
  "added-uncounted": inPrototype(PresentMembers.prototype, "isPresent", () => true),
  // The places of a group are not checked.
  "no-places": inPrototype(MeterTable.prototype, "hasPlaces", () => true),
  // Members that have a place need another one.
  "no-members": inPrototype(MeterTable.prototype, "isMember", () => false),
};

function inDatabase(line: RegExp, instead: string) {
  return async (database: SimulatedDatabase) => {
    const [gate] = database.rows(
      "SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname = 'apply_batch_1'",
    );
    const sound = gate!["text"]!;
    const changed = sound.replaceAll(line, instead);
    if (changed === sound) throw new Error(`The admission function has no line ${line.source}.`);
    database.rows(changed);
    return () => void database.rows(sound);
  };
}

function inPrototype<T extends object, K extends keyof T>(of: T, name: K, instead: T[K]) {
  return async () => {
    const sound = of[name];
    of[name] = instead;
    return () => void (of[name] = sound);
  };
}

export const rig: Rig = {
  options: { worlds: 10_000, seed: 1, plant: "" },
  async run({ worlds, seed, plant = "" }, say): Promise<RigResult> {
    const database = await SimulatedDatabase.create();
    const all = { seed: Number(seed), worlds: Number(worlds), say };
    const names = plant === "all" ? Object.keys(FIRST_CALL_PLANTS) : plant === "" ? [] : [plant];
    if (names.length === 0) {
      const { worlds: many, counts, wrong } = await firstCalls(database, all);
      return { wrong: [...wrong], counts: { worlds: many, ...counts }, seed: all.seed };
    }
    const wrong: string[] = [];
    const counts: Record<string, string> = {};
    for (const name of names) {
      const remove = await FIRST_CALL_PLANTS[String(name)]!(database);
      const found = await firstCalls(database, all);
      remove();
      counts[String(name)] = found.wrong[0] ?? "not found";
      say(`${name}: ${found.worlds} worlds: ${counts[String(name)]}`);
      if (found.wrong.length === 0) wrong.push(`${name} is not found`);
    }
    return { wrong, counts, seed: all.seed };
  },
};
