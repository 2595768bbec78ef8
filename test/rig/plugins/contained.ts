// Broken plugins that the process contains, all at the same time: other requests are served as
// before, each broken plugin is named, and a hook that keeps failing is quarantined.
import { setTimeout as sleep } from "node:timers/promises";
import type { Daemon } from "../../kit/process/daemon.ts";
import type { Chance } from "../rig.ts";
import { askBroken, pidsOf, statusOf } from "./stage.ts";
import { COSTLY, FAILS, HELD, HOOKS, type Held } from "./failure-modes.ts";

const KEYS = 5;

interface Plugin {
  readonly model: string;
  readonly how: string;
  readonly fails: boolean;
  readonly rounds: number;
}

const plugins = (rounds: number): readonly Plugin[] => [
  ...(Object.keys(HELD) as Held[]).map((how) => ({
    model: `${how}/m`,
    how,
    fails: FAILS.has(how),
    rounds: COSTLY.has(how) ? Math.min(2, rounds) : rounds,
  })),
  ...HOOKS.map((how) => ({ model: `hook-${how}`, how, fails: true, rounds })),
];

export async function held(
  at: Daemon,
  rounds: number,
  chanced: Chance,
  wrong: string[],
): Promise<{ broken: number; aside: number }> {
  const before = pidsOf(await statusOf(at));
  const keys = await severalKeys(at);
  let broken = 0;
  await Promise.all(
    plugins(rounds).map(async (plugin) => {
      for (let i = 0; i < plugin.rounds; i++) {
        const answer = await askBroken(at, plugin.model, chanced.often(0.5), keys[i % KEYS]);
        broken++;
        if (plugin.fails) wrong.push(...unnamed(plugin, answer));
        await sleep(chanced.below(50));
      }
    }),
  );
  const status = await statusOf(at);
  if (pidsOf(status) !== before) wrong.push(`processes ended: ${before} are ${pidsOf(status)}`);
  const aside = new Set(status.quarantinedHooks.map(({ plugin }) => plugin));
  for (const how of HOOKS)
    if (![...aside].some((plugin) => plugin.includes(how)))
      wrong.push(`${how}: failed ${rounds} times, and is not in quarantine`);
  return { broken, aside: aside.size };
}

function unnamed({ model, how }: Plugin, { status, text }: { status: number; text: string }) {
  const wrong: string[] = [];
  if (status === 200 && !text.includes('"error"'))
    wrong.push(`${model}: passed for whole: ${text.slice(0, 200)}`);
  if (!text.includes(how)) wrong.push(`${model}: not named: ${status} ${text.slice(0, 300)}`);
  return wrong;
}

/** A single client needs more failures, because its requests may be the cause. */
const severalKeys = (at: Daemon): Promise<string[]> =>
  Promise.all(
    Array.from({ length: KEYS }, async (_, i) => {
      const { secret } = (await at.ask("keys.create", { name: `k${i}` })) as { secret: string };
      return secret;
    }),
  );
