// Operators list, show, and cancel the jobs of all clients, with their cost so far.
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import OpenAI, { toFile } from "openai";
import type { JobDetails, ShownJobs } from "../../../src/admin/commands/job-commands.ts";
import { formatJob, formatJobs } from "../../../src/cli/commands/run/jobs.ts";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { sumSamples } from "../../kit/exposition.ts";
import { fakeBatches, resetFakeBatches } from "../../kit/batch-provider.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const [alice, bob] = [mintKey().secret, mintKey().secret];
const key = (id: string, secret: string, account: string) =>
  `{ id: ${id}, digest: ${digestKey(secret)}, account: ${account} }`;
const provider = fileURLToPath(new URL("../../kit/batch-provider.ts", import.meta.url));
const webhookSecret = `whsec_${Buffer.alloc(24, 3).toString("base64")}`;
const yamlOf = (webhookUrl: string) => `
frontends:
  - chat-completions
  - { use: jobs, with: { webhooks: [{ url: "${webhookUrl}", secret: "${webhookSecret}", accounts: [research], events: ["batch.*"] }] } }
observers: [metrics]
admin: { port: 0 }
accounts: { acme: {}, research: { parent: acme }, other: {} }
providers: { fake: { use: ${provider}, with: { api_key: secret } } }
middleware:
  - { use: auth, with: { keys: [${key("alice", alice, "research")}, ${key("bob", bob, "other")}] } }
`;
let gateway: InProcessGateway;
/** Requests that the receiver of webhooks got. */
const webhooks: { readonly body: string; readonly headers: IncomingHttpHeaders }[] = [];
const receiver = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => void parts.push(part));
  req.on("end", () => {
    webhooks.push({ body: Buffer.concat(parts).toString(), headers: req.headers });
    res.writeHead(204).end();
  });
});
beforeAll(async () => {
  await new Promise<void>((resolve) => void receiver.listen(0, "127.0.0.1", resolve));
  const { port } = receiver.address() as AddressInfo;
  gateway = await startInProcess({ yaml: yamlOf(`http://127.0.0.1:${port}/hook`) });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  receiver.close();
});
beforeEach(() => void resetFakeBatches());

async function create(apiKey: string, model = "fake/small", lines = 1): Promise<string> {
  const client = new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const text = Array.from({ length: lines }, (_, n) =>
    JSON.stringify({
      custom_id: String(n),
      method: "POST",
      url: "/v1/chat/completions",
      body: { model, max_tokens: 10, messages: [{ role: "user", content: "hello" }] },
    }),
  ).join("\n");
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  const batch = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  return batch.id;
}

const list = async (input: object = {}) =>
  (await gateway.ask("jobs.list", input as never)) as unknown as ShownJobs;
const show = async (id: string, input: object = {}) =>
  ((await gateway.ask("jobs.show", { id, ...input })) as unknown as JobDetails).job;
const statusIs = (id: string, status: string) =>
  until(async () => (await show(id)).status === status);

it("a job is shown from its start to its end, with its cost", async () => {
  const id = await create(alice, "fake/endless", 3);
  await statusIs(id, "running");
  expect(await show(id)).toMatchObject({
    id,
    kind: "batch",
    key: "alice",
    account: "acme/research",
    model: "fake/endless",
    providers: ["fake"],
    progress: { total: 3, done: 0, failed: 0 },
    canCancel: true,
  });
  const { items } = await list({ status: "open" });
  expect(items.map((one) => one.id)).toEqual([id]);

  const ended = await create(alice, "fake/small", 2);
  await statusIs(ended, "completed");
  const job = await show(ended);
  const { items: rows } = (await gateway.ask("ledger.entries", {})) as never as {
    items: { kind: string; request: string; costNano: string }[];
  };
  const cost = rows
    .filter((row) => row.kind === "settle" && row.request.startsWith(`${ended}.`))
    .reduce((sum, row) => sum + BigInt(row.costNano), 0n);
  expect(cost).toBeGreaterThan(0n);
  expect(BigInt(Math.round(Number(job.costUsd) * 1e9))).toBe(cost);
  expect(job).toMatchObject({ progress: { total: 2, done: 2, failed: 0 }, canCancel: false });
  expect(job.endedAt).toBeGreaterThanOrEqual(job.createdAt);
  expect(job.request).toBeTruthy();
  expect(formatJob(job)).toContain("2/2");
  expect(formatJobs(await list())).toContain(ended);

  await gateway.ask("jobs.cancel", { id });
  await statusIs(id, "canceled");
  await expect(gateway.ask("jobs.cancel", { id })).rejects.toMatchObject({
    message: expect.stringContaining("has ended: canceled"),
  });
});

it("jobs are filtered by key, account with nested accounts, kind, and status", async () => {
  fakeBatches().pollsToEnd = 1;
  const own = await create(alice);
  const foreign = await create(bob);
  await statusIs(own, "completed");
  await statusIs(foreign, "completed");
  const idsOf = async (input: object) => (await list(input)).items.map((one) => one.id);
  expect(await idsOf({ account: "acme" })).toContain(own);
  expect(await idsOf({ account: "acme" })).not.toContain(foreign);
  expect(await idsOf({ key: "bob", kind: "batch" })).toEqual([foreign]);
  expect(await idsOf({ key: "bob", status: "open" })).toEqual([]);
  expect(await list({ limit: 1 })).toMatchObject({ items: [{ id: foreign }], isTruncated: true });
  // A job of another account is treated as nonexistent, like one that does not exist.
  for (const id of [own, "batch_none"])
    await expect(show(id, { account: "other" })).rejects.toMatchObject({
      message: `Job "${id}" not found.`,
    });
  await expect(list({ kind: "file" })).rejects.toMatchObject({
    message: expect.stringContaining("Kinds: batch"),
  });
});

it("metrics count open and ended jobs by kind", async () => {
  const { adminUrl } = (await gateway.ask("status")) as { adminUrl: string };
  const { secret } = (await gateway.ask("admins.create", {
    name: "scraper",
    role: "metrics",
  })) as { secret: string };
  const scrape = async () => {
    const headers = { authorization: `Bearer ${secret}` };
    return (await fetch(`${adminUrl}/metrics`, { headers })).text();
  };
  await until(async () => sumSamples(await scrape(), "tollgate_jobs_ended_total", "batch") > 0);
  const text = await scrape();
  expect(sumSamples(text, "tollgate_jobs_ended_total", 'status="completed"')).toBeGreaterThan(1);
  expect(text).toContain('tollgate_jobs_open{kind="batch"} 0');
});

it("the ends of an account's batches arrive as signed webhooks, once each", async () => {
  const [foreign, own] = [await create(bob), await create(alice)];
  await statusIs(foreign, "completed");
  await statusIs(own, "completed");
  const canceled = await create(alice, "fake/endless");
  await statusIs(canceled, "running");
  await gateway.ask("jobs.cancel", { id: canceled });
  const bodiesOf = (id: string) => webhooks.filter(({ body }) => body.includes(id));
  await until(() => bodiesOf(own).length > 0 && bodiesOf(canceled).length > 0);
  expect(bodiesOf(foreign)).toEqual([]);
  const client = new OpenAI({ apiKey: "k" });
  for (const [id, type] of [
    [own, "batch.completed"],
    [canceled, "batch.cancelled"],
  ] as const) {
    const [{ body, headers } = { body: "", headers: {} }, ...more] = bodiesOf(id);
    expect(more).toEqual([]);
    const sent = headers as Record<string, string>;
    const event = await client.webhooks.unwrap(body, sent, webhookSecret);
    expect(event).toMatchObject({ object: "event", type, data: { id } });
  }
});
