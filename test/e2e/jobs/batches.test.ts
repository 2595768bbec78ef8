// Batches with OpenAI's SDK: from the file with the requests to the file with the responses.
import OpenAI, { toFile } from "openai";
import { fileURLToPath } from "node:url";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import {
  answerLine,
  fakeBatches,
  resetFakeBatches,
  usageOf,
  type FakeBatch,
} from "../../kit/batch-provider.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const [alice, bob, poor] = [mintKey().secret, mintKey().secret, mintKey().secret];
const key = (id: string, secret: string, more = "") =>
  `{ id: ${id}, digest: ${digestKey(secret)}${more} }`;
const provider = fileURLToPath(new URL("../../kit/batch-provider.ts", import.meta.url));
const YAML = `
frontends: [chat-completions, messages, responses, embeddings, jobs]
providers: { fake: { use: ${provider}, with: { api_key: secret } } }
middleware:
  - use: auth
    with:
      keys: [${key("alice", alice)}, ${key("bob", bob)}, ${key("poor", poor, ", limits: [usd=0.5/day]")}]
`;
let gateway: InProcessGateway;
beforeAll(async () => {
  gateway = await startInProcess({ yaml: YAML });
});
afterAll(() => gateway?.[Symbol.asyncDispose]());
beforeEach(() => void resetFakeBatches());

const openai = (apiKey: string) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

const lineOf = (id: string, more: Record<string, unknown> = {}, model = "fake/small") => ({
  custom_id: id,
  method: "POST",
  url: "/v1/chat/completions",
  body: { model, max_tokens: 100, messages: [{ role: "user", content: `hello ${id}` }], ...more },
});

type Line = ReturnType<typeof lineOf> | string;
async function create(client: OpenAI, lines: readonly Line[]) {
  const text = lines.map((one) => (typeof one === "string" ? one : JSON.stringify(one))).join("\n");
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  return client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { run: "1" },
  });
}

const ENDED = ["completed", "failed", "expired", "cancelled"];
async function ended(client: OpenAI, { id }: { id: string }) {
  let batch = await client.batches.retrieve(id);
  await until(async () => {
    batch = await client.batches.retrieve(id);
    return ENDED.includes(batch.status);
  });
  return batch;
}

interface OutputLine {
  custom_id: string;
  response: { status_code: number; body: Record<string, any> } | null;
  error: { code: string; message: string } | null;
}
async function linesOf(client: OpenAI, id: string | null | undefined): Promise<OutputLine[]> {
  if (id == null) return [];
  const text = await (await client.files.content(id)).text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as OutputLine);
}

interface Entry {
  attempt: string;
  state: string;
  usage: { input?: number; output?: number };
  costNano: string;
  job?: string;
}
const rowsOf = async (batch: string): Promise<Entry[]> => {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    items: Entry[];
  };
  return items.filter(({ attempt, state }) => attempt.startsWith(batch) && state !== "open");
};

it("a batch is created, run, billed at half price, and read", async () => {
  const client = openai(alice);
  const lines = ["a", "b", "c"].map((id) => lineOf(id));
  const created = await create(client, lines);
  expect(created).toMatchObject({
    object: "batch",
    endpoint: "/v1/chat/completions",
    model: "fake/small",
    completion_window: "24h",
    errors: null,
    metadata: { run: "1" },
    request_counts: { total: 3 },
  });
  const batch = await ended(client, created);
  expect(batch).toMatchObject({
    status: "completed",
    request_counts: { total: 3, completed: 3, failed: 0 },
    error_file_id: null,
  });
  const output = await linesOf(client, batch.output_file_id);
  expect(output.map(({ custom_id }) => custom_id).toSorted()).toEqual(["a", "b", "c"]);
  for (const { custom_id, response } of output) {
    expect(response!.status_code).toBe(200);
    expect(response!.body["choices"][0].message.content).toBe(`echo "hello ${custom_id}"`);
  }
  const [sent] = [...fakeBatches().batches.values()] as [FakeBatch];
  expect(sent.lines.map(({ id }) => id)).toEqual(["00000001", "00000002", "00000003"]);
  await until(() => sent.isDiscarded);
  const usages = sent.lines.map(({ body }) => usageOf(body));
  const input = usages.reduce((sum, one) => sum + one.prompt_tokens, 0);
  const outputTokens = usages.reduce((sum, one) => sum + one.completion_tokens, 0);
  expect(batch.usage).toMatchObject({ input_tokens: input, output_tokens: outputTokens });
  const rows = (await rowsOf(batch.id)).filter(({ state }) => state !== "void");
  expect(rows).toHaveLength(3);
  expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(["exact"]));
  const cost = rows.reduce((sum, { costNano }) => sum + BigInt(costNano), 0n);
  expect(cost).toBe(BigInt(input * 1_000 + outputTokens * 4_000));
  // The input and the output remain. The encoded lines are deleted.
  await until(async () => (await readdir(join(gateway.stateDir, "frontends.jobs"))).length === 2);
});

it("an invalid line has its own error, and the other lines run", async () => {
  const client = openai(alice);
  const batch = await ended(
    client,
    await create(client, [
      lineOf("ok"),
      lineOf("no model", { model: "nowhere/model" }),
      lineOf("bad body", { messages: "none" }),
      lineOf("no batches", {}, "fake/no-batches"),
      { ...lineOf("other url"), url: "/v1/embeddings" },
      lineOf("streamed", { stream: true }),
    ]),
  );
  expect(batch).toMatchObject({
    status: "completed",
    request_counts: { total: 6, completed: 1, failed: 5 },
  });
  const errors = await linesOf(client, batch.error_file_id);
  const byId = Object.fromEntries(
    errors.map(({ custom_id, response }) => [
      custom_id,
      [response!.status_code, response!.body["error"].param ?? response!.body["error"].code],
    ]),
  );
  expect(byId).toMatchObject({
    "no model": [404, expect.anything()],
    "bad body": [400, "messages"],
    "no batches": [400, "model"],
    "other url": [400, "url"],
    streamed: [400, "stream"],
  });
  const output = await linesOf(client, batch.output_file_id);
  expect(output.map(({ custom_id }) => custom_id)).toEqual(["ok"]);
});

it("an invalid file is rejected with the line and the column, and nothing is sent", async () => {
  const client = openai(alice);
  const batch = await create(client, [lineOf("a"), '{"custom_id": oops}', lineOf("a"), '{"a":1}']);
  expect(batch.status).toBe("failed");
  expect(batch.errors!.data).toMatchObject([
    { code: "invalid_json_line", line: 2, message: expect.stringContaining("column 15") },
    { code: "duplicate_custom_id", line: 3, param: "custom_id" },
    { code: "missing_required_parameter", line: 4, param: "custom_id" },
  ]);
  expect(fakeBatches().batches.size).toBe(0);
  expect(await rowsOf(batch.id)).toEqual([]);
});

it("blank lines are skipped and counted, and an error quotes a bounded part of the request", async () => {
  const client = openai(alice);
  const name = "x".repeat(100_000);
  const lines = [
    " ".repeat(40),
    lineOf("a"),
    "\t\r",
    lineOf("b", { model: `nowhere/${name}` }),
    "",
  ];
  const batch = await ended(client, await create(client, lines));
  expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 });
  const [error] = await linesOf(client, batch.error_file_id);
  expect(error!.response!.body["error"].message.length).toBeLessThanOrEqual(2_000);
  const invalid = await create(client, ["", lineOf("a"), "", "{"]);
  expect(invalid.errors!.data).toMatchObject([{ code: "invalid_json_line", line: 4 }]);
  const first = await create(client, [lineOf("a", { model: name })]);
  expect((first as unknown as { model: string }).model).toHaveLength(256);
});

it("a price that changes while a batch runs does not change the bill", async () => {
  const client = openai(alice);
  fakeBatches().pollsToEnd = Infinity;
  const created = await create(client, [lineOf("a"), lineOf("b", {}, "fake/large")]);
  await until(() => fakeBatches().batches.size === 2);
  const reloads = () => gateway.log.filter(({ msg }) => msg === "reloaded").length;
  const before = reloads();
  await gateway.write(
    YAML.replace(
      "with: { api_key: secret }",
      "with: { api_key: secret }, models: { small: { price: { input: 900, output: 900 } } }",
    ),
  );
  await until(() => reloads() > before);
  fakeBatches().pollsToEnd = 1;
  const batch = await ended(client, created);
  expect(batch.request_counts).toMatchObject({ completed: 2 });
  const rows = (await rowsOf(batch.id)).filter(({ state }) => state !== "void");
  const sent = [...fakeBatches().batches.values()];
  const expected = sent.flatMap(({ model, lines }) =>
    lines.map(({ body }) => {
      const { prompt_tokens, completion_tokens } = usageOf(body);
      return (prompt_tokens * 1_000 + completion_tokens * 4_000) * (model === "large" ? 2 : 1);
    }),
  );
  expect(rows.map(({ costNano }) => Number(costNano)).toSorted()).toEqual(expected.toSorted());
  expect(rows.map(({ state }) => state)).toEqual(["exact", "exact"]);
  // The following tests need the original prices.
  await gateway.write(YAML);
  await until(() => reloads() > before + 1);
});

it("budgets reserve the sum of the lines, and lines without a price are listed", async () => {
  const client = openai(poor);
  const some = (count: number) =>
    Array.from({ length: count }, (_, n) => lineOf(`${n}`, { max_tokens: 2_000 }));
  await expect(create(client, some(130))).rejects.toMatchObject({
    status: 429,
    code: "insufficient_quota",
  });
  const unpriced = create(client, [lineOf("a"), lineOf("b", {}, "fake/unpriced")]);
  await expect(unpriced).rejects.toMatchObject({
    status: 429,
    code: "unpriced_model",
    message: expect.stringContaining("lines 2"),
  });
  expect(fakeBatches().batches.size).toBe(0);
  fakeBatches().pollsToEnd = 100;
  const running = await create(client, some(100));
  await expect(create(client, some(100))).rejects.toMatchObject({ code: "insufficient_quota" });
  await client.batches.cancel(running.id);
  expect(await ended(client, running)).toMatchObject({ status: "cancelled" });
  fakeBatches().pollsToEnd = 1;
  expect(await ended(client, await create(client, some(100)))).toMatchObject({
    status: "completed",
  });
});

it("results that are repeated, out of order, or late are billed once", async () => {
  const client = openai(alice);
  const api = fakeBatches();
  let reads = 0;
  api.results = ({ lines }) => {
    const all = lines.map(answerLine).toReversed();
    return reads++ === 0 ? all.slice(0, 2) : [...all, ...all];
  };
  const batch = await ended(
    client,
    await create(
      client,
      ["a", "b", "c"].map((id) => lineOf(id)),
    ),
  );
  expect(batch.request_counts).toEqual({ total: 3, completed: 3, failed: 0 });
  expect(await linesOf(client, batch.output_file_id)).toHaveLength(3);
  const rows = (await rowsOf(batch.id)).filter(({ state }) => state !== "void");
  expect(rows).toHaveLength(3);
});

it("a submission whose response is lost is found again, and not repeated", async () => {
  const client = openai(alice);
  const api = fakeBatches();
  let isLost = false;
  api.afterSubmit = () => {
    if (isLost) return;
    isLost = true;
    throw new Error("lost");
  };
  const batch = await ended(client, await create(client, [lineOf("a")]));
  expect(batch.status).toBe("completed");
  expect(api.batches.size).toBe(1);
});

it("a rejected submission fails the batch, and costs nothing", async () => {
  const client = openai(alice);
  const { fail } = await import("tollgate/plugin");
  fakeBatches().before = (method) => {
    if (method === "submit") fail("invalid", "The model does not exist.");
  };
  const batch = await ended(client, await create(client, [lineOf("a"), lineOf("b")]));
  expect(batch).toMatchObject({ status: "failed", request_counts: { total: 2, failed: 2 } });
  const errors = await linesOf(client, batch.error_file_id);
  expect(errors[0]!.error).toMatchObject({ message: "The model does not exist." });
  const rows = await rowsOf(batch.id);
  expect(rows.every(({ costNano }) => costNano === "0")).toBe(true);
});

it("an expired batch has the results of the lines that ran", async () => {
  const client = openai(alice);
  const api = fakeBatches();
  api.outcome = "expired";
  api.results = ({ lines }) => [answerLine(lines[0]!)];
  const batch = await ended(client, await create(client, [lineOf("a"), lineOf("b")]));
  expect(batch).toMatchObject({ status: "expired", request_counts: { completed: 1, failed: 1 } });
  const errors = await linesOf(client, batch.error_file_id);
  expect(errors).toMatchObject([{ custom_id: "b", error: { code: "batch_expired" } }]);
});

it("a batch belongs to its owner, and nobody else learns of it", async () => {
  const created = await create(openai(alice), [lineOf("a")]);
  const other = openai(bob);
  expect((await other.batches.list()).data).toEqual([]);
  const ids = [created.id, `batch_${"A".repeat(32)}`];
  const answers = await Promise.all(
    ids.flatMap((id) =>
      [other.batches.retrieve(id), other.batches.cancel(id)].map((pending) =>
        pending.then(
          () => "found",
          (error: { status: number; message: string }) =>
            `${error.status} ${error.message.replace(id, "ID")}`,
        ),
      ),
    ),
  );
  expect(new Set(answers)).toEqual(new Set([`404 404 No such batch: ID`]));
  const batch = await ended(openai(alice), created);
  await expect(other.files.content(batch.output_file_id!)).rejects.toMatchObject({ status: 404 });
});

it("batches are listed in pages, the newest first", async () => {
  const client = openai(bob);
  const made: string[] = [];
  for (let n = 0; n < 3; n++) made.push((await create(client, [lineOf(`${n}`)])).id);
  const found: string[] = [];
  for await (const { id } of client.batches.list({ limit: 2 })) found.push(id);
  expect(found).toEqual(made.toReversed());
});
