// Rankings through a whole gateway, in the words of every vendor's clients, from every vendor: the same order, and one exact bill by
// whichever measure the vendor bills.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json, type UpstreamRequest } from "tollgate/testing";
import { digest } from "../../src/lib/key.ts";
import { staged, type LocalStage } from "../kit/in-process.ts";

const KEYS = {
  alice: "alice-key",
  poor: "poor-key",
  narrow: "narrow-key",
  few: "few-key",
  long: "long-key",
} as const;
const DOCUMENTS = ["By the old town", "Rain over the sea", "The harbour is in the west"];
const SCORES = [0.4, 0.1, 0.98];
const ORDER = [2, 0, 1];

/** What each says of these documents, in no order. */
const rows = ({ documents }: { documents: readonly unknown[] }) =>
  documents.map((_, index) => ({ index, relevance_score: SCORES[index] ?? 0 }));
const refused = (message: string) => json({ message }, 422);

let at: LocalStage;
beforeAll(async () => {
  at = await staged(
    {
      "POST /cohere/v2/rerank": (asked: UpstreamRequest) => {
        const body = asked.json();
        if ("return_documents" in body || "top_k" in body) return refused("unknown field");
        const searches = Math.ceil(body.documents.length / 100);
        return {
          ...json({
            id: "c1",
            results: rows(body)
              .toSorted((a, b) => b.relevance_score - a.relevance_score)
              .slice(0, body.top_n ?? Infinity),
            meta: { api_version: { version: "2" }, billed_units: { search_units: searches } },
          }),
          bill: { searches },
        };
      },
      "POST /voyage/v1/rerank": (asked: UpstreamRequest) => {
        const body = asked.json();
        if ("top_n" in body) return refused("unknown field");
        return {
          ...json({
            object: "list",
            data: rows(body),
            model: body.model,
            usage: { total_tokens: 26 },
          }),
          bill: { input: 26 },
        };
      },
      // It sorts nothing, and counts tokens.
      "POST /vllm/v1/rerank": (asked: UpstreamRequest) => ({
        ...json({ id: "v1", results: rows(asked.json()), usage: { total_tokens: 31 } }),
        bill: { input: 31 },
      }),
      // It says nothing of what it costs.
      "POST /silent/v1/rerank": (asked: UpstreamRequest) => json({ results: rows(asked.json()) }),
      // It hangs up over the answer.
      "POST /cut/v1/rerank": () => ({
        ...json({ id: "v1", results: [] }),
        cut: { after: 5, how: "reset" },
      }),
      "GET *": json({ data: [] }),
    },
    (up) => `
store: { use: memory }
attempts: { target: 1 }
frontends: [rerank, models, chat-completions]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digest(KEYS.alice)}" }
        - { id: narrow, digest: "${digest(KEYS.narrow)}", models: ["demo/*"] }
        - { id: few, digest: "${digest(KEYS.few)}", limits: [searches=3/total] }
        - { id: long, digest: "${digest(KEYS.long)}", limits: [searches=5/total] }
        - { id: poor, digest: "${digest(KEYS.poor)}", limits: [usd=0.003/total] }
  - zdr
  - limits
  - usage
providers:
  demo: { use: demo }
  cohere:
    use: cohere
    with: { api_key: k, base_url: "${up}/cohere/compatibility/v1" }
    models: { rerank-v3.5: { kind: rerank } }
  voyage: { use: voyage, with: { api_key: k, base_url: "${up}/voyage/v1" } }
  vllm:
    use: vllm
    with: { base_url: "${up}/vllm/v1" }
    models: { bge-reranker: { kind: rerank, price: { input: "0.02" } } }
  cut:
    use: vllm
    with: { base_url: "${up}/cut/v1" }
    models: { bge-reranker: { kind: rerank, price: { searches: "0.001" } } }
  silent:
    use: vllm
    with: { base_url: "${up}/silent/v1" }
    models: { bge-reranker: { kind: rerank, price: { searches: "0.001" } } }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.forget());

async function ask(path: string, body: object, key: string = KEYS.alice, headers: object = {}) {
  const res = await fetch(at.gateway.url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      ...(headers as Record<string, string>),
    },
    body: JSON.stringify({ query: "Where is the harbour?", documents: DOCUMENTS, ...body }),
  });
  return { status: res.status, body: (await res.json()) as any, headers: res.headers };
}
async function settled(): Promise<any[]> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.filter((row: any) => row.kind === "settle");
}

const MODELS = [
  // 0.002 a search; 0.05 and 0.02 a million tokens.
  ["cohere/rerank-v3.5", { searches: 1 }, 2_000_000],
  ["voyage/rerank-2.5", { input: 26 }, 1_300],
  ["vllm/bge-reranker", { input: 31 }, 620],
  ["silent/bge-reranker", { searches: 1 }, 1_000_000],
] as const;

describe.each(MODELS)("%s", (model, usage, cost) => {
  it.each(["/v1/rerank", "/v2/rerank", "/rerank"])(
    "%s: as Cohere's and Jina's clients read it",
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
      const row = (await settled()).at(-1);
      expect(row).toMatchObject({ state: "exact", usage, costNano: String(cost) });
    },
  );

  it("as Voyage's read it", async () => {
    const { body } = await ask("/voyage/v1/rerank", { model, top_k: 2, truncation: true });
    expect(body).toMatchObject({
      object: "list",
      data: ORDER.slice(0, 2).map((index) => ({ index, relevance_score: SCORES[index] })),
      model,
    });
    expect(body.data[0]).not.toHaveProperty("document");
    expect(body.usage).toHaveProperty("total_tokens");
  });

  it("without documents where none were asked for, more than there are is no error", async () => {
    const { body } = await ask("/v1/rerank", { model, top_n: 50 });
    expect(body.results.map(({ index }: any) => index)).toEqual(ORDER);
    for (const row of body.results) expect(row).not.toHaveProperty("document");
  });
});

it("what the ledger counted is what the vendors billed", async () => {
  const before = (await settled()).length;
  const many = Array.from({ length: 250 }, (_, i) => `text ${i}`);
  for (const documents of [DOCUMENTS, many])
    for (const [model] of MODELS.slice(0, 3)) await ask("/v1/rerank", { model, documents });
  const sum = (all: readonly any[], unit: string) =>
    all.reduce((most, { usage }) => most + (usage[unit] ?? 0), 0);
  const booked = (await settled()).slice(before);
  expect(sum(booked, "searches")).toBe(1 + 3);
  for (const unit of ["searches", "input"]) expect(sum(booked, unit)).toBe(sum(at.up.bill, unit));
});

describe("who is refused", () => {
  it("a key, a budget whose hold does not fit, and under Service-ZDR what none vouches for", async () => {
    const model = "cohere/rerank-v3.5";
    expect((await ask("/v1/rerank", { model }, KEYS.narrow)).status).toBe(403);
    const documents = Array.from({ length: 200 }, () => "x");
    const spent = await ask("/v1/rerank", { model, documents }, KEYS.poor);
    expect([spent.status, spent.body.error.code]).toEqual([429, "insufficient_quota"]);
    // In the words that Cohere's and Voyage's clients look for, too.
    expect(spent.body.message).toBe(spent.body.error.message);
    expect(spent.body.detail).toBe(spent.body.message);
    expect(
      (await ask("/v1/rerank", { model }, KEYS.alice, { "service-zdr": "required" })).status,
    ).toBe(403);
    expect(at.up.requests.filter(({ method }) => method === "POST")).toEqual([]);
    expect((await ask("/v1/rerank", { model }, KEYS.poor)).status).toBe(200);
    const offline = await ask("/v1/rerank", { model: "demo/rerank" }, KEYS.alice, {
      "service-zdr": "required",
    });
    expect(offline.status).toBe(200);
  });

  it("what is no request for a ranking", async () => {
    const model = "demo/rerank";
    for (const wrong of [
      { documents: [] },
      { query: "" },
      { documents: [1] },
      { top_n: 0 },
      { stream: true },
    ])
      expect((await ask("/v1/rerank", { model, ...wrong })).status).toBe(400);
  });
});

it("demo/rerank puts first what shares words with the query; lists say what it is for", async () => {
  const { body } = await ask("/v1/rerank", { model: "demo/rerank" });
  expect(body.results.map(({ index }: any) => index)[0]).toBe(2);
  const headers = { authorization: `Bearer ${KEYS.alice}` };
  const res = await fetch(`${at.gateway.url}/v1/models?kind=rerank`, { headers });
  const ids = ((await res.json()) as any).data.map(({ id }: any) => id);
  expect(ids).toEqual(expect.arrayContaining(["demo/rerank", "voyage/rerank-2.5"]));
  const { candidates } = (await at.gateway.ask("explain", { model: "cohere/rerank-v3.5" })) as any;
  expect(candidates.map(({ lane }: any) => lane)).toEqual(["verbatim"]);
});

it("a limit of searches counts each hundred documents before anybody is asked, and what the vendor says after", async () => {
  const many = Array.from({ length: 250 }, (_, i) => `Document ${i}`);
  const model = "cohere/rerank-v3.5";
  const first = await ask("/v2/rerank", { model }, KEYS.few);
  expect(first.status).toBe(200);
  at.up.forget();
  const tooMany = await ask("/v2/rerank", { model, documents: many }, KEYS.few);
  expect([tooMany.status, at.up.requests.length]).toEqual([429, 0]);
  const two = await ask("/v2/rerank", { model, documents: many.slice(0, 150) }, KEYS.few);
  expect(two.status).toBe(200);
  expect((await ask("/v2/rerank", { model }, KEYS.few)).status).toBe(429);
});

it("a long document counts as several before anybody is asked, and in what a ranking that is cut is taken to cost", async () => {
  // Five hundred tokens are one, with the query among them: each of these is seven, and eighty are six searches.
  const long = "A harbour in the west. ".repeat(450);
  const model = "cohere/rerank-v3.5";
  const documents = Array.from({ length: 80 }, () => long);
  at.up.forget();
  const tooMany = await ask("/v2/rerank", { model, documents }, KEYS.long);
  expect([tooMany.status, at.up.requests.length]).toEqual([429, 0]);
  const some = { documents: documents.slice(0, 20) };
  expect((await ask("/v2/rerank", { model: "cut/bge-reranker", ...some }, KEYS.long)).status).toBe(
    502,
  );
  expect((await settled()).at(-1)).toMatchObject({
    state: "estimated",
    usage: { searches: 2 },
    costNano: "2000000",
  });
});
