// Google's two embedding methods, with every vendor: the same numbers as in OpenAI's format, and
// unchanged bytes from Google itself. The clients are tested with `npm run clients -- google`.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { jsonResponse } from "tollgate/testing";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../../kit/in-process.ts";
import { checkError } from "../../protocols/wire/gemini.ts";
import { providersFor, VENDORS, vectorOf } from "../operations/embedding-vendors.ts";

let at: InProcessWithUpstream;
beforeAll(async () => {
  at = await startInProcessWithUpstream(
    Object.assign(
      {
        "POST /wide/v1beta/models/m:batchEmbedContents": jsonResponse({
          embeddings: [{ values: [1, 2, 3] }, { values: [1, 2, 3] }],
        }),
        "POST /wide/v1beta/models/m:embedContent": jsonResponse({
          embedding: { values: [1, 2, 3] },
        }),
      },
      ...VENDORS.map(({ routes }) => routes),
    ),
    (up) => `
store: memory
frontends: [gemini, embeddings, models]
middleware: [auth, limits, zdr]
retries: { per_target: 1 }
providers:
${providersFor(up)}
  wide:
    use: google
    with: { api_key: k, base_url: "${up}/wide" }
    models: { m: { operation: embedding, price: { input: "0.10" } } }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

async function ask(target: string, body: object, headers: Record<string, string> = {}) {
  const res = await fetch(`${at.gateway.url}/v1beta/models/${target}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-goog-api-key": at.gateway.key, ...headers },
    body: JSON.stringify(body),
  });
  const text = await res.text();
  return { status: res.status, headers: res.headers, text, body: JSON.parse(text) as any };
}
const content = (text: string) => ({ role: "user", parts: [{ text }] });
const TEXTS = ["A harbour at dusk", "Rain over Oslo"] as const;
const several = (more: object = {}) => ({
  requests: TEXTS.map((text) => ({ model: "models/any", content: content(text), ...more })),
});
const posted = () => at.up.requests.filter(({ method }) => method === "POST");
async function settled(): Promise<any> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.findLast(({ kind }: any) => kind === "settle");
}

describe.each(VENDORS.map((vendor) => [vendor.name, vendor] as const))("%s", (name, vendor) => {
  const model = `${name}/${vendor.model}`;
  it("batchEmbedContents: returns the same numbers as other protocols", async () => {
    const { status, body } = await ask(`${model}:batchEmbedContents`, several());
    expect([status, body.embeddings]).toEqual([
      200,
      TEXTS.map((text) => ({ values: vectorOf(text) })),
    ]);
    expect((await settled()).usage.input).toBeGreaterThan(0);
  });
  it("embedContent: returns one embedding with the requested dimensions, by either name", async () => {
    for (const width of [{ outputDimensionality: 4 }, { output_dimensionality: 4 }]) {
      const asked = { content: content(TEXTS[0]), ...width };
      const { status, body } = await ask(`${model}:embedContent`, asked);
      expect([status, body.embedding]).toEqual([200, { values: vectorOf(TEXTS[0], 4) }]);
    }
  });
});

describe("Google's own models", () => {
  const model = "google/gemini-embedding-001";
  it("receive the client's body except for the model's name", async () => {
    const more = { task_type: "NEWER_THAN_US", title: "T", vendor_field: 1 };
    const got = await ask(`${model}:batchEmbedContents`, several(more));
    const [asked] = posted();
    expect(asked!.path).toBe("/google/v1beta/models/gemini-embedding-001:batchEmbedContents");
    expect(asked!.json()).toEqual({
      requests: TEXTS.map((text) => ({
        model: "models/gemini-embedding-001",
        content: content(text),
        taskType: "NEWER_THAN_US",
        title: "T",
        vendor_field: 1,
      })),
    });
    // Byte for byte as the upstream sent it.
    expect(got.text).toBe(
      JSON.stringify({ embeddings: TEXTS.map((text) => ({ values: vectorOf(text) })) }),
    );
    expect(got.headers.get("x-tollgate-warnings")).toBeNull();
  });
  it("embedContent stays embedContent, and an image is forwarded", async () => {
    const parts = [{ text: "A dot" }, { inlineData: { mimeType: "image/png", data: "aGk=" } }];
    const { status } = await ask(`${model}:embedContent`, { content: { parts } });
    expect(status).toBe(200);
    const [asked] = posted();
    expect(asked!.path).toBe("/google/v1beta/models/gemini-embedding-001:embedContent");
    expect(asked!.json()).toEqual({ content: { parts } });
  });
  it("each text may have its own purpose and width", async () => {
    const requests = TEXTS.map((text, i) => ({
      content: content(text),
      taskType: i ? "CLUSTERING" : "RETRIEVAL_QUERY",
      outputDimensionality: 4 + i,
    }));
    const got = await ask(`${model}:batchEmbedContents`, { requests });
    expect(got.body.embeddings.map(({ values }: any) => values.length)).toEqual([4, 5]);
    const others = await ask("openai/text-embedding-3-small:batchEmbedContents", { requests });
    checkError(others.body);
    expect([others.status, others.body.error.message]).toEqual([
      400,
      expect.stringContaining("taskType"),
    ]);
  });
  it.each(["embedContent", "batchEmbedContents"])("a wrong width is an error: %s", async (verb) => {
    const body =
      verb === "embedContent"
        ? { content: content("a"), outputDimensionality: 4 }
        : several({ outputDimensionality: 4 });
    const got = await ask(`wide/m:${verb}`, body);
    checkError(got.body);
    expect([got.status, got.body.error.message]).toEqual([502, expect.stringContaining("wants 4")]);
  });
});

describe("unsupported features", () => {
  const model = "openai/text-embedding-3-small";
  it("a title is reported as dropped, and strict rejects it", async () => {
    const body = { content: content("a"), title: "T" };
    const got = await ask(`${model}:embedContent`, body);
    expect([got.status, got.headers.get("x-tollgate-warnings")]).toEqual([
      200,
      expect.stringContaining("title"),
    ]);
    const strict = await ask(`${model}:embedContent`, body, { "x-tollgate-strict": "true" });
    checkError(strict.body);
    expect([strict.status, strict.body.error.message]).toEqual([
      400,
      expect.stringContaining("title"),
    ]);
  });
  it("a task without an equivalent is reported too", async () => {
    const asked = { content: content("a"), taskType: "CLUSTERING" };
    const got = await ask("voyage/voyage-3.5:embedContent", asked);
    expect([got.status, got.headers.get("x-tollgate-warnings")]).toEqual([
      200,
      expect.stringContaining("task_unknown"),
    ]);
  });
  it("an image is rejected with an explanation", async () => {
    const inlineData = { mimeType: "image/png", data: "aGk=" };
    const got = await ask(`${model}:embedContent`, { content: { parts: [{ inlineData }] } });
    checkError(got.body);
    expect(got.status).toBe(400);
    expect(posted()).toEqual([]);
  });
});

describe("is rejected before any provider is called", () => {
  it.each([
    ["no content", "embedContent", {}],
    ["several where one is meant", "embedContent", several()],
    ["one where several are meant", "batchEmbedContents", { content: content("a") }],
    ["an empty list", "batchEmbedContents", { requests: [] }],
    [
      "a member by both its names",
      "embedContent",
      { content: content("a"), taskType: "A", task_type: "B" },
    ],
  ])("%s", async (_, verb, body) => {
    const got = await ask(`google/gemini-embedding-001:${verb}`, body);
    checkError(got.body);
    expect(got.status).toBe(400);
    expect(posted()).toEqual([]);
  });
  it("a chat model, and a chat request to an embedding model", async () => {
    const got = await ask("google/gemini-embedding-001:generateContent", {
      contents: [content("Hi")],
    });
    checkError(got.body);
    expect(got.status).toBe(400);
    expect(posted()).toEqual([]);
  });
});

it("the list states the methods of each model", async () => {
  const list = async (path: string, headers: Record<string, string> = {}) =>
    (await fetch(`${at.gateway.url}${path}`, { headers })).json() as Promise<any>;
  const { key } = at.gateway;
  const { models } = await list("/v1/models?pageSize=1000", { "x-goog-api-key": key });
  expect(
    models.find(({ name }: any) => name === "models/google/gemini-embedding-001")
      .supportedGenerationMethods,
  ).toEqual(["embedContent", "batchEmbedContents"]);
  // By the place of the key, which only this family uses.
  expect((await list(`/v1/models?pageSize=1000&key=${key}`)).models).toEqual(models);
  expect((await list("/v1/models", { authorization: `Bearer ${key}` })).data).toHaveLength(
    models.length,
  );
});
