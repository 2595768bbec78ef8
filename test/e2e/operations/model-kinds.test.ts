// Rules for every built-in model type: it is listed by its type, served by the offline demo,
// billed, limited by its own unit, explained, counted, suggested at other endpoints, and in the
// catalog with a price.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Limit } from "tollgate/plugin";
import { BUILT_IN_OPERATIONS } from "../../../src/model/operations/built-in-operations.ts";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { sumSamples } from "../../kit/exposition.ts";
import { until } from "../../kit/wait.ts";

const TOKEN = "scraper-".padEnd(32, "0123456789");

interface Spoken {
  readonly frontend: string;
  readonly path: string;
  readonly model: string;
  /** Beside the model. */
  readonly body: object;
  /** Usage of its requests before the call. */
  readonly unit: Limit["unit"];
  readonly schema: string;
  /** The name in the GenAI conventions, if they have one. */
  readonly operation: string;
  /** A vendor's model with a price in the catalog. null: no known page has one. */
  readonly priced: string | null;
}

const TALK = { messages: [{ role: "user", content: "Hello" }] };
const KINDS = {
  chat: {
    frontend: "chat-completions",
    path: "/v1/chat/completions",
    model: "demo/echo",
    body: TALK,
    unit: "output",
    schema: "chat-completions",
    operation: "chat",
    priced: "openai/gpt-5",
  },
  image: {
    frontend: "images",
    path: "/v1/images/generations",
    model: "demo/image",
    body: { prompt: "A gate", size: "64x48" },
    unit: "images",
    schema: "images",
    operation: "image_generation",
    priced: "openai/gpt-image-2",
  },
  embedding: {
    frontend: "embeddings",
    path: "/v1/embeddings",
    model: "demo/embed",
    body: { input: "Hello" },
    unit: "input",
    schema: "embeddings",
    operation: "embeddings",
    priced: "openai/text-embedding-3-small",
  },
  rerank: {
    frontend: "rerank",
    path: "/v1/rerank",
    model: "demo/rerank",
    body: { query: "Hello", documents: ["Hello", "Goodbye"] },
    unit: "searches",
    schema: "rerank",
    operation: "rerank",
    priced: "cohere/rerank-v3.5",
  },
  moderation: {
    frontend: "moderations",
    path: "/v1/moderations",
    model: "demo/moderate",
    body: { input: "Hello" },
    unit: "requests",
    schema: "moderations",
    operation: "moderation",
    priced: null,
  },
  completion: {
    frontend: "completions",
    path: "/v1/completions",
    model: "demo/complete",
    body: { prompt: "Hello" },
    unit: "output",
    schema: "completions",
    operation: "text_completion",
    priced: null,
  },
  speech: {
    frontend: "speech",
    path: "/v1/audio/speech",
    model: "demo/speech",
    body: { input: "Hello", voice: "any" },
    unit: "characters",
    schema: "speech",
    operation: "speech",
    priced: "openai/gpt-4o-mini-tts",
  },
  transcript: {
    frontend: "transcriptions",
    path: "/v1/audio/transcriptions",
    model: "demo/transcribe",
    body: {},
    unit: "seconds",
    schema: "transcriptions",
    operation: "transcript",
    priced: "openai/whisper-1",
  },
} as const satisfies { readonly [kind: string]: Spoken };
type Kind = keyof typeof KINDS;
const EACH = Object.entries(KINDS) as readonly [Kind, Spoken][];

const keys = { alice: "alice-key", ...Object.fromEntries(EACH.map(([k]) => [k, `${k}-key`])) };
let at: InProcessGateway;
let admin: string;
let spoken: Buffer;
beforeAll(async () => {
  const limited = EACH.map(
    ([kind, { unit }]) =>
      `        - { id: ${kind}, digest: "${digestKey(`${kind}-key`)}", limits: [${unit}=0/total] }`,
  );
  at = await startInProcess({
    env: { T: TOKEN },
    yaml: `
store: memory
admin: { port: 0, tokens: { scraper: { role: metrics, token: "\${env:T}" } } }
frontends: [${EACH.map(([, { frontend }]) => frontend).join(", ")}, models]
observers: [metrics]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digestKey(keys.alice)}" }
${limited.join("\n")}
  - zdr
  - limits
providers:
  demo: demo
  openai: { use: openai, with: { base_url: "http://127.0.0.1:9/v1", api_key: k } }
  cohere: { use: cohere, with: { base_url: "http://127.0.0.1:9/v1", api_key: k } }
`,
  });
  admin = ((await at.ask("status")) as { adminUrl: string }).adminUrl;
  const asked = { model: "demo/speech", input: "Hello", voice: "any", response_format: "wav" };
  const said = await send("/v1/audio/speech", JSON.stringify(asked), keys.alice);
  spoken = Buffer.from(await said.arrayBuffer());
});
afterAll(() => at?.[Symbol.asyncDispose]());

const send = (path: string, body: string | FormData, key: string, more: object = {}) =>
  fetch(`${at.url}${path}`, {
    method: "POST",
    body,
    headers: {
      authorization: `Bearer ${key}`,
      ...(typeof body === "string" && { "content-type": "application/json" }),
      ...more,
    },
  });

function ask(kind: Kind, key: string = keys.alice, more: object = {}): Promise<Response> {
  const { path, model, body }: Spoken = KINDS[kind];
  if (kind !== "transcript") return send(path, JSON.stringify({ model, ...body }), key, more);
  const form = new FormData();
  form.set("model", model);
  form.set("file", new File([new Uint8Array(spoken)], "hello.wav", { type: "audio/wav" }));
  return send(path, form, key, more);
}

const listed = async (query: string): Promise<any[]> => {
  const headers = { authorization: `Bearer ${keys.alice}` };
  const res = await fetch(`${at.url}/v1/models${query}`, { headers });
  return ((await res.json()) as any).data;
};
const settles = async (): Promise<any[]> =>
  ((await at.ask("ledger.entries", { limit: 200 })) as any).items.filter(
    (row: any) => row.kind === "settle",
  );
const scraped = async () =>
  (await fetch(`${admin}/metrics`, { headers: { authorization: `Bearer ${TOKEN}` } })).text();

it("each built-in operation is listed here", () => {
  expect(Object.keys(KINDS).toSorted()).toEqual([...BUILT_IN_OPERATIONS.keys()].toSorted());
});

describe.each(EACH)("%s", (kind, { path, model, frontend, schema, operation, priced }) => {
  it("is listed by its type, and by no other", async () => {
    const own = await listed(`?operation=${kind}`);
    expect(own.find(({ id }) => id === model)).toMatchObject({ operation: kind });
    expect(new Set(own.map((row) => row.operation))).toEqual(new Set([kind]));
    for (const other of BUILT_IN_OPERATIONS.keys())
      if (other !== kind)
        expect((await listed(`?operation=${other}`)).map(({ id }) => id)).not.toContain(model);
  });

  it("is served by the demo, also under Service-ZDR, and billed as exact", async () => {
    const before = (await settles()).length;
    for (const more of [{}, { "service-zdr": "required" }]) {
      const res = await ask(kind, keys.alice, more);
      expect([res.status, res.status === 200 || (await res.text())]).toEqual([200, true]);
      await res.arrayBuffer();
    }
    await until(async () => (await settles()).length === before + 2);
    for (const row of (await settles()).slice(before))
      expect([row.state, row.costNano, `${row.target.provider}/${row.target.model}`]).toEqual([
        "exact",
        "0",
        model,
      ]);
  });

  it("is limited by its own unit, before the call", async () => {
    const res = await ask(kind, `${kind}-key`);
    expect([res.status, (await res.json()) as any]).toMatchObject([429, { error: {} }]);
  });

  it("is explained", async () => {
    const told = (await at.ask("explain", { model })) as any;
    expect(told.frontend).toBe(frontend);
    expect(told.candidates).toEqual([expect.objectContaining({ id: model })]);
  });

  it("is counted by its operation, and by the name in the semantic conventions", async () => {
    await (await ask(kind)).arrayBuffer();
    await until(
      async () =>
        sumSamples(await scraped(), "tollgate_requests_total", `operation="${kind}",outcome="ok"`) >
        0,
    );
    // A model list has the type of most of its requests: the call itself may be counted later.
    await until(async () => (await scraped()).includes(`gen_ai_operation_name="${operation}"`));
  });

  it("at another endpoint, the error names the right one", async () => {
    const [elsewhere] = EACH.find(([other]) => other !== kind && other !== "transcript")!;
    const other: Spoken = KINDS[elsewhere];
    const res = await send(other.path, JSON.stringify({ ...other.body, model }), keys.alice);
    expect([res.status, await res.text()]).toEqual([400, expect.stringContaining(path)]);
  });

  it("has a schema of its requests", async () => {
    const file = join(import.meta.dirname, "../../../schemas", `${schema}.request.json`);
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ type: "object" });
  });

  it.skipIf(priced === null)("is in the catalog with a price", async () => {
    const { models } = (await at.ask("models.explain", { model: priced! })) as any;
    expect(models).toMatchObject([{ operation: kind, example: { usd: expect.any(String) } }]);
  });
});
