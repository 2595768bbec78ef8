// One batch of a client runs at several providers, each with its own batch API: lines are encoded in
// the provider's protocol, results are returned in the client's, and each line is billed at the
// provider's batch price.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI, { toFile } from "openai";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  createBatchApi,
  messageBatchFormat,
  openAiBatchFormat,
  startUpstream,
  type BatchApi,
  type BatchFormat,
  type TestUpstream,
} from "tollgate/testing";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";
import { vertexFormat } from "../../clouds/batch-formats.ts";
import { azureFormat, geminiFormat, mistralFormat } from "../../plugins/batches/formats.ts";

const key = mintKey().secret;
interface Provider {
  readonly format: BatchFormat;
  /** Path of the fake API. */
  readonly base: string;
  readonly model: string;
  /** Cost of a line with 10 input and 5 output tokens. */
  readonly nano: bigint;
  /** Returns the entry in gateway.yaml. */
  entry(url: string): string;
}

const packaged = (name: string) =>
  fileURLToPath(new URL(`../../../plugins/providers/${name}/index.ts`, import.meta.url));
const built = (use: string, path: string) => (url: string) =>
  `{ use: ${use}, with: { base_url: "${url}${path}", api_key: k } }`;
const priced = (model: string) =>
  `models: { "${model}": { price: { input: 2, output: 12, ` +
  `tiers: { batch: { input: 1, output: 6 } } } } }`;

const PROVIDERS: Readonly<Record<string, Provider>> = {
  openai: {
    format: openAiBatchFormat,
    base: "/v1",
    model: "gpt-4.1",
    nano: 30_000n,
    entry: built("openai", "/v1"),
  },
  groq: {
    format: openAiBatchFormat,
    base: "/openai/v1",
    model: "llama-3.3-70b-versatile",
    nano: 4_925n,
    entry: built("groq", "/openai/v1"),
  },
  mistral: {
    format: mistralFormat,
    base: "/v1",
    model: "devstral-latest",
    nano: 7_000n,
    entry: built("mistral", "/v1"),
  },
  anthropic: {
    format: messageBatchFormat,
    base: "/v1",
    model: "claude-opus-5",
    nano: 87_500n,
    entry: built("anthropic", ""),
  },
  google: {
    format: geminiFormat,
    base: "/v1beta",
    model: "gemini-3.1-pro-preview",
    nano: 40_000n,
    entry: built("google", ""),
  },
  azure: {
    format: azureFormat,
    base: "/openai/v1",
    model: "my-batch",
    nano: 40_000n,
    entry: (url) =>
      `{ use: ${packaged("azure-foundry")}, with: { base_url: "${url}", api_key: k, ` +
      `batch_deployments: ["*-batch"] }, ${priced("my-batch")} }`,
  },
  vertex: {
    format: vertexFormat,
    base: "/v1/projects/my-project/locations/global",
    model: "gemini-3-flash",
    nano: 40_000n,
    entry: (url) =>
      `{ use: ${packaged("vertex")}, with: { project: my-project, base_url: "${url}", ` +
      `storage_url: "${url}", batch_uri: "gs://bucket/tollgate", access_token: k }, ` +
      `${priced("gemini-3-flash")} }`,
  },
};

const GEMINI_ANSWER = {
  candidates: [{ content: { role: "model", parts: [{ text: "Hello" }] }, finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
};

const apis = new Map<string, BatchApi>();
const upstreams: TestUpstream[] = [];
let gateway: InProcessGateway;
beforeAll(async () => {
  const lines: string[] = [];
  for (const [name, { format, base, entry }] of Object.entries(PROVIDERS)) {
    const api = createBatchApi({
      format,
      base,
      order: "shuffled",
      repeatEvery: 2,
      ...((name === "google" || name === "vertex") && {
        answer: () => ({ body: GEMINI_ANSWER, usage: { input: 10, output: 5 } }),
      }),
    });
    const up = await startUpstream(api.routes);
    apis.set(name, api);
    upstreams.push(up);
    lines.push(`  ${name}: ${entry(up.url)}`);
  }
  gateway = await startInProcess({
    yaml: [
      "frontends: [chat-completions, messages, jobs]",
      "providers:",
      ...lines,
      "middleware:",
      `  - { use: auth, with: { keys: [{ id: alice, digest: ${digestKey(key)} }] } }`,
    ].join("\n"),
  });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  for (const up of upstreams) await up.close();
});

const NAMES = Object.keys(PROVIDERS);
const modelOf = (name: string) => `${name}/${PROVIDERS[name]!.model}`;
const messages = [{ role: "user" as const, content: "Grüße" }];

/** Cost of the settled lines of a batch, by provider. */
async function costs(batch: string): Promise<Record<string, bigint>> {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
    items: { attempt: string; state: string; costNano: string; target: { provider: string } }[];
  };
  const lines = items.filter(
    ({ attempt, state }) => attempt.startsWith(batch) && state !== "open" && state !== "void",
  );
  expect(new Set(lines.map(({ state }) => state))).toEqual(new Set(["exact"]));
  const sums: Record<string, bigint> = {};
  for (const { target, costNano } of lines)
    sums[target.provider] = (sums[target.provider] ?? 0n) + BigInt(costNano);
  return sums;
}

const EXPECTED = Object.fromEntries(NAMES.map((name) => [name, 2n * PROVIDERS[name]!.nano]));

it("OpenAI's client, in front of each provider", async () => {
  const client = new OpenAI({ apiKey: key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
  const text = NAMES.flatMap((name) => [`${name} 1`, `${name} 2`])
    .map((custom_id) => ({
      custom_id,
      method: "POST",
      url: "/v1/chat/completions",
      body: { model: modelOf(custom_id.split(" ")[0]!), max_tokens: 50, messages },
    }))
    .map((line) => JSON.stringify(line))
    .join("\n");
  const file = await client.files.create({
    file: await toFile(Buffer.from(text), "in.jsonl"),
    purpose: "batch",
  });
  const { id } = await client.batches.create({
    input_file_id: file.id,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
  });
  await until(async () => (await client.batches.retrieve(id)).status === "completed");
  const batch = await client.batches.retrieve(id);
  const output = (await (await client.files.content(batch.output_file_id!)).text())
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const texts = output.map(({ custom_id, response }) => [
    custom_id,
    response.body.choices[0].message.content,
  ]);
  expect(Object.fromEntries(texts)).toEqual(
    Object.fromEntries(
      NAMES.flatMap((name) => [`${name} 1`, `${name} 2`]).map((n) => [n, "Hello"]),
    ),
  );
  expect(texts).toHaveLength(2 * NAMES.length);
  expect(batch.usage).toMatchObject({
    input_tokens: 20 * NAMES.length,
    output_tokens: 10 * NAMES.length,
  });
  expect(await costs(id)).toEqual(EXPECTED);
  for (const api of apis.values()) expect(api.usage).toEqual({ input: 20, output: 10 });
});

it("Anthropic's client, in front of each provider", async () => {
  const client = new Anthropic({ apiKey: key, baseURL: gateway.url, maxRetries: 0 }).messages
    .batches;
  const { id } = await client.create({
    requests: NAMES.flatMap((name) =>
      [1, 2].map((n) => ({
        custom_id: `${name}-${n}`,
        params: { model: modelOf(name), max_tokens: 50, messages },
      })),
    ),
  });
  await until(async () => (await client.retrieve(id)).processing_status === "ended");
  const texts: Record<string, unknown> = {};
  for await (const { custom_id, result } of await client.results(id))
    texts[custom_id] =
      result.type === "succeeded"
        ? (result.message.content[0] as { text: string }).text
        : JSON.stringify(result);
  expect(texts).toEqual(
    Object.fromEntries(
      NAMES.flatMap((name) => [`${name}-1`, `${name}-2`]).map((n) => [n, "Hello"]),
    ),
  );
});
