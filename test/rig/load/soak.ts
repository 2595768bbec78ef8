// Hours of usual traffic: every protocol, clients that disconnect, upstreams that fail, and
// reloads. Memory after a garbage collection and open files do not grow.
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { freePort } from "../../kit/process/ports.ts";
import { startBillingUpstream, billing, FRONTENDS } from "../money/billing-upstream.ts";
import { twoDays } from "./soak-history.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import { ask, nextRequest, TARGETS, type ClientResult } from "./traffic.ts";

const SHARES = { leave: 0.1, retried: 0.01 };
/** For a long run: bytes per hour. */
const MOST_AN_HOUR = 1e6;
/** For a short run: bytes in total. */
const MOST_SHORT = 24e6;
const MOST_FILES = 10;
const TOLD_BY_MINUTES = 10;
/** Once per second, after the traffic. */
const LOOKS = 15;
/** More concurrent requests are no usual traffic: further ones are skipped and counted. */
const AT_ONCE = 400;

const yaml = (url: string, n: number) => `
frontends: ${FRONTENDS}
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
timeouts: { idle: ${60 + (n % 2)}s }
providers:${billing(url)}
models:
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], fallback_on: [overloaded, upstream] }`).join("\n")}
${n < 0 ? "" : `# ${n}`}`;

export interface SoakOptions {
  readonly seed: number;
  /** What is judged. */
  readonly seconds: number;
  /**
   * Before it, with the same traffic: a new process grows while code is compiled and pools are
   * filled.
   */
  readonly warm: number;
  readonly perSecond: number;
  /** Between two reloads. */
  readonly reloadMs: number;
  /** A planted middleware keeps every request, which the checker must find. */
  readonly mutant?: "keeps" | "opens";
}

interface Moment {
  readonly at: number;
  readonly live: number;
  readonly files: number;
}

/** After a garbage collection, when open requests have ended. */
async function moment(at: Daemon, port: number): Promise<Moment> {
  let least = Infinity;
  // A finished request may be referenced by its socket until the next one: the minimum of several
  // readings counts.
  for (let i = 0; i < 3; i++) {
    const res = await fetch(`http://127.0.0.1:${port}/settle`);
    least = Math.min(least, ((await res.json()) as { live: number }).live);
    await sleep(100);
  }
  const files = await readdir(`/proc/${at.pid}/fd`);
  return { at: performance.now(), live: least, files: files.length };
}

/** Bytes per hour, by linear regression. */
export function slope(moments: readonly Pick<Moment, "at" | "live">[]): number {
  const mean = (of: (one: Pick<Moment, "at" | "live">) => number) =>
    moments.reduce((sum, one) => sum + of(one), 0) / moments.length;
  const [x, y] = [mean(({ at }) => at), mean(({ live }) => live)];
  const over = mean(({ at, live }) => (at - x) * (live - y));
  const under = mean(({ at }) => (at - x) ** 2);
  return under === 0 ? 0 : (over / under) * 3_600_000;
}

const KEEPER = (what: NonNullable<SoakOptions["mutant"]>) => `
import { openSync } from "node:fs";
import { defineMiddleware } from "tollgate/plugin";
const kept = [];
export default defineMiddleware({
  api: 1, name: "keeper", summary: "Keeps what it should not", sends: "nowhere",
  setup: () => ({
    settle(x) { ${what === "keeps" ? "kept.push(x, Array(20_000).fill(kept.length))" : 'if (kept.push(0) % 3 === 0) openSync("/dev/null")'}; },
  }),
});
`;

export async function soak(of: SoakOptions, say: (line: string) => void): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  await using upstream = await startBillingUpstream();
  const port = await freePort();
  const written = (n: number) =>
    of.mutant
      ? yaml(upstream.up.url, n).replace("limits,", "limits, ./keeper.ts,")
      : yaml(upstream.up.url, n);
  await using at = await startDaemon({
    yaml: written(0),
    env: {
      ATTACK_GAUGE: String(port),
      NODE_OPTIONS: `--import=${join(import.meta.dirname, "../attack/gauge.mjs")}`,
    },
    files: {
      ".tollgate/stats": twoDays(chanced, ["messages", "responses", ...TARGETS], Date.now()),
      ...(of.mutant && { "keeper.ts": KEEPER(of.mutant) }),
    },
  });
  const flying = new Set<Promise<ClientResult | void>>();
  const counts = { asked: 0, whole: 0, left: 0, skipped: 0, reloads: 0 };
  const send = () => {
    const request = nextRequest(chanced, `s${counts.asked++}`, SHARES);
    const asked = ask(at.url, at.key, request).then((heard) => {
      flying.delete(asked);
      upstream.up.reset();
      (upstream.bill as unknown[]).length = 0;
      if (request.leaves !== undefined) counts.left++;
      else if (heard.delivered) counts.whole++;
      else
        wrong.push(`${request.tag} ${request.path}: ${heard.status} ${heard.text.slice(0, 200)}`);
    });
    flying.add(asked);
  };
  const moments: Moment[] = [];
  const began = performance.now();
  const every = Math.max(2_000, Math.min(60_000, (of.seconds * 1_000) / 7));
  const ends = began + (of.warm + of.seconds) * 1_000;
  let [looked, reloaded, due, paused] = [began, began, 0, 0];
  for (let now = began; now < ends; now = performance.now()) {
    for (const all = ((now - began - paused) / 1_000) * of.perSecond; due < all; due++)
      if (flying.size < AT_ONCE) send();
      else counts.skipped++;
    if (now - reloaded > of.reloadMs) {
      reloaded = now;
      await at.write(written(++counts.reloads));
    }
    if (now - looked > every) {
      looked = performance.now();
      // Open requests use more memory than an hour's growth, and vary. So short runs are not judged
      // by their growth per hour.
      if (of.seconds >= TOLD_BY_MINUTES * 60) await Promise.all(flying);
      moments.push(await moment(at, port));
      paused += performance.now() - looked;
      const { live, files } = moments.at(-1)!;
      say(`${Math.round((now - began) / 1_000)} s: ${(live / 1e6).toFixed(1)} MB, ${files} files`);
    }
    await sleep(2);
  }
  await Promise.all(flying);
  const warmed = moments.filter((one) => one.at > began + of.warm * 1_000);
  warmed.push(await rested(at, port, warmed));
  judge(of, warmed, wrong);
  const live = (one: Moment | undefined) => `${((one?.live ?? 0) / 1e6).toFixed(1)}MB`;
  return {
    wrong: wrong.slice(0, 50),
    counts: {
      ...counts,
      live: `${live(warmed[0])}-${live(warmed.at(-1))}`,
      slope: `${(slope(warmed) / 1e6).toFixed(2)}MB/h`,
      files: warmed.at(-1)!.files,
    },
    seed: of.seed,
  };
}

/** Resources after the traffic: clients close their idle connections within seconds. */
async function rested(at: Daemon, port: number, seen: readonly Moment[]): Promise<Moment> {
  const least = Math.min(...seen.map(({ files }) => files));
  for (let left = LOOKS; ; left--) {
    await sleep(1_000);
    const now = await moment(at, port);
    if (now.files <= least + MOST_FILES || left === 0) return now;
  }
}

function judge({ seconds }: SoakOptions, seen: readonly Moment[], wrong: string[]): void {
  const [first, last] = [seen[0]!, seen.at(-1)!];
  if (seconds >= TOLD_BY_MINUTES * 60) {
    const grows = slope(seen);
    if (grows > MOST_AN_HOUR)
      wrong.push(`what is in use grows by ${(grows / 1e6).toFixed(1)} MB an hour`);
  } else if (last.live - first.live > MOST_SHORT)
    wrong.push(`what is in use grew by ${((last.live - first.live) / 1e6).toFixed(1)} MB`);
  // Connections vary with the traffic. After it, only idle ones remain.
  const least = Math.min(...seen.map(({ files }) => files));
  if (last.files - least > MOST_FILES + (seconds < 600 ? 40 : 0))
    wrong.push(`open files: ${last.files}, and there were ${least}`);
}

export const rig: Rig = {
  options: { minutes: 30, warm: 25, rate: 200, seed: Date.now() % 1e6 },
  run: ({ minutes, warm, rate, seed }, say) =>
    soak(
      {
        seed: Number(seed),
        seconds: Number(minutes) * 60,
        warm: Number(warm) * 60,
        perSecond: Number(rate),
        reloadMs: 60_000,
      },
      say,
    ),
};
