// Batches of an unreliable provider, on SQLite or on PostgreSQL. Gateways are killed with SIGKILL at
// random moments, and other gateways continue their batches. Each line that the provider ran has
// one row with its usage at half of the list price. No batch is sent twice, and none is lost.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { postgresStoreYaml, startPostgres } from "../../kit/database/postgres.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import { startUnreliableProvider, type UnreliableProvider } from "./unreliable-batches.ts";

const PATH = "/v1/chat/completions";
/** Half of the list price, in nano-dollars per token. */
const RATE = { input: 1_000n, output: 4_000n };
/** Batches that are created before each kill. */
const BATCHES_PER_KILL = 3;
/** Latest moment of a kill, in milliseconds after a gateway has started. */
const MAX_KILL_DELAY_MS = 700;
/** Time in which the batches of killed gateways end. A lease takes a minute. */
const END_MS = 600_000;

export interface BatchCrashes {
  readonly store: "sqlite" | "postgres";
  readonly kills: number;
  readonly seed: number;
}

interface World {
  readonly chance: Chance;
  readonly secret: string;
  /** Gateways that run. */
  readonly gateways: Daemon[];
  /** Lines of each batch whose creation was confirmed. */
  readonly known: Map<string, number>;
}

export async function runBatchCrashes(
  { store, kills, seed }: BatchCrashes,
  say: (line: string) => void = () => {},
): Promise<RigResult> {
  const chance = createChance(seed);
  const dir = await mkdtemp(join(tmpdir(), "tollgate-crashes-"));
  await using provider = await startUnreliableProvider(chance);
  await using database = store === "postgres" ? await startPostgres() : undefined;
  const { secret } = mintKey();
  const yaml = `${database ? `store: ${postgresStoreYaml(database.url)}` : ""}
frontends: [chat-completions, { use: jobs, with: { dir: ${join(dir, "files")} } }]
providers:
  fake:
    use: openai-compatible
    with: { base_url: "${provider.url}", api_key: secret, batches: true }
    models: { m: { price: { input: 2, output: 8, tiers: { batch: { input: 1, output: 4 } } } } }
middleware:
  - use: auth
    with: { keys: [{ id: k, digest: ${digestKey(secret)}, limits: [usd=100000/day] }] }
`;
  const start = async (n: number) => {
    const own = join(dir, `gateway-${database ? n : 0}`);
    await mkdir(own, { recursive: true });
    return startDaemon({ yaml, dir: own });
  };
  const world: World = { chance, secret, gateways: [], known: new Map() };
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
      if (kill % 20 === 0) say(`${kill} kills, ${world.known.size} batches confirmed`);
    }
    provider.recover();
    const gateway = world.gateways[0]!;
    await until(
      async () => isIdle(gateway),
      () => "the end of all batches",
      END_MS,
    );
    const wrong = [...(await checkRows(gateway, provider)), ...(await checkBatches(world))];
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
async function checkRows(gateway: Daemon, { batches }: UnreliableProvider): Promise<string[]> {
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
  for (const [attempt, rows] of Map.groupBy(await readRows(gateway), (row) => row.attempt)) {
    // A line of a killed gateway is settled as an estimate, and corrected when its result is read.
    const billed = rows.filter(({ state }) => state !== "void" && state !== "open");
    if (billed.length === 0) continue;
    const sum = (unit: "input" | "output") =>
      billed.reduce((all, { usage }) => all + (usage[unit] ?? 0), 0);
    const cost = billed.reduce((all, one) => all + BigInt(one.costNano ?? 0), 0n);
    const found = `${sum("input")} ${sum("output")} ${cost}`;
    const due = expected.get(attempt);
    if (due !== found) wrong.push(`${attempt} is ${found}, not ${due ?? "billed"}`);
    expected.delete(attempt);
  }
  for (const attempt of expected.keys()) wrong.push(`${attempt} has no row`);
  const { problems } = (await gateway.ask("ledger.verify")) as { problems: unknown[] };
  if (problems.length > 0) wrong.push(`The ledger does not verify: ${JSON.stringify(problems)}`);
  return wrong;
}

/** Each batch whose creation was confirmed is complete. */
async function checkBatches({ gateways, secret, known }: World): Promise<string[]> {
  const wrong: string[] = [];
  for (const [id, lines] of known) {
    const { status, request_counts: counts } = await call(
      gateways[0]!.url,
      secret,
      `/v1/batches/${id}`,
    );
    const ended = counts.completed + counts.failed;
    if (status !== "completed" || ended !== lines)
      wrong.push(`${id} is ${status} with ${ended} of ${lines} lines`);
  }
  return wrong;
}

export const rig: Rig = {
  options: { store: "sqlite", kills: 200, seed: 1 },
  run: ({ store, kills, seed }, say) =>
    runBatchCrashes(
      {
        store: store === "postgres" ? "postgres" : "sqlite",
        kills: Number(kills),
        seed: Number(seed),
      },
      say,
    ),
};
