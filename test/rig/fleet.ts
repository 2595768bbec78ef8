// Several real daemons on one real PostgreSQL while everything breaks, and their common ledger beside the bill of the upstream: no call
// lost, doubled or mispriced, and no budget overrun, whichever gateway, database or road between them dies.
import { setTimeout as sleep } from "node:timers/promises";
import type { Entry, JsonObject } from "tollgate/plugin";
import { startFleet, type Fleet, type FleetNode } from "../kit/fleet.ts";
import { startPostgres, type Postgres } from "../kit/postgres.ts";
import { biller, billing, FRONTENDS, PICTURE, wished } from "./biller.ts";
import { gateAsked } from "./fleet-gate.ts";
import { judgedFleet, type Tight } from "./fleet-judge.ts";
import { deadlocksIn, planted } from "./fleet-plants.ts";
import { chance, type Chance, type Rig, type Verdict } from "./rig.ts";
import { ask, nextRequest, TARGETS, type Heard } from "./traffic.ts";

const LEASE_MS = 3_000;
const HOUR_MS = 3_600_000;
/** Pictures that a tight budget is worth. */
const WORTH = 40;

/** Every protocol, each provider at a price. `drain`: how it ends. */
export const fleetYaml = (url: string, drain = "announce: 0s, for: 5s"): string => `
frontends: ${FRONTENDS}
attempts: { target: 1 }
middleware: [auth, { use: limits, with: { hold: hard } }, { use: usage, with: { label_headers: [x-rig] } }]
drain: { ${drain} }
providers:${billing(url)}
models:
${TARGETS.map((first, i) => `  any-${first}: { candidates: [${first}/model, ${TARGETS[(i + 1) % TARGETS.length]}/model], on: [overloaded, upstream] }`).join("\n")}
`;

interface World {
  readonly fleet: Fleet;
  readonly postgres: Postgres;
  readonly chanced: Chance;
  readonly wrong: string[];
}

/** What may break, and how it is whole again when it resolves. */
const FAULTS: Readonly<Record<string, (world: World) => Promise<void>>> = {
  async kill({ fleet, chanced }) {
    const node = running(fleet, chanced);
    const { daemon } = node;
    node.daemon = undefined;
    daemon!.kill("SIGKILL");
    await daemon!.exit;
    await sleep(chanced.below(chanced.often(0.3) ? 2 * LEASE_MS : 1_000));
    await node.start();
  },
  async pause({ fleet, chanced }) {
    const { daemon } = running(fleet, chanced);
    daemon!.kill("SIGSTOP");
    await sleep(chanced.often(0.5) ? 200 + chanced.below(1_500) : LEASE_MS + chanced.below(4_000));
    daemon!.kill("SIGCONT");
  },
  async restart({ fleet, chanced, wrong }) {
    const node = running(fleet, chanced);
    const { daemon } = node;
    node.daemon = undefined;
    const code = await daemon!.stop();
    if (code !== 0) wrong.push(`a daemon that was stopped in good order ended with ${code}`);
    await node.start();
  },
  async "database-kill"({ postgres, chanced }) {
    await postgres.kill();
    await sleep(chanced.below(3_000));
    await postgres.start();
  },
  async "database-pause"({ postgres, chanced }) {
    postgres.freeze();
    await sleep(300 + chanced.below(4_000));
    postgres.thaw();
  },
  async "database-restart"({ postgres, chanced }) {
    await postgres.stop();
    await sleep(chanced.below(1_000));
    await postgres.start();
  },
  async reset({ fleet, chanced }) {
    for (const { road } of fleet.nodes) if (chanced.often(0.6)) road.reset();
    await sleep(100);
  },
  async cut({ fleet, chanced }) {
    const { road } = chanced.one(fleet.nodes);
    road.cut();
    await sleep(200 + chanced.below(2 * LEASE_MS));
    road.mend();
  },
  async hole({ fleet, chanced }) {
    const { road } = chanced.one(fleet.nodes);
    road.hold();
    await sleep(200 + chanced.below(2 * LEASE_MS));
    road.free();
  },
  async clock({ fleet, chanced }) {
    const node = running(fleet, chanced);
    await node.clock((chanced.often(0.5) ? 1 : -1) * HOUR_MS);
    await sleep(1_000 + chanced.below(3_000));
    await node.clock(0);
  },
  async slow({ fleet, chanced }) {
    const { road } = chanced.one(fleet.nodes);
    road.delay(1 + chanced.below(80));
    await sleep(1_000 + chanced.below(2_000));
    road.delay(0);
  },
};

const running = (fleet: Fleet, chanced: Chance): FleetNode =>
  chanced.one(fleet.nodes.filter(({ daemon }) => daemon));

export async function fleetRig(of: {
  seconds: number;
  nodes: number;
  clients: number;
  seed: number;
  /** A defect, planted in the database's part of the store. */
  plant?: string;
  faults?: readonly string[];
  built?: boolean;
  say?: (line: string) => void;
}): Promise<Verdict> {
  const { say = () => {}, faults = Object.keys(FAULTS) } = of;
  const chanced = chance(of.seed);
  const wrong: string[] = [];
  await using postgres = await startPostgres({ settings: ["deadlock_timeout=50ms"] });
  await using upstream = await biller();
  const url = await postgres.database();
  await using fleet = await startFleet({
    url,
    nodes: of.nodes,
    yaml: fleetYaml(upstream.up.url),
    with: { lease_ms: `${LEASE_MS}` },
    built: of.built ?? false,
  });
  await planted(of.plant ?? "", (text) => postgres.sql(url, text));
  const traffic = new Traffic(fleet, chanced);
  const clients = Array.from({ length: of.clients }, (_, i) => traffic.client(i));
  const counts: Record<string, number> = {};
  const end = performance.now() + of.seconds * 1_000;
  // A deck: in a run that is long enough each of them comes as often as the others.
  let deck: string[] = [];
  while (performance.now() < end) {
    await sleep(200 + chanced.below(2_500));
    if (deck.length === 0) deck = [...faults];
    const [fault] = deck.splice(chanced.below(deck.length), 1) as [string];
    counts[fault] = (counts[fault] ?? 0) + 1;
    say(`${Math.round((end - performance.now()) / 1_000)} s left: ${fault}`);
    await FAULTS[fault]!({ fleet, postgres, chanced, wrong });
  }
  traffic.over = true;
  await Promise.all(clients);
  await quietened(fleet, wrong);
  const entries = await readEntries(fleet);
  wrong.push(...(await deadlocksIn((text) => postgres.sql(url, text))));
  const { problems } = (await fleet.any().ask("ledger.verify")) as {
    problems: { message: string }[];
  };
  for (const { message } of problems) wrong.push(`verify: ${message}`);
  wrong.push(...judgedFleet(entries, upstream.bill, traffic.heard, traffic.tight));
  wrong.push(...(await gateAsked(url)));
  const of_kind = (is: (entry: Entry) => boolean) => entries.filter(is).length;
  return {
    wrong,
    counts: {
      faults: Object.values(counts).reduce((sum, n) => sum + n, 0),
      requests: traffic.heard.length,
      delivered: traffic.heard.filter(({ delivered }) => delivered).length,
      refused: traffic.heard.filter(({ status }) => status === 503).length,
      billed: upstream.bill.length,
      presumed: of_kind(({ outcome }) => outcome === "presumed"),
      corrected: of_kind(({ kind }) => kind === "adjust"),
      budgets: traffic.tight.length,
      ...counts,
    },
    seed: of.seed,
  };
}

/** Clients that ask any gateway; every fourth draws on a budget that is worth little. */
class Traffic {
  readonly heard: Heard[] = [];
  readonly tight: Tight[] = [];
  over = false;
  readonly #fleet: Fleet;
  readonly #chanced: Chance;
  readonly #key: string;
  #count = 0;
  #purse: Promise<(Tight & { secret: string }) | undefined> | undefined;

  constructor(fleet: Fleet, chanced: Chance) {
    this.#fleet = fleet;
    this.#chanced = chanced;
    this.#key = fleet.key;
  }

  async client(i: number): Promise<void> {
    while (!this.over) await (i % 4 === 3 ? this.#draw() : this.#talk());
  }

  #url(): string | undefined {
    return this.#chanced.one(this.#fleet.nodes).daemon?.url;
  }

  async #talk(): Promise<void> {
    const request = nextRequest(this.#chanced, `t.${this.#count++}`);
    const url = this.#url();
    if (url === undefined) return sleep(20);
    await this.#ask(url, this.#key, request);
  }

  /** A picture has one price, so that a budget is worth so many and no more. */
  async #draw(): Promise<void> {
    const url = this.#url();
    const of = url && (await (this.#purse ??= this.#made()));
    if (!of) {
      this.#purse = undefined;
      return sleep(50);
    }
    const tag = `${of.tag}.${this.#count++}`;
    const prompt = wished({ tag, words: 0, gap: this.#chanced.below(20) });
    const body = { model: "pictures/draw", prompt, response_format: "b64_json" };
    const path = "/v1/images/generations";
    const request = { tag, path, body, stream: false, leaves: undefined };
    const { status } = await this.#ask(url, of.secret, request);
    if (status === 429) this.#purse = undefined;
  }

  /** A key with a budget of its own. Undefined: no gateway could make one now. */
  async #made(): Promise<(Tight & { secret: string }) | undefined> {
    const tag = `b${this.#count++}`;
    const worth = BigInt(WORTH) * PICTURE;
    const limits = [{ unit: "nano_usd", max: Number(worth), per: "total" }];
    const late = sleep(8_000, undefined, { ref: false });
    const asked = running(this.#fleet, this.#chanced)
      .daemon!.ask("keys.create", { name: tag, limits } as JsonObject)
      .catch(() => undefined);
    const made = (await Promise.race([asked, late])) as { secret: string } | undefined;
    if (!made) return undefined;
    this.tight.push({ tag, worth });
    return { tag, worth, secret: made.secret };
  }

  async #ask(url: string, key: string, request: Heard["request"]): Promise<Heard> {
    const heard = await ask(url, key, request);
    this.heard.push(heard);
    // A gateway that is gone refuses at once; a client waits a little.
    if (heard.status !== 200) await sleep(20);
    return heard;
  }
}

const SETTLED_MS = 60_000;

/** All run, and what the dead left open is settled. */
async function quietened(fleet: Fleet, wrong: string[]): Promise<void> {
  const end = performance.now() + SETTLED_MS;
  for (const node of fleet.nodes) if (!node.daemon) await node.start();
  for (;;) {
    const open = await fleet
      .any()
      .ask("ledger.entries", { state: "open", limit: 10 })
      .then((page) => (page as { items: unknown[] }).items.length)
      .catch(() => -1);
    // What was written a moment ago is listed a moment later.
    if (open === 0) return void (await sleep(1_000));
    if (performance.now() > end)
      return void wrong.push(`${open} calls are open a minute after everything is whole`);
    await sleep(200);
  }
}

/** Amounts come as text. */
export async function readEntries(fleet: Pick<Fleet, "any">): Promise<Entry[]> {
  const found: Entry[] = [];
  let after: string | undefined;
  do {
    const page = (await fleet.any().ask("ledger.entries", {
      limit: 1_000,
      ...(after !== undefined && { after }),
    })) as unknown as {
      items: (Entry & { costNano: string | null })[];
      next?: string;
    };
    for (const entry of page.items)
      found.push({ ...entry, costNano: entry.costNano === null ? null : BigInt(entry.costNano) });
    after = page.next;
  } while (after !== undefined);
  return found;
}

export const rig: Rig = {
  options: {
    minutes: 2,
    nodes: 3,
    clients: 48,
    plant: "",
    faults: "",
    built: "no",
    seed: Date.now() % 1e6,
  },
  run: ({ minutes, nodes, clients, plant = "", faults = "", built, seed }, say) =>
    fleetRig({
      seconds: Number(minutes) * 60,
      nodes: Number(nodes),
      clients: Number(clients),
      plant,
      ...(faults !== "" && { faults: faults.split(",") }),
      built: built === "yes",
      seed: Number(seed),
      say,
    }),
};
