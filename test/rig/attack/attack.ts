// Attacks on the gateway: effects of one client, one upstream, or one body on all other clients.
// Each family of attacks is a file in attack/. Each attack checks its result. After each, the
// gateway must still serve and have released its memory.
import { setTimeout as sleep } from "node:timers/promises";
import { attacks as abuse } from "./abuse.ts";
import { attacks as crowd } from "./connection-flood.ts";
import { bodiesAttack } from "./bodies.ts";
import { soundsAttack, spelledAttack } from "./budgets.ts";
import { attacks as doors } from "./entry-points.ts";
import { attacks as foreign } from "./foreign-fields.ts";
import { idleAttack } from "./idle.ts";
import { attacks as hostile } from "./hostile.ts";
import { mutantsAttack } from "./mutated-requests.ts";
import { patternsAttack } from "./patterns.ts";
import { privateAttack } from "./private.ts";
import { bombsAttack, namesAttack, textsAttack } from "./texts.ts";
import { openSite, type Attack, type Gauge, type Site } from "./target.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";

/** Maximum growth of used memory since the start. */
const MORE = 100e6;
/**
 * Maximum growth of the process's memory since the start, including memory that the allocator
 * keeps.
 */
const MORE_KEPT = 64e6;
const WARM = 2_000;
const WARM_EVERY = 12;
const SMALL = '{"model":"chat/m","messages":[{"role":"user","content":"a"}]}';

export interface AttackOptions {
  readonly seed: number;
  readonly requests: number;
  /** Runs one in this many bodies. */
  readonly every: number;
  /** Runs attacks whose name contains this text. */
  readonly only: string;
  /** Includes the long ones. */
  readonly long: boolean;
}

export const list = ({ requests, every }: Pick<AttackOptions, "requests" | "every">): Attack[] => [
  mutantsAttack(requests),
  ...foreign,
  spelledAttack(Math.ceil(requests / 10)),
  soundsAttack,
  privateAttack(Math.ceil(requests / 10)),
  patternsAttack(requests),
  ...abuse,
  ...hostile,
  bodiesAttack(every),
  textsAttack(Math.ceil(200 / every)),
  bombsAttack,
  namesAttack,
  idleAttack,
  ...doors(requests),
  ...crowd,
];

/**
 * Memory is released within a minute, when the garbage collector and threads of the engine have
 * run.
 */
async function rested(site: Site, goal = 0): Promise<Gauge> {
  let now = await site.settled();
  for (let i = 0; i < (goal > 0 ? 12 : 2) && now.rss > goal; i++) {
    await sleep(5_000);
    now = await site.settled();
  }
  return now;
}

/**
 * Runs the attacks that need the most memory once. glibc keeps part of a process's peak memory, so
 * memory is compared with that of a process after its peak: a second round must not need more.
 */
async function warm(site: Site): Promise<void> {
  for (let i = 0; i < 50; i++) await site.post("/v1/chat/completions", SMALL);
  await mutantsAttack(WARM).run(site);
  await bodiesAttack(WARM_EVERY).run(site);
  for (const { run } of hostile) await run(site);
}

export async function attack(of: AttackOptions, say: (line: string) => void): Promise<RigResult> {
  const wrong: string[] = [];
  await using site = await openSite(createChance(of.seed));
  await warm(site);
  const before = await rested(site);
  let run = 0;
  for (const { name, long, ...each } of list(of)) {
    if (!name.includes(of.only) || (long && !of.long)) continue;
    const found = await each.run(site);
    run++;
    const after = await site.settled();
    const { status } = await site.post("/v1/chat/completions", SMALL);

    wrong.push(...found);
    if (status !== 200) wrong.push(`${name}: nobody is served after it (${status})`);
    if (after.live - before.live > MORE)
      wrong.push(`${name}: ${((after.live - before.live) / 1e6).toFixed(0)} MB stay in use`);
    for (const note of site.notes.splice(0)) say(`      ${note}`);
    say(
      `${found.length === 0 ? "held " : "BROKE"}  ${name}  (${(after.live / 1e6).toFixed(0)} MB in use)`,
    );
  }
  const end = await rested(site, of.long ? before.rss + MORE_KEPT : 0);
  if (of.long && end.rss - before.rss > MORE_KEPT)
    wrong.push(`${((end.rss - before.rss) / 1e6).toFixed(0)} MB more stay with the process`);
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)}MB`;
  return {
    wrong,
    counts: {
      attacks: run,
      requests: of.requests,
      held: `${site.held.toFixed(0)}ms`,
      rss: `${mb(before.rss)}-${mb(end.rss)}`,
      live: `${mb(before.live)}-${mb(end.live)}`,
    },
    seed: of.seed,
  };
}

export const rig: Rig = {
  options: { requests: 100_000, every: 1, only: "", long: 1, seed: Date.now() % 1e6 },
  run: ({ requests, every, only, long, seed }, say) =>
    attack(
      {
        requests: Number(requests),
        every: Number(every),
        only: only ?? "",
        long: long !== "0",
        seed: Number(seed),
      },
      say,
    ),
};
