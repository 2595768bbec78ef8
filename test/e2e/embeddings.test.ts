// Embeddings through a whole gateway, from every vendor, by the SDKs that people use: the same numbers whatever their form and
// wherever they come from, and one exact bill.
import { OpenAIEmbeddings } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json } from "tollgate/testing";
import { digest } from "../../src/lib/key.ts";
import { folder } from "../kit/command-line.ts";
import { staged, type LocalStage } from "../kit/in-process.ts";
import { until } from "../kit/waits.ts";
import { NANO_A_TOKEN, providersFor, tokensIn, VENDORS, vectorOf } from "./embeddings/vendors.ts";

const KEYS = { alice: "alice-key", poor: "poor-key", narrow: "narrow-key" } as const;

let at: LocalStage;
beforeAll(async () => {
  at = await staged(
    Object.assign(
      {
        "POST /wide/v1/embeddings": (asked: any) =>
          json({
            data: [{ index: 0, embedding: vectorOf("x", (asked.json().dimensions ?? 8) + 1) }],
            usage: { prompt_tokens: 2, total_tokens: 2 },
          }),
        "POST /slow/v1/embeddings": { waitMs: 20_000 },
      },
      ...VENDORS.map(({ routes }) => routes),
    ),
    (up) => `
store: { use: memory }
attempts: { target: 1 }
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digest(KEYS.alice)}" }
        - { id: narrow, digest: "${digest(KEYS.narrow)}", models: ["demo/*"] }
        - { id: poor, digest: "${digest(KEYS.poor)}", limits: [usd=0.000001/total] }
  - zdr
  - limits
  - usage
providers:
  demo: { use: demo }
${providersFor(up)}
  wide:
    use: openai-compatible
    with: { base_url: "${up}/wide/v1", embeddings: ["*"], models: false }
    models: { m: { kind: embedding, price: { input: "0.10" } } }
  wider:
    use: cohere
    with: { api_key: k, base_url: "${up}/cohere/compatibility/v1" }
    models: { "embed-v4.0": { kind: embedding, price: { input: "0.10" } } }
  slow:
    use: openai-compatible
    with: { base_url: "${up}/slow/v1", embeddings: ["*"], models: false }
    models: { m: { kind: embedding, price: { input: "0.10" } } }
models:
  embed: { candidates: [wide/text-embedding-3-small, openai/text-embedding-3-small] }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.forget());

const client = (apiKey: string = KEYS.alice) =>
  new OpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey, maxRetries: 0 });
/** What an SDK throws. */
const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code, message }) => ({ status, code, message }),
  );
/** Settle rows of a provider, oldest first. */
async function rows(provider?: string): Promise<any[]> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.filter(
    (row: any) => row.kind === "settle" && (!provider || row.target.provider === provider),
  );
}
const TEXTS = ["A harbour at dusk", "Rain over Oslo"];
const DUE = TEXTS.map((text) => vectorOf(text));

describe.each(VENDORS.map((vendor) => [vendor.name, vendor] as const))("%s", (name, vendor) => {
  const model = `${name}/${vendor.model}`;
  const numbers = ({ data }: { data: { embedding: number[] }[] }) =>
    data.map(({ embedding }) => embedding);

  it("openai SDK: the same numbers whatever it asks for", async () => {
    for (const more of [{}, { encoding_format: "float" }, { encoding_format: "base64" }] as const) {
      const got: any = await client().embeddings.create({ model, input: TEXTS, ...more });
      expect(got.model).toBe(model);
      const said =
        "encoding_format" in more && more.encoding_format === "base64"
          ? got.data.map(({ embedding }: any) =>
              Array.from(
                new Float32Array(Uint8Array.from(Buffer.from(embedding, "base64")).buffer),
              ),
            )
          : numbers(got);
      expect(said).toEqual(DUE);
      expect(got.usage.prompt_tokens).toBeGreaterThan(0);
    }
  });

  it("other vendors' formats and base URLs: the same numbers", async () => {
    const post = async (path: string, body: object): Promise<any> => {
      const res = await fetch(`${at.gateway.url}${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${KEYS.alice}`, "content-type": "application/json" },
        body: JSON.stringify({ model, ...body }),
      });
      expect(res.status).toBe(200);
      return res.json();
    };
    expect(numbers(await post("/voyage/v1/embeddings", { input: TEXTS }))).toEqual(DUE);
    expect(numbers(await post("/v1beta/openai/embeddings", { input: TEXTS }))).toEqual(DUE);
    const cohere = { input_type: "search_document", embedding_types: ["float"] };
    const inputs = TEXTS.map((text) => ({ content: [{ type: "text", text }] }));
    for (const asked of [
      { ...cohere, texts: TEXTS },
      { ...cohere, inputs, truncate: "END" },
    ]) {
      const got = await post("/v2/embed", asked);
      expect(got).toMatchObject({
        embeddings: { float: DUE },
        texts: TEXTS,
        response_type: "embeddings_by_type",
        meta: { billed_units: { input_tokens: expect.any(Number) } },
      });
    }
  });

  it("openai SDK: as wide as was asked for, of one text", async () => {
    const got = await client().embeddings.create({ model, input: TEXTS[0]!, dimensions: 4 });
    expect(numbers(got)).toEqual([vectorOf(TEXTS[0]!, 4)]);
  });

  it.each([
    [
      "AI SDK, OpenAI",
      () => createOpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey: KEYS.alice }).embedding(model),
    ],
    [
      "AI SDK, compatible",
      () =>
        createOpenAICompatible({
          name: "team",
          baseURL: `${at.gateway.url}/v1`,
          apiKey: KEYS.alice,
        }).embeddingModel(model),
    ],
  ])("%s", async (_, embedding) => {
    const got = await embedMany({ model: embedding(), values: TEXTS, maxRetries: 0 });
    expect(got.embeddings).toEqual(DUE);
    expect(got.usage.tokens).toBe((await rows(name)).at(-1).usage.input);
  });

  it("LangChain", async () => {
    const embeddings = new OpenAIEmbeddings({
      model,
      apiKey: KEYS.alice,
      configuration: { baseURL: `${at.gateway.url}/v1` },
      maxRetries: 0,
    });
    expect(await embeddings.embedDocuments([...TEXTS])).toEqual(DUE);
    expect(await embeddings.embedQuery(TEXTS[0]!)).toEqual(DUE[0]);
  });

  it("in any vendor's words for what they are for", async () => {
    for (const [field, word] of [
      ["input_type", "search_query"],
      ["task_type", "RETRIEVAL_DOCUMENT"],
    ]) {
      const got: any = await client().embeddings.create({
        model,
        input: TEXTS,
        [field!]: word,
      } as never);
      expect(numbers(got)).toEqual(DUE);
    }
  });

  it("bills what the vendor charges, exactly where it counts", async () => {
    const before = (await rows(name)).length;
    const { usage } = await client().embeddings.create({ model, input: TEXTS });
    const [row, ...others] = (await rows(name)).slice(before);
    expect(others).toEqual([]);
    const due = tokensIn(TEXTS);
    expect(row.state).toBe(vendor.counts ? "exact" : "estimated");
    // Whatever it is, the client and the ledger are told the same.
    expect(usage).toMatchObject({ prompt_tokens: row.usage.input, total_tokens: row.usage.input });
    if (vendor.counts) expect(row.usage).toEqual({ input: due });
    else expect(row.usage.input).toBeGreaterThanOrEqual(due);
    expect(String(row.costNano)).toBe(String(row.usage.input * NANO_A_TOKEN));
    const { candidates } = (await at.gateway.ask("explain", {
      model,
      frontend: "embeddings",
    })) as any;
    expect(candidates.map(({ lane }: any) => lane)).toEqual([vendor.lane]);
  });
});

it("what the ledger counted is what the vendors billed", async () => {
  const before = (await rows()).length;
  const counting = VENDORS.filter(({ counts }) => counts);
  await Promise.all(
    counting.flatMap(({ name, model }) =>
      [TEXTS, ["one"], "two words"].map((input) =>
        client().embeddings.create({ model: `${name}/${model}`, input: input as string[] }),
      ),
    ),
  );
  const billed = at.up.bill.reduce((sum, { usage }) => sum + usage.input!, 0);
  const booked = (await rows()).slice(before);
  expect(booked.reduce((sum, { usage }) => sum + usage.input, 0)).toBe(billed);
  expect(booked.reduce((sum, { costNano }) => sum + BigInt(costNano), 0n)).toBe(
    BigInt(billed * NANO_A_TOKEN),
  );
});

describe("ids of tokens", () => {
  it("travel as they are to those that read them, and are counted", async () => {
    const input = [[32, 9, 4], [17]];
    await client().embeddings.create({ model: "openai/text-embedding-3-small", input });
    expect(at.up.requests.at(-1)!.json().input).toEqual(input);
    expect((await rows("openai")).at(-1)).toMatchObject({ state: "exact", usage: { input: 4 } });
  });

  it.each(["mistral/codestral-embed", "voyage/voyage-3.5", "cohere/embed-v4.0"])(
    "%s is not asked",
    async (model) => {
      expect(await raised(client().embeddings.create({ model, input: [1, 2] }))).toMatchObject({
        status: 400,
        code: "unsupported_input",
      });
      expect(at.up.requests.filter(({ method }) => method === "POST")).toEqual([]);
    },
  );
});

describe("what is no answer", () => {
  it("a vector of another width is never passed on, and what was read is billed", async () => {
    const asked = { model: "wide/m", input: "x", dimensions: 8 };
    expect(await raised(client().embeddings.create(asked))).toMatchObject({
      status: 502,
      code: "wrong_dimensions",
    });
    expect((await rows("wide")).at(-1)).toMatchObject({ usage: { input: 2 }, costNano: "200" });
  });

  it("on the other lane neither", async () => {
    at.up.script({
      "POST /cohere/v2/embed": json({
        embeddings: { float: [[1, 2, 3]] },
        meta: { billed_units: { input_tokens: 3 } },
      }),
    });
    const asked = { model: "wider/embed-v4.0", input: "x", dimensions: 8 };
    expect(await raised(client().embeddings.create(asked))).toMatchObject({
      status: 502,
      code: "wrong_dimensions",
    });
    expect((await rows("wider")).at(-1)).toMatchObject({ usage: { input: 3 }, costNano: "300" });
    at.up.script(VENDORS.find(({ name }) => name === "cohere")!.routes);
  });

  it("and the next candidate is asked, on the same model", async () => {
    at.up.script({ "POST /wide/v1/embeddings": json({ data: [], usage: {} }) });
    const got = await client().embeddings.create({ model: "embed", input: TEXTS });
    expect(got.data.map(({ embedding }) => embedding)).toEqual(DUE);
  });
});

describe("who is refused", () => {
  it("a key that may not use the model", async () => {
    const asked = { model: "openai/text-embedding-3-small", input: "x" };
    expect(await raised(client(KEYS.narrow).embeddings.create(asked))).toMatchObject({
      status: 403,
    });
    expect(await raised(client("no-key").embeddings.create(asked))).toMatchObject({ status: 401 });
    expect(at.up.requests.filter(({ method }) => method === "POST")).toEqual([]);
  });

  it("a budget that its hold does not fit in, and the next request that does", async () => {
    const poor = client(KEYS.poor);
    const model = "openai/text-embedding-3-small";
    const long = "word ".repeat(2_000);
    expect(await raised(poor.embeddings.create({ model, input: long }))).toMatchObject({
      status: 429,
      code: "insufficient_quota",
    });
    expect(at.up.requests.filter(({ method }) => method === "POST")).toEqual([]);
    await poor.embeddings.create({ model, input: [[1]] });
    expect((await rows("openai")).at(-1)).toMatchObject({ costNano: String(NANO_A_TOKEN) });
  });

  it("under Service-ZDR whatever nobody vouches for", async () => {
    for (const { name, model } of VENDORS) {
      const asked = client().embeddings.create(
        { model: `${name}/${model}`, input: "x" },
        { headers: { "service-zdr": "required" } },
      );
      expect(await raised(asked), name).toMatchObject({ status: 403 });
    }
    expect(at.up.requests.filter(({ method }) => method === "POST")).toEqual([]);
    await client().embeddings.create(
      { model: "demo/embed", input: "x" },
      { headers: { "service-zdr": "required" } },
    );
  });

  it("a client that goes away: upstream is let go of", async () => {
    const stop = new AbortController();
    const asking = client()
      .embeddings.create({ model: "slow/m", input: "x" }, { signal: stop.signal })
      .catch((error: Error) => error);
    await until(() => at.up.requests.length === 1);
    stop.abort();
    await asking;
    await until(() => at.up.requests[0]!.state === "aborted");
    await until(async () => (await rows("slow")).length === 1);
  });
});

describe("demo/embed", () => {
  it("embeds offline: the same text the same vector, of length one, near to what it shares words with", async () => {
    const { data } = await client().embeddings.create({
      model: "demo/embed",
      input: ["a red boat", "a red boat", "the red boat sails", "taxes were due in April"],
    });
    const [one, same, near, far] = data.map(({ embedding }) => embedding) as number[][];
    const dot = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
    expect(one).toEqual(same);
    expect(dot(one!, one!)).toBeCloseTo(1, 5);
    expect(dot(one!, near!)).toBeGreaterThan(dot(one!, far!) + 0.2);
    const wide = await client().embeddings.create({
      model: "demo/embed",
      input: "x",
      dimensions: 1_536,
    });
    expect(wide.data[0]!.embedding).toHaveLength(1_536);
  });

  it("says what it cannot", async () => {
    const asked = (more: object) =>
      raised(client().embeddings.create({ model: "demo/embed", input: "x", ...more }));
    expect(await asked({ dimensions: 5_000 })).toMatchObject({ status: 400 });
    expect(await asked({ input: "a ".repeat(9_000) })).toMatchObject({
      code: "context_length_exceeded",
    });
    expect(await asked({ stream: true })).toMatchObject({ status: 400 });
    expect(await asked({ input: [] })).toMatchObject({ status: 400 });
    expect(await asked({ input: [1, "a"] })).toMatchObject({ status: 400 });
  });
});

it("lists say what a model is for, and errors where to ask", async () => {
  const headers = { authorization: `Bearer ${KEYS.alice}` };
  const res = await fetch(`${at.gateway.url}/v1/models?kind=embedding`, { headers });
  const { data } = (await res.json()) as any;
  const ids = data.map(({ id }: any) => id);
  for (const { name, model } of VENDORS) expect(ids).toContain(`${name}/${model}`);
  expect(data.find(({ id }: any) => id === "demo/embed")).toMatchObject({ kind: "embedding" });
  const chat = client().chat.completions.create({
    model: "demo/embed",
    messages: [{ role: "user", content: "x" }],
  });
  expect((await raised(chat)).message).toContain(
    "is an embedding model: ask for it at /v1/embeddings",
  );
  const wrong = client().embeddings.create({ model: "demo/echo", input: "x" });
  expect((await raised(wrong)).message).toContain("is a chat model");
});

describe("a name for two models", () => {
  const check = async (models: string) => {
    await using at = await folder({
      "gateway.yaml": `providers:
  openai: { use: openai, with: { api_key: k } }
  azure: { use: azure, with: { api_key: k, base_url: "https://x.example/openai/v1" }, models: { ours: { kind: embedding, priced_as: openai/text-embedding-3-small } } }
  mistral: { use: mistral, with: { api_key: k } }
  demo: { use: demo }
models:
  ${models}
`,
    });
    return await at.said(["check"]);
  };

  it.each([
    ["embed: [openai/text-embedding-3-small, mistral/mistral-embed]"],
    ["embed: [openai/text-embedding-3-small, openai/text-embedding-3-large]"],
    ["embed: [openai/text-embedding-3-small, azure/never-heard-of]"],
    ['"embed-*": ["openai/text-embedding-3-*", mistral/mistral-embed]'],
    ["inner: mistral/mistral-embed\n  embed: [openai/text-embedding-3-small, inner]"],
  ])("%s is an error, at its line", async (models) => {
    const { code, out, err } = await check(models);
    expect(code).not.toBe(0);
    expect(out + err).toMatch(/gateway\.yaml:\d+:\d+\s+error/);
    expect(out + err).toMatch(/an embedding model cannot stand in for another/);
  });

  it.each([
    ["embed: [openai/text-embedding-3-small, azure/text-embedding-3-small]"],
    ["embed: [openai/text-embedding-3-small, azure/ours]"],
    ["chat: [demo/echo, demo/think]"],
    ['"embed-*": ["openai/text-embedding-3-*", "azure/text-embedding-3-*"]'],
  ])("%s is none", async (models) => {
    const { code, out, err } = await check(models);
    expect(out + err).not.toMatch(/cannot stand in/);
    expect(code).toBe(0);
  });
});
