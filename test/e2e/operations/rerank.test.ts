// Reranking through a whole gateway, in the format of every vendor's clients, with every vendor:
// the same order, and one exact bill in the vendor's unit.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { operating, type Operating } from "./stage.ts";
import { DOCUMENTS, SCORES } from "./vendors.ts";

const ORDER = [2, 0, 1];

let at: Operating;
beforeAll(async () => void (at = await operating()));
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const ask = (path: string, body: object, id = "alice") =>
  at.ask({ path }, { query: "Where is the harbour?", documents: DOCUMENTS, ...body }, { id });

const MODELS = [
  // 0.002 per search; 0.05 and 0.02 per million tokens.
  ["cohere/rerank-v3.5", { searches: 1 }, 2_000_000],
  ["voyage/rerank-2.5", { input: 26 }, 1_300],
  ["vllm/bge-reranker", { input: 31 }, 620],
  ["silent/bge-reranker", { searches: 1 }, 1_000_000],
] as const;

describe.each(MODELS)("%s", (model, usage, cost) => {
  it.each(["/v1/rerank", "/v2/rerank", "/rerank"])(
    "%s: in the format of Cohere's and Jina's clients",
    async (path) => {
      const { status, body } = await ask(path, { model, top_n: 2, return_documents: true });
      expect(status).toBe(200);
      expect(body.model ?? model).toBe(model);
      expect(body.results).toEqual(
        ORDER.slice(0, 2).map((index) => ({
          index,
          relevance_score: SCORES[index],
          document: { text: DOCUMENTS[index] },
        })),
      );
      if ("searches" in usage) expect(body.meta.billed_units.search_units).toBe(usage.searches);
      else expect(body.usage.total_tokens).toBe(usage.input);
      const row = (await at.rows()).at(-1);
      expect(row).toMatchObject({ state: "exact", usage, costNano: String(cost) });
    },
  );

  it("in the format of Voyage's clients", async () => {
    const { body } = await ask("/voyage/v1/rerank", { model, top_k: 2, truncation: true });
    expect(body).toMatchObject({
      object: "list",
      data: ORDER.slice(0, 2).map((index) => ({ index, relevance_score: SCORES[index] })),
      model,
    });
    expect(body.data[0]).not.toHaveProperty("document");
    expect(body.usage).toHaveProperty("total_tokens");
  });

  it("omits documents unless requested, and a limit above their number is no error", async () => {
    const { body } = await ask("/v1/rerank", { model, top_n: 50 });
    expect(body.results.map(({ index }: any) => index)).toEqual(ORDER);
    for (const row of body.results) expect(row).not.toHaveProperty("document");
  });
});

it("a rejection has the format that Cohere's and Voyage's clients expect", async () => {
  const model = "cohere/rerank-v3.5";
  const documents = Array.from({ length: 200 }, () => "x");
  const { status, body } = await ask("/v1/rerank", { model, documents }, "poor-rerank");
  expect([status, body.error.code]).toEqual([429, "insufficient_quota"]);
  expect(body.message).toBe(body.error.message);
  expect(body.detail).toBe(body.message);
});

it("demo/rerank ranks documents with shared words first", async () => {
  const { body } = await ask("/v1/rerank", { model: "demo/rerank" });
  expect(body.results.map(({ index }: any) => index)[0]).toBe(2);
});

it("Cohere's results are forwarded unchanged", async () => {
  const { candidates } = (await at.gateway.ask("explain", { model: "cohere/rerank-v3.5" })) as any;
  expect(candidates.map(({ mode }: any) => mode)).toEqual(["passthrough"]);
});

it("a search limit counts each hundred documents before the call, and the vendor's count afterwards", async () => {
  const many = Array.from({ length: 250 }, (_, i) => `Document ${i}`);
  const model = "cohere/rerank-v3.5";
  const first = await ask("/v2/rerank", { model }, "searches");
  expect(first.status).toBe(200);
  at.up.reset();
  const tooMany = await ask("/v2/rerank", { model, documents: many }, "searches");
  expect([tooMany.status, at.asked().length]).toEqual([429, 0]);
  const two = await ask("/v2/rerank", { model, documents: many.slice(0, 150) }, "searches");
  expect(two.status).toBe(200);
  expect((await ask("/v2/rerank", { model }, "searches")).status).toBe(429);
});

it("a long document counts as several, before the call and in the estimate of a truncated response", async () => {
  // Five hundred tokens including the query are one document: each of these is seven, and eighty
  // are six searches.
  const long = "A harbour in the west. ".repeat(450);
  const model = "cohere/rerank-v3.5";
  const documents = Array.from({ length: 80 }, () => long);
  at.up.reset();
  const tooMany = await ask("/v2/rerank", { model, documents }, "long");
  expect([tooMany.status, at.asked().length]).toEqual([429, 0]);
  const some = { documents: documents.slice(0, 20) };
  expect(
    (await ask("/v2/rerank", { model: "cut-rerank/bge-reranker", ...some }, "long")).status,
  ).toBe(502);
  expect((await at.rows()).at(-1)).toMatchObject({
    state: "estimated",
    usage: { searches: 2 },
    costNano: "2000000",
  });
});
