// Members of groups in random worlds, on both built-in stores: every result equals that of a naive
// model. In the model, a member is present while it counts something, and no sweep exists.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { formatMemberScope } from "../../../src/plugin/store/member-scope.ts";
import type { CommandResult, StoreCommand } from "../../../src/plugin/store/store.ts";
import { NOON, reserveCommand, settleCommand } from "../../../src/testing/store.ts";
import {
  createBatchEncoder,
  decodeResults,
} from "../../../plugins/stores/sqlite/data/batch-codec.ts";
import { Writer } from "../../../plugins/stores/sqlite/write/writer.ts";
import { makeMemory } from "./stores-under-test.ts";
import { trialCount } from "../../kit/law-effort.ts";

// Recovery uses the machine's clock.
beforeAll(() => void vi.useFakeTimers({ toFake: ["Date"] }));
afterAll(() => void vi.useRealTimers());

const HOUR = 3_600_000;
const LIMIT = 10n;
const CALLS = 4;

type Step =
  | { do: "call"; member: number; take: number; countsOnly: boolean }
  | { do: "end"; which: number; used: number }
  | { do: "wait"; minutes: number }
  | { do: "restart" };
interface World {
  max: number;
  steps: readonly Step[];
}

const scopeOf = (member: number): string => formatMemberScope("g", HOUR, `m${member}`);

/** Usage of one member in the model. */
interface Usage {
  level: bigint;
  reserved: bigint;
  at: number;
  calls: number;
  open: number;
}

class Model {
  readonly #members = new Map<number, Usage>();
  readonly #max: number;
  constructor(max: number) {
    this.#max = max;
  }

  #usage(member: number, now: number): Usage {
    let usage = this.#members.get(member);
    if (!usage) {
      usage = { level: 0n, reserved: 0n, at: -Infinity, calls: 0, open: 0 };
      this.#members.set(member, usage);
    }
    // Windows in total start again.
    if (usage.open === 0 && now - usage.at >= HOUR) Object.assign(usage, { level: 0n, calls: 0 });
    return usage;
  }

  #isPresent(member: number, now: number): boolean {
    const usage = this.#members.get(member);
    return usage !== undefined && (usage.open > 0 || now - usage.at < HOUR);
  }

  call(member: number, take: bigint, countsOnly: boolean, now: number): "ok" | "denied" | "full" {
    const others = [...this.#members.keys()].filter(
      (each) => each !== member && this.#isPresent(each, now),
    ).length;
    if (!this.#isPresent(member, now) && others >= this.#max) return "full";
    const usage = this.#usage(member, now);
    const fits =
      usage.level + usage.reserved + take <= LIMIT && usage.calls + usage.open + 1 <= CALLS;
    if (!fits && !countsOnly) return "denied";
    usage.reserved += take;
    usage.open++;
    usage.at = now;
    return "ok";
  }

  end(member: number, take: bigint, used: bigint, now: number): void {
    const usage = this.#members.get(member)!;
    usage.reserved -= take;
    usage.open--;
    usage.level += used;
    usage.calls++;
    usage.at = now;
  }
}

const claimsOf = (member: number, take: bigint, countsOnly: boolean, maxMembers: number) => {
  const scope = scopeOf(member);
  const more = { maxMembers, ...(countsOnly && { countsOnly: true as const }) };
  return [
    { scope, unit: "nano_usd" as const, max: LIMIT, per: "total" as const, take, ...more },
    { scope, unit: "requests" as const, max: CALLS, per: "total" as const, take: 1n, ...more },
  ];
};

interface Real {
  apply(batch: readonly StoreCommand[]): Promise<readonly CommandResult[]>;
  restart(): Promise<void>;
  end(): Promise<void>;
}

async function memory(): Promise<Real> {
  const made = await makeMemory();
  await made.store.open({ instance: "i" });
  return {
    apply: (batch) => made.store.apply(batch),
    restart: async () => {},
    end: () => made.dispose(),
  };
}

async function sqlite(): Promise<Real> {
  const folder = mkdtempSync(join(tmpdir(), "tollgate-members-"));
  const file = join(folder, "ledger.db");
  const open = () => new Writer({ file, durability: "process", ballastMb: 0 }, "i");
  let writer = open();
  let encoder = createBatchEncoder();
  return {
    apply: async (batch) => decodeResults(batch, writer.apply(encoder.encode(batch))),
    async restart() {
      writer.close();
      writer = open();
      encoder = createBatchEncoder();
    },
    async end() {
      writer.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function livesAsModel(make: () => Promise<Real>, { max, steps }: World): Promise<void> {
  const real = await make();
  const model = new Model(max);
  const open: { attempt: string; member: number; take: bigint }[] = [];
  let now = NOON;
  let n = 0;
  try {
    for (const step of steps) {
      if (step.do === "wait") now += step.minutes * 60_000;
      // A restart settles open calls as recovered, which the model does not contain.
      if (step.do === "restart" && open.length === 0) {
        vi.setSystemTime(now);
        await real.restart();
      }
      if (step.do === "end" && open.length > 0) {
        const [call] = open.splice(step.which % open.length, 1) as [(typeof open)[number]];
        const used = BigInt(step.used);
        const settle = settleCommand(call.attempt, { at: now, costNano: used });
        expect((await real.apply([settle]))[0]!.ok).toBe(true);
        model.end(call.member, call.take, used, now);
      }
      if (step.do === "call") {
        const attempt = `a${n++}`;
        const take = BigInt(step.take);
        const claims = claimsOf(step.member, take, step.countsOnly, max);
        const [result] = await real.apply([reserveCommand(attempt, { at: now, claims })]);
        const expected = model.call(step.member, take, step.countsOnly, now);
        expect(result!.ok ? "ok" : result!.isFull ? "full" : "denied").toBe(expected);
        if (expected === "ok") open.push({ attempt, member: step.member, take });
      }
    }
  } finally {
    await real.end();
  }
}

const worlds: fc.Arbitrary<World> = fc.record({
  max: fc.integer({ min: 1, max: 3 }),
  steps: fc.array(
    fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant("call" as const),
          member: fc.integer({ min: 0, max: 4 }),
          take: fc.integer({ min: 1, max: 6 }),
          countsOnly: fc.boolean(),
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant("end" as const),
          which: fc.nat(9),
          used: fc.integer({ min: 0, max: 8 }),
        }),
      },
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant("wait" as const),
          minutes: fc.constantFrom(1, 29, 30, 59, 60, 61, 180),
        }),
      },
      { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const) }) },
    ),
    { minLength: 5, maxLength: 60 },
  ),
});

it.each([
  ["memory", memory, 300],
  ["sqlite", sqlite, 60],
] as const)("the %s store counts members as the model does", async (_name, make, worldCount) => {
  await fc.assert(
    fc.asyncProperty(worlds, (world) => livesAsModel(make, world)),
    { numRuns: trialCount(worldCount) },
  );
});
