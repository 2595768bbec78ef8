// Embeddings through a whole gateway, with every vendor and common SDKs: the same numbers in any
// format and from any vendor, and one exact bill.
import { OpenAIEmbeddings } from "@langchain/openai";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jsonResponse } from "tollgate/testing";
import { createTestFolder } from "../../kit/process/command-line.ts";
import { VENDORS, vectorOf } from "./embedding-vendors.ts";
import { keyOf, operating, raised, type Operating } from "./stage.ts";

let at: Operating;
beforeAll(async () => {
  at = await operating({
    "POST /wide/v1/embeddings": (asked) =>
      jsonResponse({
        data: [{ index: 0, embedding: vectorOf("x", (asked.json().dimensions ?? 8) + 1) }],
        usage: { prompt_tokens: 2, total_tokens: 2 },
      }),
  });
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const TEXTS = ["A harbour at dusk", "Rain over Oslo"];
const DUE = TEXTS.map((text) => vectorOf(text));

describe.each(VENDORS.map((vendor) => [vendor.name, vendor] as const))("%s", (name, vendor) => {
  const model = `${name}/${vendor.model}`;
  const numbers = ({ data }: { data: { embedding: number[] }[] }) =>
    data.map(({ embedding }) => embedding);

  it("openai SDK: the same numbers in every requested format", async () => {
    for (const more of [{}, { encoding_format: "float" }, { encoding_format: "base64" }] as const) {
      const got: any = await at.client().embeddings.create({ model, input: TEXTS, ...more });
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
        headers: { authorization: `Bearer ${keyOf("alice")}`, "content-type": "application/json" },
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

  it("openai SDK: the requested number of dimensions, for one text", async () => {
    const got = await at.client().embeddings.create({ model, input: TEXTS[0]!, dimensions: 4 });
    expect(numbers(got)).toEqual([vectorOf(TEXTS[0]!, 4)]);
  });

  it.each([
    [
      "AI SDK, OpenAI",
      () =>
        createOpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey: keyOf("alice") }).embedding(model),
    ],
    [
      "AI SDK, compatible",
      () =>
        createOpenAICompatible({
          name: "team",
          baseURL: `${at.gateway.url}/v1`,
          apiKey: keyOf("alice"),
        }).embeddingModel(model),
    ],
  ])("%s", async (_, embedding) => {
    const got = await embedMany({ model: embedding(), values: TEXTS, maxRetries: 0 });
    expect(got.embeddings).toEqual(DUE);
    expect(got.usage.tokens).toBe((await at.rows(name)).at(-1).usage.input);
  });

  it("LangChain", async () => {
    const embeddings = new OpenAIEmbeddings({
      model,
      apiKey: keyOf("alice"),
      configuration: { baseURL: `${at.gateway.url}/v1` },
      maxRetries: 0,
    });
    expect(await embeddings.embedDocuments([...TEXTS])).toEqual(DUE);
    expect(await embeddings.embedQuery(TEXTS[0]!)).toEqual(DUE[0]);
  });

  it("accepts every vendor's terms for the purpose", async () => {
    for (const [field, word] of [
      ["input_type", "search_query"],
      ["task_type", "RETRIEVAL_DOCUMENT"],
    ]) {
      const got: any = await at.client().embeddings.create({
        model,
        input: TEXTS,
        [field!]: word,
      } as never);
      expect(numbers(got)).toEqual(DUE);
    }
  });

  it("reports to the client the usage in the ledger, and the mode", async () => {
    const { usage } = await at.client().embeddings.create({ model, input: TEXTS });
    const row = (await at.rows(name)).at(-1);
    expect(usage).toMatchObject({ prompt_tokens: row.usage.input, total_tokens: row.usage.input });
    const { candidates } = (await at.gateway.ask("explain", {
      model,
      frontend: "embeddings",
    })) as any;
    expect(candidates.map(({ mode }: any) => mode)).toEqual([vendor.mode]);
  });
});

describe("token IDs", () => {
  it("are forwarded unchanged to models that accept them, and counted", async () => {
    const input = [[32, 9, 4], [17]];
    await at.client().embeddings.create({ model: "openai/text-embedding-3-small", input });
    expect(at.asked().at(-1)!.json().input).toEqual(input);
    expect((await at.rows("openai")).at(-1)).toMatchObject({ state: "exact", usage: { input: 4 } });
  });

  it.each(["mistral/codestral-embed", "voyage/voyage-3.5", "cohere/embed-v4.0"])(
    "%s is not called",
    async (model) => {
      expect(await raised(at.client().embeddings.create({ model, input: [1, 2] }))).toMatchObject({
        status: 400,
        code: "unsupported_input",
      });
      expect(at.asked()).toEqual([]);
    },
  );
});

describe("an invalid response", () => {
  it("embeddings of another width are never forwarded, and the input is billed", async () => {
    const asked = { model: "wide/m", input: "x", dimensions: 8 };
    expect(await raised(at.client().embeddings.create(asked))).toMatchObject({
      status: 502,
      code: "wrong_dimensions",
    });
    expect((await at.rows("wide")).at(-1)).toMatchObject({ usage: { input: 2 }, costNano: "200" });
  });

  it("nor in the other mode", async () => {
    at.up.setRoutes({
      "POST /cohere/v2/embed": jsonResponse({
        embeddings: { float: [[1, 2, 3]] },
        meta: { billed_units: { input_tokens: 3 } },
      }),
    });
    const asked = { model: "wider/embed-v4.0", input: "x", dimensions: 8 };
    expect(await raised(at.client().embeddings.create(asked))).toMatchObject({
      status: 502,
      code: "wrong_dimensions",
    });
    expect((await at.rows("wider")).at(-1)).toMatchObject({ usage: { input: 3 }, costNano: "300" });
    at.up.setRoutes(VENDORS.find(({ name }) => name === "cohere")!.routes);
  });

  it("the next candidate is called, on the same model", async () => {
    at.up.setRoutes({
      "POST /down-embeddings/v1/embeddings": jsonResponse({ data: [], usage: {} }),
    });
    const got = await at.client().embeddings.create({ model: "two-embeddings", input: TEXTS });
    expect(got.data.map(({ embedding }) => embedding)).toEqual(DUE);
  });
});

describe("demo/embed", () => {
  it("embeds offline: equal texts have equal vectors of length one, and texts with shared words have similar ones", async () => {
    const { data } = await at.client().embeddings.create({
      model: "demo/embed",
      input: ["a red boat", "a red boat", "the red boat sails", "taxes were due in April"],
    });
    const [one, same, near, far] = data.map(({ embedding }) => embedding) as number[][];
    const dot = (a: number[], b: number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
    expect(one).toEqual(same);
    expect(dot(one!, one!)).toBeCloseTo(1, 5);
    expect(dot(one!, near!)).toBeGreaterThan(dot(one!, far!) + 0.2);
    const wide = await at.client().embeddings.create({
      model: "demo/embed",
      input: "x",
      dimensions: 1_536,
    });
    expect(wide.data[0]!.embedding).toHaveLength(1_536);
  });

  it("reports what it does not support", async () => {
    const asked = (more: object) =>
      raised(at.client().embeddings.create({ model: "demo/embed", input: "x", ...more }));
    expect(await asked({ input: "a ".repeat(9_000) })).toMatchObject({
      code: "context_length_exceeded",
    });
  });
});

describe("one name for two models", () => {
  const check = async (models: string) => {
    await using at = await createTestFolder({
      "gateway.yaml": `providers:
  openai: { use: openai, with: { api_key: k } }
  azure: { use: azure, with: { api_key: k, base_url: "https://x.example/openai/v1" }, models: { ours: { operation: embedding, priced_as: openai/text-embedding-3-small } } }
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
  ])("%s is an error, with its line", async (models) => {
    const { code, out, err } = await check(models);
    expect(code).not.toBe(0);
    expect(out + err).toMatch(/gateway\.yaml:\d+:\d+\s+error/);
    expect(out + err).toMatch(/an embedding model cannot replace another/);
  });

  it.each([
    ["embed: [openai/text-embedding-3-small, azure/text-embedding-3-small]"],
    ["embed: [openai/text-embedding-3-small, azure/ours]"],
    ["chat: [demo/echo, demo/think]"],
    ['"embed-*": ["openai/text-embedding-3-*", "azure/text-embedding-3-*"]'],
  ])("%s is no error", async (models) => {
    const { code, out, err } = await check(models);
    expect(out + err).not.toMatch(/cannot replace another/);
    expect(code).toBe(0);
  });
});
