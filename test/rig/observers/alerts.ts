// A budget is spent across several workers while workers and the whole gateway are killed, and the
// receiver of alerts is sometimes down. It receives each of the budget's four thresholds under one
// ID, in order, even if some arrive twice.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { askOnNewConnection, startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { type Chance, createChance, type Rig, type RigResult } from "../rig.ts";

/** A connection to a process that was killed during its setup may stay silent forever. */
const GIVEN_UP_MS = 20_000;

const yaml = (url: string, workers: number) => `
workers: ${workers}
frontends: [chat-completions]
middleware: [auth, limits, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
observers:
  - use: alerts
    with: { retry_ms: 50, receivers: { ops: { url: "${url}", secret: whsec_${Buffer.alloc(32, 5).toString("base64")} } }, rules: [{ on: [budget.threshold_reached] }] }
providers: { demo: { use: demo } }
`;

export interface Heard {
  readonly id: string;
  readonly percent: number;
}

/** Deliveries with the same ID count once. Each threshold is delivered, in order. */
export function judge(heard: readonly Heard[]): string[] {
  const once = [...new Map(heard.map((one) => [one.id, one.percent])).values()];
  return once.join() === "50,80,95,100" ? [] : [`heard of ${once.join()}`];
}

/** It sometimes rejects, and always responds slowly. */
async function receiver(chanced: Chance) {
  const heard: Heard[] = [];
  const server = createServer(async (req, res) => {
    let body = "";
    for await (const part of req) body += String(part);
    if (chanced.often(0.3)) return void res.writeHead(503).end();
    const { id, data } = JSON.parse(body) as { id: string; data: { percent: number } };
    heard.push({ id, percent: data.percent });
    return void res.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { heard, url, close: () => (server.closeAllConnections(), server.close()) };
}

async function killed(at: Daemon, chanced: Chance, again: () => Promise<Daemon>): Promise<Daemon> {
  const { workers = [] } = (await at.ask("status")) as unknown as { workers?: { pid: number }[] };
  if (workers.length > 0 && chanced.often(0.5)) {
    process.kill(chanced.one(workers).pid, "SIGKILL");
    return at;
  }
  await at.stop("SIGKILL");
  return again();
}

export const rig: Rig = {
  options: { requests: 10_000, workers: 8, kills: 20, seed: 1 },
  async run(of, say): Promise<RigResult> {
    const [requests, workers, kills, seed] = ["requests", "workers", "kills", "seed"].map((name) =>
      Number(of[name]),
    ) as [number, number, number, number];
    const chanced = createChance(seed);
    const ops = await receiver(chanced);
    const dir = await mkdtemp(join(tmpdir(), "tollgate-rig-alerts-"));
    const start = () => startDaemon({ yaml: yaml(ops.url, workers), dir });
    let at = await start();
    let served = 0;
    try {
      const max = Math.floor(requests * 0.8);
      const { secret } = (await at.ask("keys.create", {
        limits: [`requests=${max}/total`],
      })) as { secret: string };
      for (let round = 0; round <= kills; round++) {
        const here = at;
        const many = Array.from({ length: Math.ceil(requests / (kills + 1)) }, () =>
          Promise.race([
            askOnNewConnection(here, "demo/echo", secret).catch(() => 0),
            sleep(GIVEN_UP_MS, 0),
          ]),
        );
        const asked = Promise.all(many);
        await Promise.race([asked, sleep(chanced.below(1_000))]);
        if (round < kills) at = await killed(at, chanced, start);
        served += (await asked).filter((status) => status === 200).length;
        say(`round ${round}: ${served} served, ${ops.heard.length} heard`);
      }
      // Interrupted requests are repeated.
      for (
        let left = max;
        left > 0 && (await askOnNewConnection(at, "demo/echo", secret)) === 200;
        left--
      );
      await until(() => new Set(ops.heard.map(({ id }) => id)).size >= 4);
      await sleep(1_000);
    } finally {
      await at.stop("SIGKILL");
      ops.close();
      await rm(dir, { recursive: true, force: true });
    }
    return { wrong: judge(ops.heard), counts: { served, heard: ops.heard.length, kills }, seed };
  },
};
