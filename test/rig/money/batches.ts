// Generated batches of each format of clients, at providers of each format of batch APIs that fail as
// real ones do, while the gateway is replaced. Each line has one bill: the tokens that its provider
// reported, at half of the list price. Nothing is lost, sent, or billed twice, and no key can see
// another key's batches.
import { setTimeout as sleep } from "node:timers/promises";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { postgresStoreYaml, startPostgres } from "../../kit/database/postgres.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import {
  billOf,
  MODELS,
  startBatchProviders,
  textOf,
  type BatchProviders,
  type ExpectedBill,
} from "./batch-providers.ts";

/** Time in which all batches end. */
const END_MS = 1_800_000;
/** Time between two polls that find no batch that has ended. */
const POLL_MS = 100;
/** Batches that are created at the same time. */
const CREATED_TOGETHER = 8;
/** Batches that are open at the same time. */
const MAX_OPEN = 48;
/** Keys of clients. Each key may have 1,000 files. */
const KEYS = 8;
/** Number of batches after which progress is reported. */
const REPORT_EVERY = 500;

const STORES = ["sqlite", "memory", "postgres"] as const;

interface Batches {
  readonly batches: number;
  /** How often the gateway is replaced: by a restart, or by a reload if its store is in memory. */
  readonly swaps: number;
  readonly seed: number;
  readonly store: (typeof STORES)[number];
}

const FORMATS = ["chat", "responses", "messages"] as const;

interface Created {
  readonly id: string;
  readonly secret: string;
  readonly format: (typeof FORMATS)[number];
  /** Provider, and what it bills, by the number of the line. Undefined: the line is not billed. */
  readonly lines: readonly { readonly provider: string; readonly bill: ExpectedBill | undefined }[];
}

interface World {
  readonly secrets: readonly string[];
  readonly chance: Chance;
  readonly providers: BatchProviders;
  readonly wrong: string[];
  readonly open: Set<Created>;
  gateway: InProcessGateway;
}

export async function runBatches(
  { batches, swaps, seed, store }: Batches,
  say: (line: string) => void = () => {},
): Promise<RigResult> {
  const chance = createChance(seed);
  const secrets = Array.from({ length: KEYS }, () => mintKey().secret);
  await using providers = await startBatchProviders(chance);
  await using database = store === "postgres" ? await startPostgres() : undefined;
  const yaml = (n: number) => `
store: ${database ? postgresStoreYaml(database.url) : store}
shutdown: { timeout: ${30 + (n % 2)}s }
frontends: [chat-completions, responses, messages, jobs]
${providers.yaml}
middleware:
  - use: auth
    with: { keys: [${secrets.map((one, i) => `{ id: k${i}, digest: ${digestKey(one)}, limits: [usd=100000/day] }`).join(", ")}] }
`;
  const wrong: string[] = [];
  const gateway = await startInProcess({ yaml: yaml(0) });
  const world: World = { secrets, chance, providers, wrong, open: new Set(), gateway };
  const { dir } = gateway;
  const made: Created[] = [];
  const startedAt = performance.now();
  try {
    for (let swap = 0; swap <= swaps; swap++) {
      const end = Math.ceil((batches * (swap + 1)) / (swaps + 1));
      while (made.length < end) {
        const count = Math.min(CREATED_TOGETHER, end - made.length);
        const some = await Promise.all(Array.from({ length: count }, () => createBatch(world)));
        for (const one of some) world.open.add(one);
        made.push(...some);
        if (world.open.size > MAX_OPEN) await waitForEnds(world, MAX_OPEN / 2);
        providers.passTime();
        if (
          Math.floor(made.length / REPORT_EVERY) > Math.floor((made.length - count) / REPORT_EVERY)
        )
          say(`${made.length} batches, ${Math.round((performance.now() - startedAt) / 1_000)} s`);
      }
      if (swap === swaps) break;
      if (store === "memory") await world.gateway.write(yaml(swap + 1));
      else {
        await world.gateway.stop();
        world.gateway = await startInProcess({ yaml: yaml(swap + 1), dir });
      }
    }
    providers.recover();
    await waitForEnds(world, 0);
    wrong.push(...(await checkRows(world, made)), ...(await checkLists(world, made)));
    const lines = made.reduce((sum, one) => sum + one.lines.length, 0);
    const seconds = Math.round((performance.now() - startedAt) / 1_000);
    const counts = {
      store,
      batches: made.length,
      lines,
      swaps,
      sent: providers.accepted(),
      seconds,
    };
    return { wrong, counts, seed };
  } finally {
    await world.gateway[Symbol.asyncDispose]();
  }
}

const isAnthropic = ({ format }: Pick<Created, "format">): boolean => format === "messages";

async function call(
  { gateway }: World,
  secret: string,
  path: string,
  init: {
    readonly method?: string;
    readonly body?: string | FormData;
    readonly isAnthropic?: boolean;
  } = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await fetch(`${gateway.url}${path}`, {
    method: init.method ?? (init.body === undefined ? "GET" : "POST"),
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
  const format = chance.one(FORMATS);
  // Most batches have lines for few providers, as those of real clients.
  const models = Array.from({ length: 1 + chance.below(3) }, () => chance.one(MODELS));
  const drafts = Array.from({ length: 1 + chance.below(6) }, () => {
    const size = 3 + chance.below(40);
    const isInvalid = chance.below(12) === 0;
    const model = isInvalid ? "nowhere/model" : chance.one(models);
    const text = textOf(size);
    const body =
      format === "responses"
        ? { model, input: text, max_output_tokens: 64 }
        : { model, max_tokens: 64, messages: [{ role: "user", content: text }] };
    const provider = model.slice(0, model.indexOf("/"));
    return { body, line: { provider, bill: isInvalid ? undefined : billOf(size) } };
  });
  const bodies = drafts.map(({ body }) => body);
  const id =
    format === "messages"
      ? await createMessages(world, secret, bodies)
      : await createOpenai(world, secret, {
          bodies,
          url: format === "chat" ? "/v1/chat/completions" : "/v1/responses",
        });
  return { id, secret, format, lines: drafts.map(({ line }) => line) };
}

async function createOpenai(
  world: World,
  secret: string,
  { bodies, url }: { readonly bodies: readonly object[]; readonly url: string },
): Promise<string> {
  const text = bodies
    .map((body, n) => JSON.stringify({ custom_id: `c${n}`, method: "POST", url, body }))
    .join("\n");
  const form = new FormData();
  form.append("purpose", "batch");
  form.append("file", new File([text], "in.jsonl"));
  const file = idOf(await call(world, secret, "/v1/files", { body: form }));
  const of = { input_file_id: file, endpoint: url, completion_window: "24h" };
  return idOf(await call(world, secret, "/v1/batches", { body: JSON.stringify(of) }));
}

async function createMessages(
  world: World,
  secret: string,
  bodies: readonly object[],
): Promise<string> {
  const requests = bodies.map((params, n) => ({ custom_id: `c${n}`, params }));
  const body = JSON.stringify({ requests });
  return idOf(await call(world, secret, "/v1/messages/batches", { body, isAnthropic: true }));
}

function idOf({ status, text }: { readonly status: number; readonly text: string }): string {
  if (status !== 200) throw new Error(`${status} ${text}`);
  return (JSON.parse(text) as { id: string }).id;
}

const pathOf = (of: Created): string =>
  isAnthropic(of) ? `/v1/messages/batches/${of.id}` : `/v1/batches/${of.id}`;

/** Waits until at most `most` batches are open, and checks those that have ended. */
async function waitForEnds(world: World, most: number): Promise<void> {
  const { open } = world;
  const read = async (one: Created) => {
    const { text } = await call(world, one.secret, pathOf(one), { isAnthropic: isAnthropic(one) });
    const batch = JSON.parse(text) as Batch;
    open.delete(one);
    // At the end of the set, so that others are read next.
    if (!FINAL.has(batch.status ?? batch.processing_status!)) return void open.add(one);
    world.wrong.push(...(await checkBatch(world, one, batch)));
  };
  await until(
    async () => {
      const before = open.size;
      await Promise.all([...open].slice(0, CREATED_TOGETHER).map(read));
      if (open.size === before) await sleep(POLL_MS);
      world.providers.passTime();
      return open.size <= most;
    },
    () => `the end of ${[...open].map(({ id }) => id).join(", ")}`,
    END_MS,
  );
}

const FINAL: ReadonlySet<string> = new Set(["completed", "expired", "failed", "ended"]);

/** A batch as its client sees it. */
interface Batch {
  readonly status?: string;
  readonly processing_status?: string;
  readonly request_counts: { readonly succeeded?: number; readonly completed?: number };
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly input_file_id?: string;
  readonly output_file_id?: string;
  readonly error_file_id?: string;
}

/** Checks what the client sees of a batch that has ended, and that a stranger sees nothing. */
async function checkBatch(world: World, of: Created, batch: Batch): Promise<string[]> {
  const wrong: string[] = [];
  const { completed, succeeded = completed } = batch.request_counts;
  const bills = of.lines.flatMap(({ bill }) => bill ?? []);
  if (succeeded !== bills.length)
    wrong.push(`${of.id}: ${succeeded} succeeded, not ${bills.length}`);
  const sum = (unit: "input" | "output") => bills.reduce((all, bill) => all + bill[unit], 0);
  const { usage } = batch;
  if (usage && (usage.input_tokens !== sum("input") || usage.output_tokens !== sum("output")))
    wrong.push(`${of.id}: its usage is ${JSON.stringify(usage)}`);
  const paths = isAnthropic(of)
    ? [`${pathOf(of)}/results`]
    : [batch.output_file_id, batch.error_file_id].flatMap((id) =>
        id == null ? [] : [`/v1/files/${id}/content`],
      );
  const ids: string[] = [];
  for (const path of paths) {
    const { text } = await call(world, of.secret, path, { isAnthropic: isAnthropic(of) });
    for (const line of text.trimEnd().split("\n"))
      ids.push((JSON.parse(line) as { custom_id: string }).custom_id);
  }
  const expected = of.lines.map((_, n) => `c${n}`);
  if (ids.toSorted().join() !== expected.toSorted().join())
    wrong.push(`${of.id}: its results are ${ids.join()}`);
  const stranger = world.secrets.find((one) => one !== of.secret)!;
  const strangerPath = world.chance.one([pathOf(of), ...paths]);
  const { status } = await call(world, stranger, strangerPath, { isAnthropic: isAnthropic(of) });
  if (status !== 404) wrong.push(`${strangerPath}: a stranger gets ${status}`);
  for (const id of [batch.input_file_id, batch.output_file_id, batch.error_file_id])
    if (id != null) await call(world, of.secret, `/v1/files/${id}`, { method: "DELETE" });
  return wrong;
}

const ownId = ({ id }: Pick<Created, "id">): string => id.replace(/^(?:msg)?batch_/, "");

interface Row {
  readonly attempt: string;
  readonly state: string;
  readonly usage: { readonly input?: number; readonly output?: number };
  readonly costNano: string | null;
}

/** Returns the settled rows of all lines and jobs, by their calls. */
async function readRows({ gateway }: World): Promise<ReadonlyMap<string, readonly Row[]>> {
  const rows = new Map<string, Row[]>();
  for (let after: string | undefined; ;) {
    const page = (await gateway.ask("ledger.entries", { limit: 1_000, after })) as unknown as {
      items: Row[];
      next?: string;
    };
    for (const row of page.items)
      if (row.state !== "open") rows.set(row.attempt, [...(rows.get(row.attempt) ?? []), row]);
    after = page.next;
    if (after === undefined) return rows;
  }
}

/** Compares the rows with what the providers bill: for each line, and for each provider. */
async function checkRows(world: World, made: readonly Created[]): Promise<string[]> {
  const wrong: string[] = [];
  const rows = new Map(await readRows(world));
  const sums = new Map<string, { input: number; output: number }>();
  for (const one of made) {
    const job = `batch_${ownId(one)}`;
    for (const [n, { provider, bill }] of one.lines.entries()) {
      const attempt = `${job}.${n + 1}.1`;
      const billed = (rows.get(attempt) ?? []).filter(({ state }) => state !== "void");
      rows.delete(attempt);
      const total = {
        input: billed.reduce((sum, { usage }) => sum + (usage.input ?? 0), 0),
        output: billed.reduce((sum, { usage }) => sum + (usage.output ?? 0), 0),
        costNano: billed.reduce((sum, { costNano }) => sum + BigInt(costNano ?? 0), 0n),
      };
      const { input = 0, output = 0, costNano = 0n } = bill ?? {};
      if (total.input !== input || total.output !== output || total.costNano !== costNano)
        wrong.push(
          `${attempt} (${provider}) is ${Object.values(total).join(" ")}, ` +
            `not ${input} ${output} ${costNano}: ${billed.map(({ state }) => state).join()}`,
        );
      const sum = sums.get(provider) ?? { input: 0, output: 0 };
      sums.set(provider, { input: sum.input + total.input, output: sum.output + total.output });
    }
    if ((rows.get(job) ?? []).some(({ state }) => state !== "void"))
      wrong.push(`${job} has lost lines`);
    rows.delete(job);
  }
  for (const attempt of rows.keys()) wrong.push(`${attempt} belongs to no line`);
  for (const [provider, { input = 0, output = 0 }] of Object.entries(world.providers.billed())) {
    const sum = sums.get(provider) ?? { input: 0, output: 0 };
    if (sum.input !== input || sum.output !== output)
      wrong.push(
        `${provider} bills ${input} ${output}, and its rows are ${sum.input} ${sum.output}`,
      );
  }
  const { problems } = (await world.gateway.ask("ledger.verify")) as { problems: unknown[] };
  if (problems.length > 0) wrong.push(`The ledger does not verify: ${JSON.stringify(problems)}`);
  return wrong;
}

/** Each key lists its own batches, and no others. */
async function checkLists(world: World, made: readonly Created[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const secret of world.secrets)
    for (const isMessages of [false, true]) {
      const path = isMessages ? "/v1/messages/batches" : "/v1/batches";
      const listed: string[] = [];
      for (let after = ""; ;) {
        const cursor = after === "" ? "" : `&${isMessages ? "after_id" : "after"}=${after}`;
        const of = { isAnthropic: isMessages };
        const { text } = await call(world, secret, `${path}?limit=100${cursor}`, of);
        const page = JSON.parse(text) as { data: { id: string }[]; has_more: boolean };
        listed.push(...page.data.map(({ id }) => id));
        if (!page.has_more) break;
        after = page.data.at(-1)!.id;
      }
      const own = made.filter((one) => one.secret === secret && isAnthropic(one) === isMessages);
      const expected = own.map(({ id }) => id).toSorted();
      if (listed.toSorted().join() !== expected.join())
        wrong.push(`${path} lists ${listed.length} batches, not ${expected.length}`);
    }
  return wrong;
}

export const rig: Rig = {
  options: { batches: 10_000, swaps: 200, seed: 1, store: "sqlite" },
  run: ({ batches, swaps, seed, store }, say) =>
    runBatches(
      {
        batches: Number(batches),
        swaps: Number(swaps),
        seed: Number(seed),
        store: STORES.find((one) => one === store) ?? "sqlite",
      },
      say,
    ),
};
