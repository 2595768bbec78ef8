// Hostile inputs by the ten thousand: bytes on sockets, bodies, answers of providers. None makes an error of ours, none ends the process
// or hangs, the loop goes on, and what the process had at the start it has in the end. Then requests that two parsers might
// take for two, directly and through proxies.
import { setTimeout as sleep } from "node:timers/promises";
import { drawn, read, shrunk, spelled, type HostileInput } from "./input.ts";
import { LANES, type LaneName } from "./lanes.ts";
import { smuggling } from "./smuggling.ts";
import { PLANTED, type Planted } from "./broken-plugins.ts";
import { FRESH, openSite, type FuzzSite, type Gauge } from "./target.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const HELD_MS = 200;
const MORE_LIVE = 32e6;
const MORE_DESCRIPTORS = 10;
/** Of each lane, before the start is measured. What is known of a model is kept from its first call on, so all have been asked by then. */
const WARM = { http: 500, json: 500, sse: 5 * FRESH } as const satisfies Record<LaneName, number>;
/** Each is made smaller, and that is played again and again. */
const MOST_FOUND = 10;
const FORGET_EVERY = 500;
/** Idle connections are closed after ten. */
const SETTLES_S = 15;

export interface FuzzOptions {
  readonly http: number;
  readonly json: number;
  readonly sse: number;
  readonly seed: number;
  /** One input, as a failure is printed. */
  readonly replay?: string;
  /** Whether the table of requests that could be two is played. */
  readonly smuggling?: boolean;
  readonly say?: (line: string) => void;
  /** What is wrong with a plugin of the gateway, and must be found. */
  readonly mutant?: Planted;
  /** How long it is given to let go of what it had, in seconds. */
  readonly settles?: number;
}

interface Found {
  readonly lane: LaneName;
  readonly input: HostileInput;
  readonly problem: string;
}

export async function fuzz(of: FuzzOptions): Promise<RigResult> {
  const say = of.say ?? (() => {});
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  await using site = await openSite(of.mutant && PLANTED[of.mutant]);
  if (of.replay) return await replayed(site, of.replay, of.seed);
  const names = Object.keys(LANES) as LaneName[];
  for (const lane of names) await play(site, lane, Math.min(WARM[lane], of[lane]), chanced);
  const before = await site.gauge();
  let held = 0;
  for (const lane of names) {
    const began = performance.now();
    const found = await play(site, lane, of[lane], chanced);
    for (const each of found) wrong.push(await told(site, each));
    held = Math.max(held, (await site.gauge()).held);
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    say(
      `${lane}: ${of[lane]} inputs in ${seconds} s, ${found.length} wrong, loop held for ${held.toFixed(0)} ms at most`,
    );
  }
  const counts: Record<string, number | string> = { http: of.http, json: of.json, sse: of.sse };
  if (of.smuggling ?? true) {
    const table = await smuggling(site, say);
    wrong.push(...table.wrong);
    counts["smuggling"] = table.played;
  }
  const after = await settled(site, before, of.settles ?? SETTLES_S);
  wrong.push(...kept(before, after, held), ...unwell(site));
  const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)}MB`;
  return {
    wrong,
    counts: {
      ...counts,
      held: `${held.toFixed(0)}ms`,
      live: `${mb(before.live)}-${mb(after.live)}`,
      descriptors: `${before.descriptors}-${after.descriptors}`,
    },
    seed: of.seed,
  };
}

async function play(
  site: FuzzSite,
  name: LaneName,
  times: number,
  chanced: Chance,
): Promise<Found[]> {
  const lane = LANES[name];
  const found: Found[] = [];
  let left = times;
  const one = async () => {
    while (left-- > 0) {
      const input = drawn(chanced, lane.bases, lane.operators);
      const problem = await lane.play(site.daemon, input);
      if (problem !== undefined && found.length < MOST_FOUND)
        found.push({ lane: name, input, problem });
      if (left % FORGET_EVERY === 0) site.up.reset();
    }
  };
  await Promise.all(Array.from({ length: lane.width }, one));
  return found;
}

/** With the least that still does it, and the command for that. */
async function told(site: FuzzSite, { lane, input, problem }: Found): Promise<string> {
  const fails = async (each: HostileInput) =>
    (await LANES[lane].play(site.daemon, each)) !== undefined;
  const least = (await fails(input)) ? await shrunk(input, fails) : input;
  return `${lane}: ${problem.slice(0, 500)}\n    npm run rig fuzz -- --replay ${spelled(lane, least)}`;
}

async function replayed(site: FuzzSite, text: string, seed: number): Promise<RigResult> {
  const { lane, input } = read(text);
  const problem = await LANES[lane as LaneName].play(site.daemon, input);
  return { wrong: problem === undefined ? [] : [problem], counts: { replayed: 1 }, seed };
}

/** Collections and closed sockets need a moment. */
async function settled(site: FuzzSite, goal: Gauge, seconds: number): Promise<Gauge> {
  let now = await site.gauge();
  for (let i = 0; i < seconds && kept(goal, now, 0).length > 0; i++) {
    await sleep(1_000);
    now = await site.gauge();
  }
  return now;
}

function kept(before: Gauge, after: Gauge, held: number): string[] {
  const wrong: string[] = [];
  if (held > HELD_MS) wrong.push(`the loop was held for ${held.toFixed(0)} ms`);
  if (after.live - before.live > MORE_LIVE)
    wrong.push(`${((after.live - before.live) / 1e6).toFixed(0)} MB more are in use`);
  if (after.descriptors - before.descriptors > MORE_DESCRIPTORS)
    wrong.push(`${after.descriptors - before.descriptors} more descriptors are open`);
  return wrong;
}

const unwell = ({ daemon }: FuzzSite): string[] =>
  daemon.log
    .filter(({ level, msg }) => level === "fatal" || /not caught|unhandled/i.test(msg))
    .map((line) => `the daemon says: ${JSON.stringify(line).slice(0, 400)}`);

export const rig: Rig = {
  options: { http: 25_000, json: 25_000, sse: 25_000, seed: Date.now() % 1e6, replay: "" },
  run: ({ http, json, sse, seed, replay }, say) =>
    fuzz({
      http: Number(http),
      json: Number(json),
      sse: Number(sse),
      seed: Number(seed),
      ...(replay && { replay }),
      say,
    }),
};
