// Concurrent requests on a budget for a few calls, with several gateways on one PostgreSQL: exactly
// that many are served. If gateways are killed, never more.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "tollgate/plugin";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { startFleet, type Fleet } from "../../kit/database/fleet.ts";
import { startPostgres } from "../../kit/database/postgres.ts";
import { gateAsked } from "./fleet-apply-batch.ts";
import { deadlocksIn, planted } from "./fleet-sql-mutants.ts";
import { readEntries } from "./fleet.ts";
import { LOGGED, Refusals } from "./fleet-aborted-transactions.ts";
import { miscounted, readCounted } from "./fleet-consistency.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

/** Cost of one response, reserved and billed alike: an image has one price. */
const EACH = 40_000_000;

const yaml = (url: string) => `
frontends: [images]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
accounts:
  house: { limits: [requests=1000000/day] }
  team: { parent: house, limits: [usd=1000000/total] }
providers:
  pictures: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: 0.04 } } } }
`;

/** 0: no complete response. */
async function ask(url: string, key: string): Promise<number> {
  try {
    const answer = await fetch(`${url}/v1/images/generations`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      signal: AbortSignal.timeout(60_000),
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

interface Round {
  readonly fleet: Fleet;
  readonly key: string;
  readonly requests: number;
  readonly chanced: Chance;
}

const asked = ({ fleet, key, requests }: Round): Promise<number>[] =>
  Array.from({ length: requests }, (_, i) =>
    ask(fleet.nodes[i % fleet.nodes.length]!.daemon?.url ?? "http://127.0.0.1:1", key),
  );

/** Concurrent calls: batches stay small, and the database's function decides most of them. */
async function few(round: Round, parallel: number): Promise<number[]> {
  const { fleet, key, requests } = round;
  const answers: number[] = [];
  let next = 0;
  const client = async () => {
    while (next < requests)
      answers.push(await ask(fleet.nodes[next++ % fleet.nodes.length]!.daemon!.url, key));
  };
  await Promise.all(Array.from({ length: parallel }, client));
  return answers;
}

/** One gateway is killed in the middle, and the rest of the budget is requested then. */
async function withKill(round: Round, worth: number): Promise<number[]> {
  const { fleet, chanced } = round;
  const all = asked(round);
  await sleep(chanced.below(400));
  const node = chanced.one(fleet.nodes);
  const { daemon } = node;
  daemon!.kill("SIGKILL");
  await daemon!.exit;
  await node.start();
  return Promise.all([...all, ...asked({ ...round, requests: worth + 10 })]);
}

const RECOVERED_MS = 60_000;

/**
 * When all calls of the dead gateway are settled and a last client is rejected, the budget is spent
 * completely: by billed and possibly billed calls.
 */
async function recovered({ fleet, key }: Round, id: string, worth: number): Promise<string[]> {
  const entries = async (of: JsonObject) => {
    const page = await fleet.any().ask("ledger.entries", { ...of, key: id, limit: 1_000 });
    return (page as unknown as { items: { kind: string; costNano: string | null }[] }).items;
  };
  const isOver = async () => {
    if ((await entries({ state: "open" })).length > 0) return false;
    return (await ask(fleet.any().url, key)) === 429;
  };
  const end = performance.now() + RECOVERED_MS;
  while (!(await isOver())) {
    if (performance.now() > end) return [`${id} has room, or open calls, long after a kill`];
    await sleep(100);
  }
  // New rows are listed with a short delay.
  let spent = 0n;
  do {
    spent = 0n;
    for (const { kind, costNano } of await entries({}))
      if (kind !== "reserve") spent += BigInt(costNano ?? 0);
    if (spent === BigInt(worth * EACH)) return [];
    await sleep(100);
  } while (performance.now() < end);
  return [`${id} is worth ${worth * EACH}, and ${spent} after a kill and its recovery`];
}

export async function fleetBudget(of: {
  rounds: number;
  requests: number;
  worth: number;
  nodes: number;
  /** A gateway is killed in one of this many rounds. 0: in none. */
  kills: number;
  /** A defect planted in the database's part of the store. */
  plant?: string;
  /** Concurrent requests. 0: all of them. */
  parallel: number;
  seed: number;
}): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  const sum = { served: 0, refused: 0, kills: 0 };
  const refusals = new Refusals();
  await using postgres = await startPostgres({
    settings: ["deadlock_timeout=50ms", ...LOGGED],
    says: refusals.says,
  });
  const url = await postgres.database();
  await using up = await startUpstream({
    "POST /v1/images/generations": () => ({
      ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
      delayMs: chanced.below(40),
      billedUsage: { images: 1 },
    }),
    "GET /v1/models": jsonResponse({ object: "list", data: [] }),
  });
  await using fleet = await startFleet({
    url,
    nodes: of.nodes,
    yaml: yaml(up.url),
  });
  await planted(of.plant ?? "", (text) => postgres.sql(url, text));
  for (let round = 0; round < of.rounds; round++) {
    up.reset();
    const limits = [formatLimit({ unit: "nano_usd", max: of.worth * EACH, per: "total" })];
    const made = await fleet
      .any()
      .ask("keys.create", { name: `round ${round}`, account: "team", limits });
    const { secret: key, key: named } = made as { secret: string; key: { id: string } };
    const kill = of.kills > 0 && round % of.kills === of.kills - 1;
    const these = { fleet, key, requests: of.requests, chanced };
    const answers = kill
      ? await withKill(these, of.worth)
      : of.parallel > 0
        ? await few(these, of.parallel)
        : await Promise.all(asked(these));
    const count = (status: number) => answers.filter((each) => each === status).length;
    sum.served += count(200);
    sum.refused += count(429);
    if (kill) sum.kills++;
    const said = `round ${round}: ${count(200)} served, ${count(429)} refused, ${up.bills.length} billed`;
    if (up.bills.length > of.worth) wrong.push(`${said}: more than ${of.worth}`);
    if (!kill && (count(200) !== of.worth || count(200) + count(429) !== of.requests))
      wrong.push(`${said}: not exactly ${of.worth}`);
    if (kill) wrong.push(...(await recovered(these, named.id, of.worth)));
  }
  const counted = await readCounted(fleet, (text) => postgres.sql(url, text));
  wrong.push(...miscounted(await readEntries(fleet), counted));
  wrong.push(...(await deadlocksIn((text) => postgres.sql(url, text))));
  wrong.push(...refusals.wrong);
  wrong.push(...(await gateAsked(url)));
  return { wrong, counts: { rounds: of.rounds, nodes: of.nodes, ...sum }, seed: of.seed };
}

export const rig: Rig = {
  options: {
    rounds: 20,
    requests: 500,
    worth: 50,
    nodes: 3,
    kills: 5,
    plant: "",
    parallel: 0,
    seed: Date.now() % 1e6,
  },
  run: ({ rounds, requests, worth, nodes, kills, plant = "", parallel, seed }) =>
    fleetBudget({
      rounds: Number(rounds),
      requests: Number(requests),
      worth: Number(worth),
      nodes: Number(nodes),
      kills: Number(kills),
      plant,
      parallel: Number(parallel),
      seed: Number(seed),
    }),
};
