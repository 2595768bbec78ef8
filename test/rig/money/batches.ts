// Generated batches against a provider that loses, repeats, delays, and reorders its answers, while
// the gateway restarts. The rows of each batch add up to the provider's usage, and to half of the
// list price. Nothing is sent or billed twice, and no key learns of another key's batch.
import { fileURLToPath } from "node:url";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { fail, type BatchResult } from "tollgate/plugin";
import { answerLine, resetFakeBatches, usageOf, type FakeBatch } from "../../kit/batch-provider.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const provider = fileURLToPath(new URL("../../kit/batch-provider.ts", import.meta.url));
/** Nano-dollars per token at half of the list price. */
const RATES: Readonly<Record<string, { readonly input: bigint; readonly output: bigint }>> = {
  small: { input: 1_000n, output: 4_000n },
  large: { input: 2_000n, output: 8_000n },
};
/** Time in which all batches end. */
const END_MS = 1_800_000;
/** Jobs that are created at the same time. */
const CREATED_TOGETHER = 8;

interface Batches {
  readonly batches: number;
  readonly restarts: number;
  readonly seed: number;
}

interface Created {
  readonly id: string;
  readonly secret: string;
  readonly format: "openai" | "anthropic";
  readonly lines: number;
  readonly invalid: number;
}

export async function runBatches({ batches, restarts, seed }: Batches): Promise<RigResult> {
  const chance = createChance(seed);
  const secrets = [mintKey().secret, mintKey().secret];
  const yaml = `
frontends: [chat-completions, messages, jobs]
providers: { fake: { use: ${provider}, with: { api_key: secret } } }
middleware:
  - use: auth
    with: { keys: [${secrets.map((one, i) => `{ id: k${i}, digest: ${digestKey(one)}, limits: [usd=1000/day] }`).join(", ")}] }
`;
  const api = misbehave(chance);
  const world = { secrets, chance, gateway: await startInProcess({ yaml }) };
  const { dir } = world.gateway;
  const made: Created[] = [];
  try {
    for (let restart = 0; restart <= restarts; restart++) {
      const until = Math.ceil((batches * (restart + 1)) / (restarts + 1));
      while (made.length < until)
        made.push(
          ...(await Promise.all(
            Array.from({ length: Math.min(CREATED_TOGETHER, until - made.length) }, () =>
              createBatch(world),
            ),
          )),
        );
      if (restart === restarts) break;
      await world.gateway.stop();
      world.gateway = await startInProcess({ yaml, dir });
    }
    const wrong: string[] = [];
    const ended = new Map<Created, EndedBatch>();
    for (const one of made) ended.set(one, await waitForEnd(world, one));
    const rows = await readRows(world);
    const sent = Map.groupBy(fakes(), ({ key }) => key.replace(/-\d+$/, ""));
    for (const [one, batch] of ended) {
      const id = ownId(one);
      const found = { batch, sent: sent.get(id) ?? [], rows: rows.get(id) ?? [] };
      wrong.push(...(await checkBatch(world, one, found)));
    }
    wrong.push(...(await checkSending(world, made)));
    const lines = made.reduce((sum, one) => sum + one.lines, 0);
    const counts = { batches: made.length, lines, restarts, sent: api.batches.size };
    return { wrong, counts, seed };
  } finally {
    await world.gateway[Symbol.asyncDispose]();
  }
}

/** Lets the provider fail as providers fail. */
function misbehave(chance: Chance) {
  const api = resetFakeBatches();
  const read = new Set<string>();
  api.before = (method) => {
    if (method !== "cancel" && chance.below(10) === 0) fail("unavailable", `${method} failed.`);
  };
  api.afterSubmit = () => {
    if (chance.below(5) === 0) throw new Error("The response is lost.");
  };
  api.pollsToEnd = 2;
  api.results = (batch) => {
    const all = batch.lines.flatMap((line): BatchResult[] => resultsOf(line));
    const isLate = !read.has(batch.key) && all.length % 3 === 1;
    read.add(batch.key);
    const some = isLate ? all.slice(0, all.length / 2) : all;
    return some.toSorted((a, b) => orderOf(a) - orderOf(b));
  };
  return api;
}

const orderOf = ({ id }: BatchResult): number => (Number(id) * 7) % 11;

/** What the provider answers follows from the text, so that it is the same each time. */
function resultsOf(line: FakeBatch["lines"][number]): BatchResult[] {
  const { id, body } = line;
  switch (usageOf(body).prompt_tokens % 6) {
    case 0:
      return [{ id, outcome: "answered", status: 400, body: { error: { message: "no" } } }];
    case 1:
      return [answerLine(line), answerLine(line)];
    case 2:
      return [{ id, outcome: "expired", status: 408 }];
    default:
      return [answerLine(line)];
  }
}

const isBilled = (line: FakeBatch["lines"][number]): boolean => resultsOf(line)[0]!.status === 200;

interface World {
  readonly secrets: readonly string[];
  readonly chance: Chance;
  gateway: InProcessGateway;
}

async function call(
  { gateway }: World,
  secret: string,
  path: string,
  init: { method?: string; body?: string | FormData; isAnthropic?: boolean } = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${gateway.url}${path}`, {
    method: init.method ?? "GET",
    headers: {
      authorization: `Bearer ${secret}`,
      ...(typeof init.body === "string" && { "content-type": "application/json" }),
      ...(init.isAnthropic && { "anthropic-version": "2023-06-01" }),
    },
    body: init.body ?? null,
  });
  return { status: response.status, text: await response.text() };
}

async function createBatch(world: World): Promise<Created> {
  const { chance, secrets } = world;
  const secret = chance.one(secrets);
  const format = chance.one(["openai", "anthropic"] as const);
  const lines = 1 + chance.below(12);
  const bodies = Array.from({ length: lines }, () => ({
    model: chance.below(9) === 0 ? "nowhere/model" : `fake/${chance.one(["small", "large"])}`,
    max_tokens: 64,
    messages: [{ role: "user", content: "x".repeat(chance.below(40)) }],
  }));
  const invalid = bodies.filter(({ model }) => model === "nowhere/model").length;
  const id = await (format === "openai" ? createOpenai : createAnthropic)(world, secret, bodies);
  return { id, secret, format, lines, invalid };
}

async function createOpenai(world: World, secret: string, bodies: readonly object[]) {
  const url = "/v1/chat/completions";
  const text = bodies
    .map((body, n) => JSON.stringify({ custom_id: `c${n}`, method: "POST", url, body }))
    .join("\n");
  const form = new FormData();
  form.append("purpose", "batch");
  form.append("file", new File([text], "in.jsonl"));
  const file = await call(world, secret, "/v1/files", { method: "POST", body: form });
  const { id } = JSON.parse(file.text) as { id: string };
  const body = JSON.stringify({ input_file_id: id, endpoint: url, completion_window: "24h" });
  const batch = await call(world, secret, "/v1/batches", { method: "POST", body });
  return (JSON.parse(batch.text) as { id: string }).id;
}

async function createAnthropic(world: World, secret: string, bodies: readonly object[]) {
  const requests = bodies.map((params, n) => ({ custom_id: `c${n}`, params }));
  const body = JSON.stringify({ requests });
  const of = { method: "POST", body, isAnthropic: true };
  const batch = await call(world, secret, "/v1/messages/batches", of);
  return (JSON.parse(batch.text) as { id: string }).id;
}

const pathOf = ({ format, id }: Created): string =>
  format === "openai" ? `/v1/batches/${id}` : `/v1/messages/batches/${id}`;

interface Row {
  readonly attempt: string;
  readonly state: string;
  readonly usage: { readonly input?: number; readonly output?: number };
  readonly costNano: string;
}

/** A batch as its client sees it. */
type EndedBatch = Readonly<Record<string, any>>;

async function waitForEnd(world: World, of: Created): Promise<EndedBatch> {
  const isAnthropic = of.format === "anthropic";
  let batch: Record<string, any> = {};
  await until(
    async () => {
      batch = JSON.parse((await call(world, of.secret, pathOf(of), { isAnthropic })).text) as never;
      return ["completed", "expired", "failed", "ended"].includes(
        batch["status"] ?? batch["processing_status"],
      );
    },
    () => `the end of ${of.id}`,
    END_MS,
  );
  return batch;
}

const ownId = ({ id }: Created): string => id.replace(/^(?:msg)?batch_/, "");

interface Found {
  readonly batch: EndedBatch;
  /** Batches that the provider received for it. */
  readonly sent: readonly FakeBatch[];
  /** Rows of the batch and of its lines. */
  readonly rows: readonly Row[];
}

/** Compares the rows of a batch with the lines that the provider ran. */
async function checkBatch(
  world: World,
  of: Created,
  { batch, sent, rows: all }: Found,
): Promise<string[]> {
  const isAnthropic = of.format === "anthropic";
  const wrong: string[] = [];
  let [input, output, cost, billed] = [0, 0, 0n, 0];
  for (const { lines, model } of sent)
    for (const line of lines.filter(isBilled)) {
      const { prompt_tokens, completion_tokens } = usageOf(line.body);
      const rates = RATES[model]!;
      input += prompt_tokens;
      output += completion_tokens;
      cost += BigInt(prompt_tokens) * rates.input + BigInt(completion_tokens) * rates.output;
      billed++;
    }
  const rows = all.filter(({ state }) => state !== "void");
  const sums = {
    rows: rows.length,
    input: rows.reduce((sum, { usage }) => sum + (usage.input ?? 0), 0),
    output: rows.reduce((sum, { usage }) => sum + (usage.output ?? 0), 0),
    cost: rows.reduce((sum, { costNano }) => sum + BigInt(costNano), 0n),
  };
  for (const [name, expected] of Object.entries({ rows: billed, input, output, cost }))
    if (sums[name as "rows"] !== expected)
      wrong.push(`${of.id}: ${name} is ${sums[name as "rows"]}, not ${expected}`);
  const counts = batch["request_counts"] as Record<string, number>;
  const succeeded = isAnthropic ? counts["succeeded"] : counts["completed"];
  if (succeeded !== billed) wrong.push(`${of.id}: ${succeeded} succeeded, not ${billed}`);
  const stranger = world.secrets.find((one) => one !== of.secret)!;
  const foreign = await call(world, stranger, pathOf(of), { isAnthropic });
  if (foreign.status !== 404) wrong.push(`${of.id}: a stranger gets ${foreign.status}`);
  return wrong;
}

const fakes = (): Iterable<FakeBatch> =>
  (
    globalThis as unknown as { tollgateFakeBatches: { batches: Map<string, FakeBatch> } }
  ).tollgateFakeBatches.batches.values();

/** Returns the rows of all lines and jobs, by the ID of their batch. */
async function readRows({ gateway }: World): Promise<ReadonlyMap<string, readonly Row[]>> {
  const rows = new Map<string, Row[]>();
  for (let after: string | undefined; ;) {
    const page = (await gateway.ask("ledger.entries", { limit: 1_000, after })) as unknown as {
      items: Row[];
      next?: string;
    };
    for (const row of page.items) {
      const [, id] = /^batch_([\w-]+)/.exec(row.attempt) ?? [];
      if (id === undefined || row.state === "open") continue;
      const own = rows.get(id);
      if (own) own.push(row);
      else rows.set(id, [row]);
    }
    after = page.next;
    if (after === undefined) return rows;
  }
}

/** Each line is sent once, and no reservation is left. */
async function checkSending(world: World, made: readonly Created[]): Promise<string[]> {
  const wrong: string[] = [];
  const keys = [...fakes()].map(({ key }) => key);
  if (new Set(keys).size < keys.length) wrong.push("A batch was sent twice.");
  const { problems } = (await world.gateway.ask("ledger.verify")) as { problems: unknown[] };
  if (problems.length > 0) wrong.push("The ledger does not verify.");
  const lines = [...fakes()].reduce((sum, one) => sum + one.lines.length, 0);
  const valid = made.reduce((sum, one) => sum + one.lines - one.invalid, 0);
  if (lines !== valid) wrong.push(`${lines} lines were sent, not ${valid}.`);
  return wrong;
}

export const rig: Rig = {
  options: { batches: 10_000, restarts: 200, seed: 1 },
  run: ({ batches, restarts, seed }) =>
    runBatches({ batches: Number(batches), restarts: Number(restarts), seed: Number(seed) }),
};
