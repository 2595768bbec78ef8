// Two gateways behind a load balancer that checks /readyz at an interval. They are restarted in
// turn under load, and no request is lost.
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { startBalancer, type Backend } from "./balancer.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const yaml = (announceMs: number) => `
frontends: [chat-completions]
middleware: [auth]
store: memory
shutdown: { announce: ${announceMs}ms, timeout: 20s }
providers: { demo: { use: demo } }
`;

export async function restart(of: {
  restarts: number;
  /** Interval of the load balancer's checks. */
  pollMs: number;
  announceMs: number;
  perSecond: number;
  seed: number;
}): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const daemons = await Promise.all([1, 2].map(() => startDaemon({ yaml: yaml(of.announceMs) })));
  const backends = daemons.map(({ url, key }): Backend => ({ url, key, ready: false }));
  await using front = await startBalancer(backends, of.pollMs);
  const asked: Promise<string | undefined>[] = [];
  const load = setInterval(() => {
    asked.push(ask(front.url, chanced));
  }, 1_000 / of.perSecond);
  try {
    for (let n = 0; n < of.restarts; n++) {
      const place = n % 2;
      await ready(backends);
      await again(daemons, backends, place);
    }
    await ready(backends);
  } finally {
    clearInterval(load);
    await Promise.all(asked);
    await Promise.all(daemons.map((each) => each[Symbol.asyncDispose]()));
  }
  const wrong = (await Promise.all(asked)).filter((said) => said !== undefined);
  return { wrong, counts: { asked: asked.length, restarts: of.restarts }, seed: of.seed };
}

async function ready(backends: readonly Backend[]): Promise<void> {
  while (!backends.every((each) => each.ready)) await sleep(10);
}

/** Like an init system: a signal, the exit, and a new process in the same folder. */
async function again(daemons: Daemon[], backends: Backend[], place: number): Promise<void> {
  const { dir, file, stop } = daemons[place]!;
  await stop();
  // The load balancer's last result is outdated: until its next check, the new one is not ready.
  backends[place]!.ready = false;
  const fresh = await startDaemon({ yaml: await readFile(file, "utf8"), dir });
  daemons[place] = fresh;
  Object.assign(backends[place]!, { url: fresh.url, key: fresh.key });
}

/** Undefined if the response was complete. */
async function ask(url: string, chanced: Chance): Promise<string | undefined> {
  const stream = chanced.often(0.5);
  const content = Array.from({ length: 1 + chanced.below(30) }, (_, i) => `word${i}`).join(" ");
  try {
    const res = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "demo/echo",
        stream,
        messages: [{ role: "user", content }],
      }),
    });
    const text = await res.text();
    if (res.status !== 200) return `${res.status} ${text.slice(0, 200)}`;
    return !stream || text.includes("data: [DONE]") ? undefined : `cut: ${text.slice(-100)}`;
  } catch (error) {
    return `no answer: ${String((error as Error).cause ?? error)}`;
  }
}

export const rig: Rig = {
  options: { restarts: 6, poll: 1_000, announce: 5_000, rate: 100, seed: Date.now() % 1e6 },
  run: ({ restarts, poll, announce, rate, seed }) =>
    restart({
      restarts: Number(restarts),
      pollMs: Number(poll),
      announceMs: Number(announce),
      perSecond: Number(rate),
      seed: Number(seed),
    }),
};
