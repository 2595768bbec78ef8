// A database outage under gateways. With `on_outage: reject`, a call is rejected immediately, not
// sent, and served again soon after the database returns. With `on_outage: offline_budget`, keys
// with leases are served during it, none above its limit, and all rows arrive soon after. In both
// cases the ledger equals the bill.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "tollgate/plugin";
import { jsonResponse, startUpstream, type TestUpstream } from "tollgate/testing";
import { startFleet, type Fleet } from "../../kit/database/fleet.ts";
import { startPostgres, type Postgres } from "../../kit/database/postgres.ts";
import { readEntries } from "./fleet.ts";
import { miscounted, readCounted } from "./fleet-consistency.ts";
import type { Rig, RigResult } from "../rig.ts";

/** Cost of one response, reserved and billed alike: an image has one price. */
const EACH = 40_000_000;

const yaml = (url: string) => `
frontends: [images]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"] }, models: { draw: { operation: image, price: { images: 0.04 } } } }
`;

/** By then, the outage is detected. */
const KNOWN_MS = 5_000;
/** Documented times, in milliseconds. */
const REFUSED_MS = 10;
const BACK_MS = 2_000;
const TOLD_MS = 10_000;
/** Longer than any documented time, on any machine. */
const LONG_MS = 60_000;
/** Duration of a call that outlasts the database. */
const SLOW_MS = 2_000;

interface Of {
  requests: number;
  nodes: number;
  /** Duration of the outage. */
  seconds: number;
  /** Maximum factor for all times. */
  patience: number;
}

interface Scene {
  readonly of: Of;
  readonly wrong: string[];
  readonly postgres: Postgres;
  readonly url: string;
  readonly up: TestUpstream;
  readonly fleet: Fleet;
  ask(i: number, key: string, prompt?: string): Promise<Answer>;
}
interface Answer {
  readonly status: number;
  readonly text: string;
  readonly ms: number;
}
type Counts = Record<string, number>;

async function staged(
  of: Of,
  more: Readonly<Record<string, string>>,
  play: (scene: Scene) => Promise<Counts>,
): Promise<RigResult> {
  const wrong: string[] = [];
  await using postgres = await startPostgres();
  await using up = await startUpstream({
    "POST /v1/images/generations": (asked) => ({
      ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
      delayMs: asked.body.toString().includes("slow") ? SLOW_MS : 0,
      billedUsage: { images: 1 },
    }),
    "GET /v1/models": jsonResponse({ object: "list", data: [] }),
  });
  const url = await postgres.database();
  await using fleet = await startFleet({ url, nodes: of.nodes, yaml: yaml(up.url), with: more });
  const ask: Scene["ask"] = async (i, key, prompt = "a gate") => {
    const began = performance.now();
    const answer = await fetch(`${fleet.nodes[i % of.nodes]!.daemon!.url}/v1/images/generations`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify({ model: "up/draw", prompt, response_format: "b64_json" }),
    });
    const text = await answer.text();
    return { status: answer.status, text, ms: performance.now() - began };
  };
  const counts = await play({ of, wrong, postgres, url, up, fleet, ask });
  const entries = await readEntries(fleet);
  const open = entries.filter(({ kind }) => kind === "reserve").length - ends(entries);
  if (open !== 0) wrong.push(`${open} calls are open`);
  const counted = await readCounted(fleet, (text) => postgres.sql(url, text));
  // Budget that is set aside for the next outage is reserved, and belongs to no call.
  const meters = counted.meters.map((meter) => ({ ...meter, held: 0n }));
  wrong.push(...miscounted(entries, { ...counted, meters }));
  const { problems } = (await fleet.any().ask("ledger.verify")) as {
    problems: { message: string }[];
  };
  for (const { message } of problems) wrong.push(`verify: ${message}`);
  return { wrong, counts: { ...counts, billed: up.bills.length }, seed: 0 };
}

const ends = (entries: readonly { kind: string }[]) =>
  entries.filter(({ kind }) => kind === "settle").length;

/** Time until it is true. Undefined: it never is. */
async function soon(fact: () => Promise<boolean>): Promise<number | undefined> {
  const began = performance.now();
  while (performance.now() - began < LONG_MS) {
    if (await fact().catch(() => false)) return performance.now() - began;
    await sleep(10);
  }
  return undefined;
}

/** All of them, one after another. */
const everywhere = ({ of, fleet, ask }: Scene, status: number) =>
  soon(async () => {
    for (let i = 0; i < of.nodes; i++)
      if ((await ask(i, fleet.key)).status !== status) return false;
    return true;
  });

/** The ledger's sum equals the bill, to the nano-dollar. */
const isTold = async ({ fleet, up }: Scene): Promise<boolean> => {
  const { total } = (await fleet.any().ask("ledger.totals", {})) as unknown as {
    total: { costNano: string };
  };
  return BigInt(total.costNano) === BigInt(up.bills.length * EACH);
};

const late = (what: string, ms: number | undefined, most: number, { wrong, of }: Scene): number => {
  if (ms === undefined) wrong.push(`never ${what}`);
  else if (ms > most * of.patience) wrong.push(`${what} after ${Math.round(ms)} ms`);
  return Math.round(ms ?? LONG_MS);
};

const rounded = (ms: number) => Math.round(ms * 10) / 10;

export const fleetRefuses = (of: Of): Promise<RigResult> =>
  staged(of, {}, async (scene) => {
    const { wrong, postgres, up, fleet, ask } = scene;
    if ((await everywhere(scene, 200)) === undefined) wrong.push("it does not serve");
    const before = up.requests.length;
    const slow = fleet.nodes.map((_, i) => ask(i, fleet.key, "slow"));
    await soon(async () => up.requests.length === before + of.nodes);
    const killed = performance.now();
    await postgres.kill();
    const known = late("refused at first", await everywhere(scene, 503), KNOWN_MS, scene);
    for (const { status } of await Promise.all(slow))
      if (status !== 200) wrong.push(`a call under way was answered ${status}`);
    await sleep(Math.max(0, KNOWN_MS - (performance.now() - killed)));
    const sent = up.requests.length;
    const times: number[] = [];
    const left = of.seconds * 1_000 - (performance.now() - killed);
    for (let i = 0; i < of.requests; i++) {
      const { status, text, ms } = await ask(i, fleet.key);
      times.push(ms);
      if (status !== 503 || !text.includes("ledger_unavailable")) wrong.push(`${status} ${text}`);
      await sleep(Math.max(0, left / of.requests - ms));
    }
    if (up.requests.length !== sent) wrong.push(`${up.requests.length - sent} calls were sent`);
    await postgres.start();
    const back = late("served again", await everywhere(scene, 200), BACK_MS, scene);
    const told = late("told", await soon(() => isTold(scene)), TOLD_MS, scene);
    times.sort((a, b) => a - b);
    const part = (share: number) => rounded(times[Math.floor(times.length * share)]!);
    // One in ten may be slow because of other work on the machine, and half of them on a busy
    // machine.
    late("refused", part(of.patience > 1 ? 0.5 : 0.9), REFUSED_MS, scene);
    return {
      refused: times.length,
      "known-ms": known,
      "p50-ms": part(0.5),
      "p90-ms": part(0.9),
      "p99-ms": part(0.99),
      "back-ms": back,
      "told-ms": told,
    };
  });

/** Number of responses that a tight budget covers. */
const TIGHT = 30;

export const fleetGoesOn = (of: Of): Promise<RigResult> =>
  staged(
    of,
    { on_outage: "offline_budget", offline_share: "0.2", lease_ms: "3000" },
    async (scene) => {
      const { wrong, postgres, url, fleet, ask } = scene;
      const key = async (name: string, worth: number) => {
        const limits = [formatLimit({ unit: "nano_usd", max: worth * EACH, per: "total" })];
        const made = await fleet.any().ask("keys.create", { name, limits } as JsonObject);
        return (made as { secret: string }).secret;
      };
      // Each gateway's lease covers more than all of its requests.
      const rich = await key("rich", of.requests * 100);
      const tight = await key("tight", TIGHT);
      const served = { rich: 0, tight: 0 };
      const drawn = async (name: keyof typeof served, i: number): Promise<number> => {
        const { status } = await ask(i, name === "rich" ? rich : tight);
        if (status === 200) served[name]++;
        return status;
      };
      for (const name of ["rich", "tight"] as const)
        for (let i = 0; i < 2 * of.nodes; i++)
          await soon(async () => (await drawn(name, i)) === 200);
      const sliced = () => postgres.sql(url, "SELECT count(*) FROM tollgate.budget_lease");
      const aside = await soon(async () => (await sliced()) === `${2 * of.nodes}`);
      if (aside === undefined) wrong.push(`${await sliced()} slices were set aside`);
      const killed = performance.now();
      await postgres.kill();
      let waited = 0;
      for (let i = 0; i < of.requests; i++) {
        const began = performance.now();
        const status = await drawn("rich", i);
        waited = Math.max(waited, performance.now() - began);
        if (status !== 200) wrong.push(`a key with slices was answered ${status}`);
        await drawn("tight", i);
        const ms = performance.now() - began;
        await sleep(Math.max(0, (of.seconds * 1_000) / of.requests - ms));
      }
      const away = performance.now() - killed;
      const meanwhile = { ...served };
      await postgres.start();
      const told = late("told", await soon(() => isTold(scene)), TOLD_MS, scene);
      // All of it, and no more: leases are returned when a call waits for them.
      const spent = await soon(async () => {
        for (let i = 0; i < of.nodes; i++) await drawn("tight", i);
        return served.tight >= TIGHT;
      });
      for (let i = 0; i < of.nodes; i++) await drawn("tight", i);
      if (spent === undefined || served.tight !== TIGHT)
        wrong.push(`a budget of ${TIGHT} was worth ${served.tight}`);
      await soon(() => isTold(scene));
      return {
        "away-s": Math.round(away / 1_000),
        served: meanwhile.rich,
        "of-tight": meanwhile.tight,
        "longest-ms": rounded(waited),
        "told-ms": told,
      };
    },
  );

const WAYS = { reject: fleetRefuses, offline_budget: fleetGoesOn } as const;

export const rig: Rig = {
  options: { requests: 500, nodes: 3, seconds: 30, patience: 1, away: "reject,offline_budget" },
  async run({ requests, nodes, seconds, patience, away = "" }, say): Promise<RigResult> {
    const wrong: string[] = [];
    const counts: Record<string, number | string> = {};
    for (const way of away.split(",")) {
      const found = await WAYS[way as keyof typeof WAYS]({
        requests: Number(requests),
        nodes: Number(nodes),
        seconds: Number(seconds),
        patience: Number(patience),
      });
      say(`${way}: ${JSON.stringify(found.counts)}`);
      wrong.push(...found.wrong.map((words) => `${way}: ${words}`));
      for (const [what, count] of Object.entries(found.counts)) counts[`${way}-${what}`] = count;
    }
    return { wrong, counts, seed: 0 };
  },
};
