// Generated batches on virtual time: gateways are killed at any moment and replaced, and the provider
// loses, repeats, delays, and reorders its answers. No line is sent, billed, or returned twice, none
// is missing, and each reservation ends.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fail, type BatchResult } from "tollgate/plugin";
import type { StoredBatch } from "../../../plugins/frontends/jobs/batch-record.ts";
import { FileService } from "../../../plugins/frontends/jobs/file-service.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { createChance, type Chance } from "../../rig/rig.ts";
import { answer, EngineWorld, LINE_HOLD, ownerNamed, type Gateway } from "./engine-world.ts";

const OWNERS = ["alice", "bob", "carol"].map(ownerNamed);
/** Batches that exist at the same time. */
const WORLD_BATCHES = 20;
const FINAL = new Set(["completed", "failed", "expired", "canceled"]);
const FAULT_KINDS = ["unavailable", "rate_limited", "upstream"] as const;

let world: EngineWorld;
beforeEach(async () => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
  world = await EngineWorld.create();
});
afterEach(async () => {
  vi.useRealTimers();
  await world[Symbol.asyncDispose]();
});

interface Made {
  readonly owner: (typeof OWNERS)[number];
  readonly batch: StoredBatch;
  readonly lines: number;
}

const SEEDS = Array.from({ length: NIGHTLY ? 25 : 1 }, (_, n) => n + 1);

it.each(SEEDS)("no line is sent, billed, or returned twice or not at all (world %i)", (seed) =>
  runWorld(createChance(seed)),
);

async function runWorld(chance: Chance): Promise<void> {
  misbehave(chance);
  const alive: Gateway[] = [world.start(), world.start()];
  const made: Made[] = [];
  for (let n = 0; n < WORLD_BATCHES; n++) {
    const owner = chance.one(OWNERS);
    const lines = 1 + chance.below(9);
    const models = Array.from({ length: lines }, () => chance.one(["a", "b", "c"]));
    made.push({ owner, batch: await chance.one(alive).create(owner, models), lines });
  }
  let kills = 10;
  const read = async ({ batch }: Made) => (await alive[0]!.records.read(batch.record.id))!;
  let steps = 0;
  await world.until(async () => {
    if (++steps % 8 > 0) return false;
    if (kills > 0 && chance.below(3) === 0) {
      kills--;
      alive.splice(chance.below(alive.length), 1)[0]!.kill();
      alive.push(world.start());
    }
    const states = await Promise.all(made.map(async (one) => (await read(one)).state));
    return kills === 0 && states.every((state) => FINAL.has(state));
  });
  for (const one of made) await check(alive[0]!, one, await read(one));
  for (const gateway of alive) gateway.kill();
}

/** Lets the provider fail as providers fail. */
function misbehave(chance: Chance): void {
  const { behavior } = world;
  const polls = new Map<string, number>();
  behavior.before = (method) => {
    if (chance.below(8) === 0) fail(chance.one(FAULT_KINDS), `${method} failed.`);
  };
  behavior.afterSubmit = () => {
    if (chance.below(4) === 0) fail("timeout", "The response was lost.");
  };
  behavior.status = ({ key }) => {
    polls.set(key, (polls.get(key) ?? 0) + 1);
    return polls.get(key)! < 3 ? { state: "running" } : { state: "ended", outcome: "completed" };
  };
  behavior.results = function* ({ lines }): Generator<BatchResult> {
    const all = lines.flatMap(({ id }) =>
      Array.from({ length: 1 + chance.below(3) }, () => answer(id)),
    );
    const isLate = chance.below(5) === 0;
    for (const one of all.toSorted(() => chance.below(3) - 1)) {
      if (isLate && chance.below(2) === 0) continue;
      if (chance.below(30) === 0) fail("unavailable", "The connection broke.");
      yield one;
    }
  };
}

async function check(gateway: Gateway, { owner, lines }: Made, batch: StoredBatch): Promise<void> {
  const { id } = batch.record;
  const sent = [...world.sent.values()].filter(({ key }) => key.startsWith(`${id}-`));
  const sentLines = sent.flatMap((one) => one.lines.map((line) => line.id));
  expect(sentLines.toSorted(), "each line is sent once").toEqual(
    Array.from({ length: lines }, (_, n) => String(n + 1).padStart(8, "0")),
  );
  const billed = [...world.bills].filter(([call]) => call.startsWith(`batch_${id}.`));
  for (const [, bills] of billed)
    expect(new Set(bills.map(({ target }) => target.model)).size, "one bill").toBe(1);
  const { costNano } = world.settled.get(`batch_${id}`)!;
  // Each line has a bill, or an estimate, and never both.
  expect(BigInt(billed.length) * LINE_HOLD + costNano).toBe(BigInt(lines) * LINE_HOLD);
  expect(world.reserved.get(`batch_${id}`)).toBe(BigInt(lines) * LINE_HOLD);
  const files = new FileService(gateway.storage);
  const ids: string[] = [];
  for (const file of [batch.outputFile, batch.errorFile]) {
    if (file === undefined) continue;
    let text = "";
    for await (const piece of await files.read(owner, await files.find(owner, `file-${file}`)))
      text += Buffer.from(piece).toString();
    for (const line of text.trimEnd().split("\n"))
      ids.push((JSON.parse(line) as { custom_id: string }).custom_id);
  }
  const expected = Array.from({ length: lines }, (_, n) => `c${n}`);
  expect(ids.toSorted(), "each line has one result").toEqual(expected.toSorted());
  const { total, succeeded, failed } = batch.counts;
  expect([total, succeeded + failed]).toEqual([lines, lines]);
  for (const stranger of OWNERS.filter((one) => one !== owner)) {
    const errors = [`batch_${id}`, `batch_${"A".repeat(id.length)}`].map((name) =>
      gateway.service.find(stranger, name).catch((error: Error) => error.message.replace(name, "")),
    );
    expect(new Set(await Promise.all(errors)).size, "a foreign batch looks like none").toBe(1);
    const { items } = await gateway.records.list(stranger, { limit: 100, format: "openai" });
    expect(items.map(({ record }) => record.id)).not.toContain(id);
  }
}
