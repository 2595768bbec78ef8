// Many requests at once on a budget that is worth a few: exactly so many are served. With the plug pulled meanwhile, never
// more than that.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { json, upstream } from "tollgate/testing";
import { startGateway, type Daemon } from "../gateway.ts";
import { chance, type Rig, type Verdict } from "./rig.ts";

/** What one answer costs, in nano-dollars, held and billed alike: a picture has one price. */
const EACH = 40_000_000;

const yaml = (url: string) => `
frontends: [images]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
providers:
  pictures: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { kind: image, price: { images: 0.04 } } } }
`;

async function made(daemon: Daemon, worth: number): Promise<string> {
  const { secret } = (await daemon.ask("keys.create", {
    name: `round ${Math.random()}`,
    limits: [{ unit: "nano_usd", max: worth * EACH, per: "total" }],
  })) as { secret: string };
  return secret;
}

async function ask(url: string, key: string): Promise<number> {
  try {
    const answer = await fetch(`${url}/v1/images/generations`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({
        model: "pictures/draw",
        prompt: "a gate",
        response_format: "b64_json",
      }),
    });
    const text = await answer.text();
    return answer.status === 200 && !text.includes("b64_json") ? 0 : answer.status;
  } catch {
    return 0;
  }
}

export async function budget(of: {
  rounds: number;
  requests: number;
  worth: number;
  kills: boolean;
  seed: number;
}): Promise<Verdict> {
  const chanced = chance(of.seed);
  const wrong: string[] = [];
  let served = 0;
  let refused = 0;
  await using up = await upstream({
    "POST /v1/images/generations": () => ({
      ...json({ created: 1, data: [{ b64_json: "aGk=" }] }),
      waitMs: chanced.below(40),
      bill: { images: 1 },
    }),
    "GET /v1/models": json({ object: "list", data: [] }),
  });
  const dir = await mkdtemp(join(tmpdir(), "tollgate-budget-"));
  let daemon = await startGateway({ yaml: yaml(up.url), dir });
  try {
    for (let round = 0; round < of.rounds; round++) {
      up.forget();
      const key = await made(daemon, of.worth);
      const all = Array.from({ length: of.requests }, () => ask(daemon.url, key));
      if (of.kills) {
        await sleep(200 + chanced.below(1_500));
        daemon.kill("SIGKILL");
        await Promise.all([...all, daemon.exit]);
        daemon = await startGateway({ yaml: yaml(up.url), dir });
        // What is left of it, to the last picture.
        all.push(...Array.from({ length: of.worth + 10 }, () => ask(daemon.url, key)));
      }
      const answers = await Promise.all(all);
      const count = (status: number) => answers.filter((each) => each === status).length;
      served += count(200);
      refused += count(429);
      const said = `round ${round}: ${count(200)} served, ${up.bill.length} billed`;
      if (up.bill.length > of.worth || count(200) > of.worth)
        wrong.push(`${said}: more than ${of.worth}`);
      if (!of.kills && (count(200) !== of.worth || count(200) + count(429) !== of.requests))
        wrong.push(`${said}, ${count(429)} refused: not exactly ${of.worth}`);
    }
  } finally {
    await daemon.stop();
    await rm(dir, { recursive: true, force: true });
  }
  return {
    wrong,
    counts: { rounds: of.rounds, served, refused, kills: of.kills ? of.rounds : 0 },
    seed: of.seed,
  };
}

export const rig: Rig = {
  options: { rounds: 5, requests: 500, worth: 50, kills: 0, seed: Date.now() % 1e6 },
  run: ({ rounds, requests, worth, kills, seed }) =>
    budget({
      rounds: Number(rounds),
      requests: Number(requests),
      worth: Number(worth),
      kills: Number(kills) > 0,
      seed: Number(seed),
    }),
};
