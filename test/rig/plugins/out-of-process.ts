// An isolated plugin that reads, connects, forks, loops, and leaks: it is rejected or ended in its
// process. The gateway's processes stay the same, and other clients notice nothing.
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { GUARD } from "../../e2e/plugins/broken-plugins.ts";
import { billing, FRONTENDS, type BillingUpstream } from "../money/billing-upstream.ts";
import { TARGETS } from "../load/traffic.ts";
import { askBroken, pidsOf, statusOf } from "./stage.ts";

/** A forbidden action, and how the plugin ends. */
export const OUTSIDE = {
  denied: [
    "read-a-file",
    "write-a-file",
    "dial-out",
    "fork",
    "thread",
    "unnamed-env",
    "unnamed-file-itself",
    "signals",
  ],
  deadly: ["loop", "leak", "leak-bytes", "exit", "abort", "unhandled"],
} as const;
export type OutsideWay = string;
export const OUTSIDE_WAYS: readonly OutsideWay[] = [...OUTSIDE.denied, ...OUTSIDE.deadly];

/** `within`: it runs in the gateway's process, which must be found. */
export const withGuard = (up: BillingUpstream, within: boolean): Promise<Daemon> =>
  startDaemon({
    yaml: `
workers: 2
frontends: ${FRONTENDS}
retries: { per_target: 1 }
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
middleware:
  - auth
  - limits
  - { use: usage, with: { label_headers: [x-rig] } }
  - { use: ./guard.ts, ${within ? "" : "isolate: child, "}timeout: 5s, for: { models: [guarded] } }
providers:${billing(up.up.url)}
models:
  guarded: [chat/model]
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], fallback_on: [overloaded, upstream] }`).join("\n")}
`,
    files: { "guard.ts": GUARD, "named.txt": "named" },
  });

const isDenied = (way: OutsideWay): boolean => (OUTSIDE.denied as readonly string[]).includes(way);

export async function played(
  at: Daemon,
  ways: readonly OutsideWay[],
  { patienceMs, wrong }: { readonly patienceMs: number; readonly wrong: string[] },
): Promise<void> {
  const before = pidsOf(await statusOf(at));
  for (const way of ways) {
    const { status, text } = await askBroken(at, "guarded", false, at.key, `do:${way};`);
    if (isDenied(way) && status !== 500) wrong.push(`${way}: ${status} ${text.slice(0, 200)}`);
    const until = performance.now() + patienceMs;
    let again = 0;
    while (again !== 200 && performance.now() < until) {
      again = (await askBroken(at, "guarded", false)).status;
      if (again !== 200) await sleep(100);
    }
    if (again !== 200) wrong.push(`${way}: it is not there again: ${again}`);
    const now = pidsOf(await statusOf(at));
    if (now !== before) return void wrong.push(`${way}: processes ended: ${before} are ${now}`);
  }
}
