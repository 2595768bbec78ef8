// Providers of the rig of batches, with what they bill. A line's usage follows from its text, so it
// is the same in each format, however often the line is sent. Each vendor's batch API fails as real
// ones do: requests and responses are lost, responses end early, and results are repeated and out of order.
import { fileURLToPath } from "node:url";
import { fail, type BatchResult, type Usage } from "tollgate/plugin";
import {
  createBatchApi,
  messageBatchFormat,
  openAiBatchFormat,
  protocolAtPath,
  say,
  startUpstream,
  type BatchApi,
  type BatchFormat,
  type LineAnswer,
  type ScriptedResponse,
  type SubmittedLine,
  type TestUpstream,
} from "tollgate/testing";
import { vertexFormat } from "../../clouds/batch-formats.ts";
import { fakeBatches, resetFakeBatches, type FakeBatch } from "../../kit/batch-provider.ts";
import { azureFormat, geminiFormat, mistralFormat } from "../../plugins/batches/formats.ts";
import type { Chance } from "../rig.ts";

/** Nano-dollars per token at half of the list price. */
const RATES = { input: 1_000n, output: 4_000n };
const PRICE = "{ input: 2, output: 8, tiers: { batch: { input: 1, output: 4 } } }";
/** Requests of which one fails, if requests fail. */
const FAILURE_SHARE = 25;

/** What a provider bills for a line. Undefined if it answers with an error, and bills nothing. */
export interface ExpectedBill {
  readonly input: number;
  readonly output: number;
  readonly costNano: bigint;
}

/** Returns the text of a line whose usage is known. */
export const textOf = (size: number): string => "x".repeat(size);

export function billOf(size: number): ExpectedBill | undefined {
  if (size % 6 === 0) return undefined;
  const [input, output] = [10 + size, (size % 7) + 1];
  return { input, output, costNano: BigInt(input) * RATES.input + BigInt(output) * RATES.output };
}

/** Returns the size of the text of an encoded line. */
function sizeOf(body: string): number {
  const [, text = ""] = /"(x{3,})"/.exec(body) ?? [];
  return text.length;
}

type RunningBatch = BatchApi["batches"][number];

interface Vendor {
  readonly format: BatchFormat;
  /** Path of the API. */
  readonly base: string;
  readonly model: string;
  /** Returns the entry in gateway.yaml, without its models. */
  entry(url: string): string;
}

const kitFile = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));
const builtIn = (use: string, path: string) => (url: string) =>
  `use: ${use}, with: { base_url: "${url}${path}", api_key: k }`;

const VENDORS: Readonly<Record<string, Vendor>> = {
  openai: {
    format: openAiBatchFormat,
    base: "/v1",
    model: "gpt-4.1",
    entry: builtIn("openai", "/v1"),
  },
  groq: {
    format: openAiBatchFormat,
    base: "/openai/v1",
    model: "llama-3.3-70b-versatile",
    entry: builtIn("groq", "/openai/v1"),
  },
  mistral: {
    format: mistralFormat,
    base: "/v1",
    model: "devstral-latest",
    entry: builtIn("mistral", "/v1"),
  },
  anthropic: {
    format: messageBatchFormat,
    base: "/v1",
    model: "claude-opus-5",
    entry: builtIn("anthropic", ""),
  },
  google: {
    format: geminiFormat,
    base: "/v1beta",
    model: "gemini-3.1-pro-preview",
    entry: builtIn("google", ""),
  },
  azure: {
    format: azureFormat,
    base: "/openai/v1",
    model: "my-batch",
    entry: (url) =>
      `use: ${kitFile("plugins/providers/azure-foundry/index.ts")}, ` +
      `with: { base_url: "${url}", api_key: k, batch_deployments: ["*-batch"] }`,
  },
  vertex: {
    format: vertexFormat,
    base: "/v1/projects/my-project/locations/global",
    model: "gemini-3-flash",
    entry: (url) =>
      `use: ${kitFile("plugins/providers/vertex/index.ts")}, with: { project: my-project, ` +
      `base_url: "${url}", storage_url: "${url}", batch_uri: "gs://bucket/tollgate", access_token: k }`,
  },
};

/** Models that a client can name. */
export const MODELS: readonly string[] = [
  "fake/small",
  ...Object.entries(VENDORS).map(([name, { model }]) => `${name}/${model}`),
];

export interface BatchProviders extends AsyncDisposable {
  /** Entries under `providers` in gateway.yaml. */
  readonly yaml: string;
  /** Ends the failures, so that all batches can end. */
  recover(): void;
  /**
   * Lets time pass: batches that ran before the last call end, even if nobody polls them because the
   * response to their creation was lost. Forgets the requests that were recorded.
   */
  passTime(): void;
  /** What each provider bills for all batches that it has accepted. */
  billed(): Readonly<Record<string, Usage>>;
  /** Number of batches that the providers have accepted. */
  accepted(): number;
}

export async function startBatchProviders(chance: Chance): Promise<BatchProviders> {
  let fails = true;
  const happens = (oneIn: number): boolean => fails && chance.below(oneIn) === 0;
  misbehave(happens);
  const apis = new Map<string, BatchApi>();
  const upstreams: TestUpstream[] = [];
  /** Batches that ran when time passed before. */
  const wasRunning = new Set<RunningBatch>();
  const lines = [
    `  fake: { use: ${kitFile("test/kit/batch-provider.ts")}, with: { api_key: k }, models: { small: { price: ${PRICE} } } }`,
  ];
  for (const [name, { format, base, model, entry }] of Object.entries(VENDORS)) {
    const api = createBatchApi({
      format,
      base,
      answer: answerLine,
      order: "shuffled",
      repeatEvery: 3,
      seed: chance.below(1_000),
      failure: () => {
        if (!happens(FAILURE_SHARE)) return undefined;
        const body = JSON.stringify({ error: { message: "busy", type: "server_error" } });
        const busy = { status: 503, headers: { "content-type": "application/json" }, body };
        return chance.one(["lost_request", "lost_response", "truncated", busy] as const);
      },
    });
    const upstream = await startUpstream(api.routes);
    apis.set(name, api);
    upstreams.push(upstream);
    lines.push(
      `  ${name}: { ${entry(upstream.url)}, models: { "${model}": { price: ${PRICE} } } }`,
    );
  }
  return {
    yaml: `providers:\n${lines.join("\n")}\n`,
    recover() {
      fails = false;
    },
    passTime() {
      for (const upstream of upstreams) upstream.reset();
      for (const api of apis.values()) {
        (api.requests as unknown[]).length = 0;
        const isRunning = (one: RunningBatch) => one.state !== "ended" && wasRunning.has(one);
        for (const { id } of api.batches.filter(isRunning)) api.end(id);
      }
      wasRunning.clear();
      for (const { batches } of apis.values())
        for (const one of batches) if (one.state !== "ended") wasRunning.add(one);
    },
    billed: () => ({
      fake: usageOfFake(),
      ...Object.fromEntries([...apis].map(([name, { usage }]) => [name, usage])),
    }),
    accepted: () =>
      fakeBatches().batches.size + [...apis.values()].reduce((n, api) => n + api.batches.length, 0),
    async [Symbol.asyncDispose]() {
      for (const upstream of upstreams) await upstream.close();
    },
  };
}

const REJECTED = { error: { message: "no", type: "invalid_request_error" } };

function answerLine({ url, body }: SubmittedLine): LineAnswer {
  const bill = billOf(sizeOf(JSON.stringify(body)));
  if (!bill) return { status: 400, body: REJECTED };
  const usage = { input: bill.input, output: bill.output };
  const protocol = protocolAtPath(url);
  if (!protocol && /gemini|:batchGenerateContent/.test(url))
    return { body: geminiResponse(bill), usage };
  const response = say("yes")
    .usage(usage)
    .toProtocol(protocol ?? "chat-completions", { model: String(body.model), body });
  return { body: JSON.parse(bytesOf(response).toString()), usage };
}

/** Returns the body of a response that is not a stream. */
function bytesOf({ body = "" }: ScriptedResponse): Buffer {
  const pieces = [body]
    .flat()
    .map((piece) => (typeof piece === "object" && "tells" in piece ? piece.bytes : piece));
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece)));
}

const geminiResponse = ({ input, output }: ExpectedBill) => ({
  candidates: [{ content: { role: "model", parts: [{ text: "yes" }] }, finishReason: "STOP" }],
  usageMetadata: {
    promptTokenCount: input,
    candidatesTokenCount: output,
    totalTokenCount: input + output,
  },
});

/** Lets the provider in this process fail. */
function misbehave(happens: (oneIn: number) => boolean): void {
  const api = resetFakeBatches();
  const read = new Set<string>();
  api.before = (method) => {
    if (method !== "cancel" && happens(10)) fail("unavailable", `${method} failed.`);
  };
  api.afterSubmit = () => {
    if (happens(5)) throw new Error("The response is lost.");
  };
  api.pollsToEnd = 2;
  api.results = (batch) => {
    const all = batch.lines.flatMap((line, n) => {
      const result = resultOf(line);
      return n % 3 === 1 ? [result, result] : [result];
    });
    const isLate = !read.has(batch.key) && all.length % 3 === 1;
    read.add(batch.key);
    const some = isLate ? all.slice(0, all.length / 2) : all;
    return some.toSorted((a, b) => orderOf(a) - orderOf(b));
  };
}

const orderOf = ({ id }: BatchResult): number => (Number(id) * 7) % 11;

function resultOf({ id, body }: FakeBatch["lines"][number]): BatchResult {
  const answer = answerLine({ id, url: "/v1/chat/completions", body: JSON.parse(body) });
  const { status = 200, body: response } = answer as { status?: number; body: object };
  return { id, outcome: "answered", status, requestId: `req-${id}`, body: response as never };
}

function usageOfFake(): Usage {
  let [input, output] = [0, 0];
  for (const { lines } of fakeBatches().batches.values())
    for (const { body } of lines) {
      const bill = billOf(sizeOf(body));
      input += bill?.input ?? 0;
      output += bill?.output ?? 0;
    }
  return { input, output };
}
