// Tens of thousands of hostile inputs: bytes on sockets, bodies, responses of providers. None
// causes an internal error, ends the process, or hangs it. The event loop continues, and at the end
// the process has the same resources as at the start. Then requests that two parsers could split
// differently are sent, directly and through proxies.
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
/**
 * Per lane, before the first measurement. Data about a model is kept from its first call on, so all
 * have been called by then.
 */
const WARM = { http: 500, json: 500, sse: 5 * FRESH } as const satisfies Record<LaneName, number>;
/** Each failure is minimized by many repetitions. */
const MOST_FOUND = 10;
const FORGET_EVERY = 500;
/** Idle connections are closed after ten seconds. */
const SETTLES_S = 15;

export interface FuzzOptions {
  readonly http: number;
  readonly json: number;
  readonly sse: number;
  readonly seed: number;
  /** One input, as printed for a failure. */
  readonly replay?: string;
  /** Whether the table of smuggled requests runs. */
  readonly smuggling?: boolean;
  readonly say?: (line: string) => void;
  /** Planted defect of a plugin, which must be found. */
  readonly mutant?: Planted;
  /** Time to release resources, in seconds. */
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

/** Minimized, with the command that repeats it. */
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

/** Garbage collection and closed sockets need a moment. */
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
