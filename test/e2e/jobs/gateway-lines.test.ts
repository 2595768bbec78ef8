// Batches in front of providers that run no batches, with the SDKs of OpenAI and Anthropic: the gateway
// sends each request itself, at the price of an ordinary one.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { say, scriptedModel, startUpstream, type TestUpstream } from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const [alice, poor] = [mintKey().secret, mintKey().secret];
const yaml = (up: string, runLines = "run_lines: { per_minute: 60000, concurrent: 3 }") => `
frontends:
  - chat-completions
  - messages
  - { use: jobs, with: { ${runLines} } }
middleware:
  - use: auth
    with:
      keys: [{ id: alice, digest: ${digestKey(alice)} },
        { id: poor, digest: ${digestKey(poor)}, limits: [usd=0.01/day] }]
  - limits
scopes:
  run: { from: ["header:x-run"], models: ["plain/scoped"], limits: [requests=9/day], missing: refuse }
providers:
  plain:
    use: openai-compatible
    with: { base_url: "${up}/v1", api_key: k }
    models:
      small: { price: { input: 2, output: 8, tiers: { batch: { input: 1, output: 4 } } } }
      scoped: { price: { input: 2, output: 8 } }
`;

let up: TestUpstream;
let gateway: InProcessGateway;
beforeAll(async () => {
  up = await startUpstream();
  gateway = await startInProcess({ yaml: yaml(up.url) });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await up?.close();
});
beforeEach(() => {
  up.reset();
  up.setRoutes(scriptedModel(say("done")));
});

const openai = (apiKey = alice, defaultHeaders: Record<string, string> = {}) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0, defaultHeaders });

const messagesOf = (id: string) => [{ role: "user" as const, content: `hello ${id}` }];

async function create(client: OpenAI, ids: readonly string[], more = {}) {
  const lines = ids.map((custom_id) => {
    const body = { model: "plain/small", max_tokens: 100, messages: messagesOf(custom_id) };
    const url = "/v1/chat/completions";
    return JSON.stringify({ custom_id, method: "POST", url, body: { ...body, ...more } });
  });
  const file = await client.files.create({
    file: await toFile(Buffer.from(lines.join("\n")), "in.jsonl"),
    purpose: "batch",
  });
  return client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
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

async function linesOf(client: OpenAI, id: string | null | undefined) {
  const text = id == null ? "" : await (await client.files.content(id)).text();
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as Record<string, any>);
}

interface Row {
  readonly attempt: string;
  readonly kind: string;
  readonly state: string;
  readonly outcome: string;
  readonly costNano: string;
  readonly usage: { readonly input?: number; readonly output?: number };
}
/** Requests for lines. The gateway also lists the provider's models. */
const sentLines = () => up.requests.filter(({ method }) => method === "POST");

/** Settled rows of the lines of a batch. */
async function rowsOf(batch: string): Promise<readonly Row[]> {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    readonly items: readonly Row[];
  };
  const name = `batch_${batch.replace(/^\w+?_/, "")}.`;
  return items.filter(({ attempt, kind }) => attempt.startsWith(name) && kind === "settle");
}

it("each line is sent once, billed at the ordinary price, and returned", async () => {
  const client = openai();
  const ids = Array.from({ length: 8 }, (_, n) => `id-${n}`);
  const created = await create(client, ids);
  expect(created).toMatchObject({
    request_counts: { total: 8 },
    tollgate: { requests_run_by_gateway: 8, price_of_these_requests: "standard" },
  });
  const batch = await ended(client, created);
  expect(await linesOf(client, batch.error_file_id)).toEqual([]);
  expect(batch).toMatchObject({
    status: "completed",
    request_counts: { total: 8, completed: 8, failed: 0 },
    error_file_id: null,
  });
  const output = await linesOf(client, batch.output_file_id);
  expect(output.map(({ custom_id }) => String(custom_id)).toSorted()).toEqual(ids);
  for (const { response } of output) {
    expect(response.status_code).toBe(200);
    expect(response.body.choices[0].message.content).toBe("done");
  }
  const sent = sentLines().map((one) => one.json() as { messages: { content: string }[] });
  expect(sent.map(({ messages }) => messages[0]!.content).toSorted()).toEqual(
    ids.map((id) => `hello ${id}`),
  );
  const rows = await rowsOf(batch.id);
  expect(rows.map(({ state }) => state)).toEqual(ids.map(() => "exact"));
  const sum = (of: (row: Row) => number) => rows.reduce((all, row) => all + of(row), 0);
  const [input, out] = [sum(({ usage }) => usage.input!), sum(({ usage }) => usage.output!)];
  expect(batch.usage).toMatchObject({ input_tokens: input, output_tokens: out });
  expect(input).toBeGreaterThan(0);
  expect(sum(({ costNano }) => Number(costNano))).toBe(input * 2_000 + out * 8_000);
  // The input and the output remain. The lines and the logs are deleted.
  await until(async () => (await readdir(join(gateway.stateDir, "frontends.jobs"))).length === 2);
});

it("Anthropic's batches run in front of the same provider", async () => {
  const { batches } = new Anthropic({ apiKey: alice, baseURL: gateway.url, maxRetries: 0 })
    .messages;
  const params = { model: "plain/small", max_tokens: 100 };
  const { id } = await batches.create({
    requests: ["a", "b"].map((custom_id) => ({
      custom_id,
      params: { ...params, messages: messagesOf(custom_id) },
    })),
  });
  let batch = await batches.retrieve(id);
  await until(async () => {
    batch = await batches.retrieve(id);
    return batch.processing_status === "ended";
  });
  expect(batch).toMatchObject({
    request_counts: { succeeded: 2, errored: 0 },
    tollgate: { requests_run_by_gateway: 2, price_of_these_requests: "standard" },
  });
  const texts: string[] = [];
  for await (const { custom_id, result } of await batches.results(id))
    if (result.type === "succeeded" && result.message.content[0]!.type === "text")
      texts.push(`${custom_id} ${result.message.content[0]!.text}`);
  expect(texts.toSorted()).toEqual(["a done", "b done"]);
  expect(await rowsOf(id)).toHaveLength(2);
});

it("an error of the provider is the result of its line, and a rate limit is waited for", async () => {
  let count = 0;
  up.setRoutes({
    "POST /v1/chat/completions": (request) => {
      const { messages } = request.json() as { messages: { content: string }[] };
      const error = { message: "No.", type: "invalid_request_error" };
      if (messages[0]!.content === "hello bad")
        return { status: 400, body: JSON.stringify({ error }) };
      if (++count === 1)
        return {
          status: 429,
          headers: { "retry-after": "1" },
          body: JSON.stringify({ error: { message: "Slow down.", type: "rate_limit_error" } }),
        };
      return say("done").toResponse(request);
    },
  });
  const client = openai();
  const batch = await ended(client, await create(client, ["bad", "good"]));
  expect(batch.request_counts).toEqual({ total: 2, completed: 1, failed: 1 });
  const [error] = await linesOf(client, batch.error_file_id);
  expect(error).toMatchObject({ custom_id: "bad", response: { status_code: 400 } });
  const rows = (await rowsOf(batch.id)).filter(({ state }) => state !== "void");
  expect(rows.map(({ outcome }) => outcome)).toEqual(["ok"]);
});

it("a line is sent with the headers of the request that created the batch", async () => {
  const client = openai(alice, { "x-run": "nightly" });
  const batch = await ended(client, await create(client, ["a"], { model: "plain/scoped" }));
  expect(await linesOf(client, batch.error_file_id)).toEqual([]);
  expect(batch.request_counts).toEqual({ total: 1, completed: 1, failed: 0 });
});

it("the budget of the key applies to the sum of the lines, at the ordinary price", async () => {
  const client = openai(poor);
  const ids = Array.from({ length: 20 }, (_, n) => `${n}`);
  // Half of the price would fit.
  await expect(create(client, ids)).rejects.toMatchObject({ code: "insufficient_quota" });
  const batch = await ended(client, await create(client, ids.slice(0, 5)));
  expect(batch.status).toBe("completed");
  expect(sentLines()).toHaveLength(5);
});

it("a canceled batch sends no more lines", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  up.setRoutes({
    "POST /v1/chat/completions": async (request) => {
      await promise;
      return say("done").toResponse(request);
    },
  });
  const client = openai();
  const created = await create(
    client,
    Array.from({ length: 9 }, (_, n) => `${n}`),
  );
  await until(() => sentLines().length === 3);
  await client.batches.cancel(created.id);
  resolve();
  const batch = await ended(client, created);
  expect(batch).toMatchObject({ status: "cancelled", request_counts: { completed: 3 } });
  expect(sentLines()).toHaveLength(3);
});

it("without run_lines, the lines are rejected", async () => {
  await using other = await startInProcess({ yaml: yaml(up.url, "") });
  const client = new OpenAI({ apiKey: alice, baseURL: `${other.url}/v1`, maxRetries: 0 });
  const batch = await ended(client, await create(client, ["a"]));
  const [error] = await linesOf(client, batch.error_file_id);
  expect(error!["response"].body.error.code).toBe("batches_not_supported");
  expect(sentLines()).toHaveLength(0);
});
