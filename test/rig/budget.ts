// Many requests at once on a budget that is worth a few, a key's own or one that keys of nested accounts share: exactly so many are served. With the plug pulled meanwhile, never
// more than that.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { json, upstream } from "tollgate/testing";
import { startGateway, type Daemon } from "../kit/daemon.ts";
import { chance, type Rig, type Verdict } from "./rig.ts";

/** What one answer costs, in nano-dollars, held and billed alike: a picture has one price. */
const EACH = 40_000_000;

/** Every second round has accounts: what the outer one is worth, and inside it one that may not even have that. */
const accountsOf = (rounds: number, worth: number): string =>
  Array.from({ length: rounds }, (_, i) => {
    const limits = (most: number) =>
      `limits: [{ unit: nano_usd, max: ${most * EACH}, per: total }]`;
    return i % 2 === 0
      ? ""
      : `
  house-${i}: { ${limits(worth)} }
  team-${i}: { parent: house-${i}, ${limits(worth - 1)} }
  desk-${i}: { parent: team-${i} }`;
  }).join("");

const yaml = (url: string, accounts: string) => `
frontends: [images]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
providers:
  pictures: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { kind: image, price: { images: 0.04 } } } }
accounts:${accounts || " {}"}
`;

/** One key with a budget of its own, or one of each account, which have none. */
async function made(daemon: Daemon, round: number, worth: number): Promise<string[]> {
  const own = { limits: [{ unit: "nano_usd", max: worth * EACH, per: "total" }] };
  const grants =
    round % 2 === 0
      ? [own]
      : [`house-${round}`, `team-${round}`, `desk-${round}`].map((account) => ({ account }));
  return Promise.all(
    grants.map(async (grant) => {
      const name = `round ${Math.random()}`;
      const made = await daemon.ask("keys.create", { name, ...grant });
      return (made as { secret: string }).secret;
    }),
  );
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
  const text = yaml(up.url, accountsOf(of.rounds, of.worth));
  let daemon = await startGateway({ yaml: text, dir });
  try {
    for (let round = 0; round < of.rounds; round++) {
      up.forget();
      const keys = await made(daemon, round, of.worth);
      const asking = (_: unknown, i: number) => ask(daemon.url, keys[i % keys.length]!);
      const all = Array.from({ length: of.requests }, asking);
      if (of.kills) {
        await sleep(200 + chanced.below(1_500));
        daemon.kill("SIGKILL");
        await Promise.all([...all, daemon.exit]);
        daemon = await startGateway({ yaml: text, dir });
        // What is left of it, to the last picture.
        all.push(...Array.from({ length: of.worth + 10 }, asking));
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
