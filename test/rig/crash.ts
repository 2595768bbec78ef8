// Kills the real daemon in the middle of everything, again and again, and compares its ledger with the bill of the upstream.
//
// Holds: a delivered answer has exactly one terminal entry; an exact row is the bill, to the nano-dollar; a presumed one is
// at least the bill, and says that it is an estimate; nothing that was billed is missing, nothing is there twice.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Entry, Store } from "tollgate/plugin";
import sqlite from "../../plugins/stores/sqlite.ts";
import { context } from "../../src/testing/context.ts";
import { startGateway, type Daemon } from "../gateway.ts";
import { biller, DRAWN, priced, PRICED, type Biller } from "./biller.ts";
import naive from "./plants/naive.ts";
import { chance, type Chance, type Rig, type Verdict } from "./rig.ts";
import { ask, nextRequest, PROVIDERS, type Heard } from "./traffic.ts";

const CLIENTS = 6;

/** What stands in for the store: our own, a naive one without a fault, or one with a fault planted in it. */
export const PLANTS = ["", "none", "late-settle", "no-reserve", "no-unique-index"] as const;

const yaml = (url: string, plant: string) => `
frontends: [chat-completions, messages, responses, images]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
store: ${plant === "" ? "{ use: sqlite, with: { durability: process, ballast_mb: 0 } }" : `{ use: "${join(import.meta.dirname, "plants/naive.ts")}", with: { bug: ${plant} } }`}
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k }, ${PRICED} }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages/v1", api_key: k }, ${PRICED} }
  responses: { use: openai, with: { base_url: "${url}/responses/v1", api_key: k }, ${PRICED.replace("{ model: {", "{ model: { protocols: [responses],")} }
  pictures: { use: openai-compatible, with: { base_url: "${url}/pictures/v1", api_key: k, images: ["draw"] }, ${DRAWN} }
models:
${PROVIDERS.map((first) => `  any-${first}: { candidates: [${first}/model, ${PROVIDERS.find((p) => p !== first)}/model], on: [overloaded] }`).join("\n")}
`;

export async function crash(of: {
  kills: number;
  seed: number;
  plant: string;
  say: (line: string) => void;
  /** Give up after this long. */
  withinMs?: number;
}): Promise<Verdict> {
  const chanced = chance(of.seed);
  await using upstream = await biller();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-crash-"));
  const heard: Heard[] = [];
  const until = performance.now() + (of.withinMs ?? Infinity);
  let kills = 0;
  let key = "";
  let daemon: Daemon | undefined;
  try {
    for (; kills < of.kills && performance.now() < until; kills++) {
      daemon = await startGateway({ yaml: yaml(upstream.up.url, of.plant), dir });
      key ||= daemon.key;
      await life(daemon, key, kills, chanced, heard);
      if (kills % 20 === 19) of.say(`${kills + 1} kills, ${heard.length} requests`);
    }
    // Whoever starts next finds what was left open.
    daemon = await startGateway({ yaml: yaml(upstream.up.url, of.plant), dir });
    await daemon.stop();
    const { entries, problems } = await read(join(dir, ".tollgate"), of.plant);
    return {
      wrong: [...problems, ...judged(entries, upstream, heard)],
      counts: {
        kills,
        requests: heard.length,
        delivered: heard.filter((h) => h.delivered).length,
        billed: upstream.bill.length,
        exact: entries.filter((e) => e.kind === "settle" && e.state === "exact").length,
        presumed: entries.filter((e) => e.outcome === "presumed").length,
      },
      seed: of.seed,
    };
  } finally {
    daemon?.kill("SIGKILL");
    await rm(dir, { recursive: true, force: true });
  }
}

/** Some traffic, and the plug pulled at a random moment of it. */
async function life(daemon: Daemon, key: string, n: number, chanced: Chance, heard: Heard[]) {
  let dead = false;
  let count = 0;
  const client = async () => {
    while (!dead) {
      const request = nextRequest(chanced, `${n}.${count++}`);
      heard.push(await ask(daemon.url, key, request));
    }
  };
  const clients = Array.from({ length: CLIENTS }, client);
  // Mostly in the thick of it; now and then after streams have told how far they are.
  await sleep(chanced.often(0.1) ? 1_200 + chanced.below(800) : 40 + chanced.below(400));
  daemon.kill("SIGKILL");
  dead = true;
  await Promise.all([...clients, daemon.exit]);
}

async function read(stateDir: string, plant: string) {
  const lent = context({ id: "store" });
  const store = (
    plant === ""
      ? await sqlite.setup(
          { file: join(stateDir, "store", "ledger.db"), durability: "process", ballast_mb: 0 },
          lent.ctx,
        )
      : await naive.setup(
          { bug: plant as "none", file: join(stateDir, "store", "ledger.jsonl") },
          lent.ctx,
        )
  ) as Store;
  await store.open({ instance: "reader", leaseMs: 60_000 });
  const entries: Entry[] = [];
  let after: string | undefined;
  do {
    const page = await store.entries({}, { after, limit: 1_000 });
    entries.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  const problems = ((await store.verify?.()) ?? []).map((p) => `verify: ${p.path} ${p.message}`);
  await lent.end();
  return { entries, problems };
}

function judged(entries: readonly Entry[], { bill }: Biller, heard: readonly Heard[]): string[] {
  const wrong: string[] = [];
  const reserves = new Map<string, Entry>();
  const settles = new Map<string, Entry>();
  const billOf = new Map(bill.map((one) => [`${one.tag} ${one.of}`, one]));
  for (const entry of entries) {
    const book =
      entry.kind === "reserve" ? reserves : entry.kind === "settle" ? settles : undefined;
    if (book?.has(entry.attempt)) wrong.push(`${entry.attempt}: ${entry.kind} twice`);
    book?.set(entry.attempt, entry);
  }
  const rows = new Map<string, Entry>();
  for (const [attempt, reserve] of reserves) {
    const settle = settles.get(attempt);
    if (!settle) {
      wrong.push(`${attempt}: left open`);
      continue;
    }
    const name = `${reserve.labels["x-rig"]} ${reserve.target.provider}`;
    if (rows.has(name)) wrong.push(`${name}: two calls of one request to one provider`);
    rows.set(name, settle);
    const one = billOf.get(name);
    const owed = one ? priced(one.usage()) : 0n;
    if (settle.state === "exact" && settle.costNano !== owed)
      wrong.push(`${name}: exact ${settle.costNano}, billed ${owed}`);
    if (settle.state === "void" && owed > 0n) wrong.push(`${name}: void, billed ${owed}`);
    if (settle.outcome === "presumed" && settle.state !== "estimated")
      wrong.push(`${name}: presumed, and not flagged but ${settle.state}`);
    if (settle.outcome === "presumed" && (settle.costNano ?? -1n) < owed)
      wrong.push(
        `${name}: presumed ${settle.costNano}, billed ${owed} ${JSON.stringify(settle.usage)}`,
      );
  }
  for (const attempt of settles.keys())
    if (!reserves.has(attempt)) wrong.push(`${attempt}: settled without a reserve`);
  for (const name of billOf.keys())
    if (!rows.has(name)) wrong.push(`${name}: billed, and not in the ledger`);
  for (const { delivered, request, text } of heard) {
    if (!delivered) continue;
    const own = [...rows].filter(
      ([name, row]) => name.startsWith(`${request.tag} `) && row.outcome === "ok",
    );
    if (own.length !== 1)
      wrong.push(
        `${request.tag}: delivered, with ${own.length} entries that say so ${text.slice(-80)}`,
      );
    else if (own[0]![1].state !== "exact")
      wrong.push(`${request.tag}: delivered, and ${own[0]![1].state}`);
  }
  return wrong;
}

export const rig: Rig = {
  options: { kills: 50, seed: Date.now() % 1e6, plant: "", minutes: 60 },
  run: ({ kills, seed, plant = "", minutes }, say) =>
    crash({
      kills: Number(kills),
      seed: Number(seed),
      plant,
      say,
      withinMs: Number(minutes) * 60_000,
    }),
};
