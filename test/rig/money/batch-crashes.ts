// Batches of an unreliable provider, on SQLite or on PostgreSQL. Gateways are killed with SIGKILL at
// random moments, and other gateways continue their batches. Each line that the provider ran has
// one bill with its usage at half of the list price. No batch is sent twice, none is lost, and none
// can be seen with another key. Several worlds run at the same time, each with its own store.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { postgresStoreYaml, startPostgres } from "../../kit/database/postgres.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { nanoToDecimal } from "../../../src/money/decimal.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import { startUnreliableProvider, type UnreliableProvider } from "./unreliable-batches.ts";

const PATH = "/v1/chat/completions";
/** Input, output, and cost of a line that is not billed. */
const NO_BILL = "0 0 0";
/** Half of the list price, in nano-dollars per token. */
const RATE = { input: 1_000n, output: 4_000n };
/** Batches that are created before each kill. */
const BATCHES_PER_KILL = 3;
/** Latest moment of a kill, in milliseconds after a gateway has started. */
const MAX_KILL_DELAY_MS = 700;
/** Time in which the batches of killed gateways end. A lease takes a minute. */
const END_MS = 600_000;

type StoreName = "sqlite" | "postgres";

export interface BatchCrashes {
  readonly store: StoreName;
  readonly kills: number;
  readonly seed: number;
  /** Whether the gateways are those of `npm run build`, which start faster. */
  readonly built?: boolean;
}

interface World {
  readonly chance: Chance;
  readonly secret: string;
  /** Key of another client. */
  readonly strangerSecret: string;
  /** Gateways that run. */
  readonly gateways: Daemon[];
  /** Lines of each batch whose creation was confirmed. */
  readonly known: Map<string, number>;
}

export async function runBatchCrashes(
  { store, kills, seed, built = false }: BatchCrashes,
  say: (line: string) => void = () => {},
): Promise<RigResult> {
  const chance = createChance(seed);
  const dir = await mkdtemp(join(tmpdir(), "tollgate-crashes-"));
  await using provider = await startUnreliableProvider(chance);
  await using database = store === "postgres" ? await startPostgres() : undefined;
  const [secret, strangerSecret] = [mintKey().secret, mintKey().secret];
  const yaml = `${database ? `store: ${postgresStoreYaml(database.url)}` : ""}
frontends: [chat-completions, { use: jobs, with: { dir: ${join(dir, "files")} } }]
providers:
  fake:
    use: openai-compatible
    with: { base_url: "${provider.url}", api_key: secret, batches: true }
    models: { m: { price: { input: 2, output: 8, tiers: { batch: { input: 1, output: 4 } } } } }
middleware:
  - use: auth
    with: { keys: [{ id: k, digest: ${digestKey(secret)}, limits: [usd=100000/day] }, { id: s, digest: ${digestKey(strangerSecret)} }] }
`;
  const start = async (n: number) => {
    const own = join(dir, `gateway-${database ? n : 0}`);
    await mkdir(own, { recursive: true });
    return startDaemon({ yaml, dir: own, built });
  };
  const world: World = { chance, secret, strangerSecret, gateways: [], known: new Map() };
  try {
    world.gateways.push(await start(0));
    for (let kill = 1; kill <= kills; kill++) {
      // On PostgreSQL, another gateway runs while this one is killed.
      if (database && world.gateways.length < 2) world.gateways.push(await start(kill));
      const creations = Array.from({ length: BATCHES_PER_KILL }, () => createBatch(world));
      const creating = Promise.allSettled(creations);
      // Most kills follow a creation, so that engines are killed and not only creations.
      if (chance.below(4) > 0) await Promise.any(creations).catch(() => undefined);
      await sleep(chance.below(MAX_KILL_DELAY_MS));
      const killed = world.gateways.shift()!;
      killed.kill("SIGKILL");
      await killed.exit;
      await creating;
      if (world.gateways.length === 0) world.gateways.push(await start(kill));
      if (kill % 10 === 0)
        say(`${store}, seed ${seed}: ${kill} kills, ${world.known.size} batches confirmed`);
    }
    provider.recover();
    const gateway = world.gateways[0]!;
    await until(
      async () => isIdle(gateway),
      () => "the end of all batches",
      END_MS,
    );
    const rows = await readRows(gateway);
    const wrong = [
      ...(await checkRows(gateway, provider, rows)),
      ...(await checkBatches(world, rows)),
      ...(await checkStranger(world)),
    ];
    const lines = provider.batches.reduce((sum, one) => sum + one.lines.length, 0);
    const counts = { store, kills, confirmed: world.known.size, sent: provider.batches.length };
    return { wrong, counts: { ...counts, lines }, seed };
  } finally {
    for (const gateway of world.gateways) {
      gateway.kill("SIGKILL");
      await gateway.exit;
    }
    await rm(dir, { recursive: true, force: true });
  }
}

/** Creates a batch at any gateway. Rejects if the gateway is killed meanwhile. */
async function createBatch({ chance, secret, gateways, known }: World): Promise<void> {
  const { url } = chance.one(gateways);
  const count = 1 + chance.below(12);
  const lines = Array.from({ length: count }, (_, n) => {
    const messages = [{ role: "user", content: "x".repeat(chance.below(40)) }];
    const body = { model: "fake/m", max_tokens: 64, messages };
    return JSON.stringify({ custom_id: `c${n}`, method: "POST", url: PATH, body });
  });
  const form = new FormData();
  form.append("purpose", "batch");
  form.append("file", new File([lines.join("\n")], "in.jsonl"));
  const file = await call(url, secret, "/v1/files", form);
  const of = { input_file_id: file["id"], endpoint: PATH, completion_window: "24h" };
  const batch = await call(url, secret, "/v1/batches", JSON.stringify(of));
  known.set(String(batch["id"]), count);
}

async function call(
  url: string,
  secret: string,
  path: string,
  body?: string | FormData,
): Promise<Record<string, any>> {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      ...(typeof body === "string" && { "content-type": "application/json" }),
    },
    body: body ?? null,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return JSON.parse(text) as Record<string, any>;
}

/** Whether no batch and no line is open. A job that was not created keeps its reservation. */
async function isIdle(gateway: Daemon): Promise<boolean> {
  const { items } = (await gateway.ask("jobs.list", { status: "open" })) as unknown as {
    items: unknown[];
  };
  const rows = await readRows(gateway);
  const settled = new Set(rows.filter(({ state }) => state !== "open").map((one) => one.attempt));
  return items.length === 0 && rows.every(({ attempt }) => settled.has(attempt));
}

interface Row {
  readonly attempt: string;
  readonly state: string;
  readonly usage: { readonly input?: number; readonly output?: number };
  readonly costNano: string | null;
}

/** Returns the rows of lines. */
async function readRows(gateway: Daemon): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let after: string | undefined; ;) {
    const page = (await gateway.ask("ledger.entries", {
      limit: 1_000,
      ...(after !== undefined && { after }),
    })) as unknown as { items: Row[]; next?: string };
    rows.push(...page.items.filter(({ attempt }) => /^batch_[\w-]+\.\d+\.1$/.test(attempt)));
    after = page.next;
    if (after === undefined) return rows;
  }
}

/** Compares the rows of lines with what the provider ran. */
async function checkRows(
  gateway: Daemon,
  { batches }: UnreliableProvider,
  rows: readonly Row[],
): Promise<string[]> {
  const wrong: string[] = [];
  const expected = new Map<string, string>();
  const keys = new Set<string>();
  for (const { key, lines } of batches) {
    if (keys.has(key)) wrong.push(`${key} was sent twice`);
    keys.add(key);
    for (const { id, input, output, isBilled } of lines) {
      const attempt = `batch_${key.replace(/-\d+$/, "")}.${Number(id)}.1`;
      const costNano = BigInt(input) * RATE.input + BigInt(output) * RATE.output;
      if (isBilled) expected.set(attempt, `${input} ${output} ${costNano}`);
    }
  }
  for (const [attempt, own] of Map.groupBy(rows, (row) => row.attempt)) {
    // A line of a killed gateway is settled as an estimate, and corrected when its result is read.
    const billed = own.filter(isBilled);
    if (billed.length === 0) continue;
    const sum = (unit: "input" | "output") =>
      billed.reduce((all, { usage }) => all + (usage[unit] ?? 0), 0);
    const cost = billed.reduce((all, one) => all + BigInt(one.costNano ?? 0), 0n);
    const found = `${sum("input")} ${sum("output")} ${cost}`;
    // A line that the provider rejected may have been recovered, and then corrected to nothing.
    const due = expected.get(attempt) ?? NO_BILL;
    if (due !== found) wrong.push(`${attempt} is ${found}, not ${due}`);
    expected.delete(attempt);
  }
  for (const attempt of expected.keys()) wrong.push(`${attempt} has no row`);
  const { problems } = (await gateway.ask("ledger.verify")) as { problems: unknown[] };
  if (problems.length > 0) wrong.push(`The ledger does not verify: ${JSON.stringify(problems)}`);
  return wrong;
}

const isBilled = ({ state }: Row): boolean => state !== "void" && state !== "open";

/** Each batch whose creation was confirmed is complete, and has the cost of its rows. */
async function checkBatches(
  { gateways, secret, known }: World,
  rows: readonly Row[],
): Promise<string[]> {
  const wrong: string[] = [];
  const costs = new Map<string, bigint>();
  for (const row of rows.filter(isBilled)) {
    const batch = row.attempt.split(".")[0]!;
    costs.set(batch, (costs.get(batch) ?? 0n) + BigInt(row.costNano ?? 0));
  }
  for (const [id, lines] of known) {
    const { status, request_counts: counts } = await call(
      gateways[0]!.url,
      secret,
      `/v1/batches/${id}`,
    );
    const ended = counts.completed + counts.failed;
    if (status !== "completed" || ended !== lines)
      wrong.push(`${id} is ${status} with ${ended} of ${lines} lines`);
    const { job } = (await gateways[0]!.ask("jobs.show", { id })) as unknown as {
      job: { costUsd?: string };
    };
    const cost = nanoToDecimal(costs.get(id) ?? 0n);
    if (job.costUsd !== cost) wrong.push(`${id} costs ${job.costUsd}, and its rows ${cost}`);
  }
  return wrong;
}

/** No batch can be seen with another key: by its ID, in a list, or by an error. */
async function checkStranger({ gateways, strangerSecret, known }: World): Promise<string[]> {
  const wrong: string[] = [];
  const read = async (path: string) => {
    const response = await fetch(`${gateways[0]!.url}${path}`, {
      headers: { authorization: `Bearer ${strangerSecret}` },
    });
    return { status: response.status, text: await response.text() };
  };
  for (const id of known.keys()) {
    const unknown = id.replace(/[^_-]{8}$/, "AAAAAAAA");
    const [foreign, none] = [await read(`/v1/batches/${id}`), await read(`/v1/batches/${unknown}`)];
    if (foreign.status !== 404 || foreign.text.replaceAll(id, unknown) !== none.text)
      wrong.push(`${id}: a stranger gets ${foreign.status} ${foreign.text}, not ${none.text}`);
  }
  for (const path of ["/v1/batches", "/v1/files"]) {
    const { text } = await read(path);
    if ((JSON.parse(text) as { data: unknown[] }).data.length > 0)
      wrong.push(`A stranger lists ${path}: ${text}`);
  }
  return wrong;
}

/** Runs worlds with these stores at the same time, each with its part of the kills. */
async function runWorlds(
  { stores, kills, seed, built }: Omit<BatchCrashes, "store"> & { stores: readonly StoreName[] },
  say: (line: string) => void,
): Promise<RigResult> {
  const startedAt = performance.now();
  const results = await Promise.all(
    stores.map((store, n) => {
      const own =
        Math.floor((kills * (n + 1)) / stores.length) - Math.floor((kills * n) / stores.length);
      return runBatchCrashes({ store, kills: own, seed: seed + n, built: built === true }, say);
    }),
  );
  const sum = (name: string) => results.reduce((all, { counts }) => all + Number(counts[name]), 0);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  return {
    wrong: results.flatMap(({ wrong, seed: own }, n) =>
      wrong.map((text) => `${stores[n]}, seed ${own}: ${text}`),
    ),
    counts: {
      worlds: stores.join("+"),
      kills: sum("kills"),
      confirmed: sum("confirmed"),
      sent: sum("sent"),
      lines: sum("lines"),
      seconds,
    },
    seed,
  };
}

export const rig: Rig = {
  options: { stores: "sqlite,sqlite,postgres", kills: 200, seed: 1, built: false },
  run: ({ stores = "", kills, seed, built }, say) =>
    runWorlds(
      {
        stores: stores.split(",").map((one) => (one === "postgres" ? one : "sqlite")),
        kills: Number(kills),
        seed: Number(seed),
        built: built === "true",
      },
      say,
    ),
};
