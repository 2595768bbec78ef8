// Moderations through a whole gateway: each vendor's verdict as the vendor words it, by OpenAI's SDK, and one row a request.
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { json, type UpstreamRequest } from "tollgate/testing";
import { digest } from "../../src/lib/key.ts";
import { staged, type LocalStage } from "../kit/in-process.ts";

const KEYS = { alice: "alice-key", poor: "poor-key", narrow: "narrow-key" } as const;
const VERDICT = {
  flagged: true,
  categories: { violence: true },
  category_scores: { violence: 0.9 },
};
const OTHER = { categories: { pii: true }, category_scores: { pii: 0.7 } };

let at: LocalStage;
beforeAll(async () => {
  at = await staged(
    {
      "POST /openai/v1/moderations": json({ id: "modr-1", model: "x", results: [VERDICT] }),
      "POST /mistral/v1/moderations": (asked: UpstreamRequest) =>
        json({
          id: "m1",
          model: "x",
          results: [asked.json().input].flat().map(() => OTHER),
          usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 },
        }),
      "GET *": json({
        data: [{ id: "omni-moderation-latest" }, { id: "mistral-moderation-latest" }],
      }),
    },
    (up) => `
store: { use: memory }
frontends: [{ use: moderations, with: { default: openai/omni-moderation-latest } }, models]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digest(KEYS.alice)}" }
        - { id: narrow, digest: "${digest(KEYS.narrow)}", models: ["demo/*"] }
        - { id: poor, digest: "${digest(KEYS.poor)}", limits: [usd=0.0000001/total] }
  - zdr
  - limits
  - usage
providers:
  demo: { use: demo }
  openai:
    use: openai
    with: { api_key: k, base_url: "${up}/openai/v1" }
    models: { omni-moderation-latest: { kind: moderation, price: free }, bare-moderation: { kind: moderation } }
  mistral:
    use: mistral
    with: { api_key: k, base_url: "${up}/mistral/v1" }
    models: { mistral-moderation-latest: { kind: moderation, price: { input: "0.10" } } }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.forget());

const client = (apiKey: string = KEYS.alice) =>
  new OpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey, maxRetries: 0 });
const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code }) => ({ status, code }),
  );
async function last(): Promise<any> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.findLast((row: any) => row.kind === "settle");
}
const asked = () => at.up.requests.filter(({ method }) => method === "POST");
const MISTRAL = "mistral/mistral-moderation-latest";

describe("a verdict", () => {
  it("comes as its vendor words it, for a request that names no model too", async () => {
    for (const more of [{}, { model: "openai/omni-moderation-latest" }]) {
      const got: any = await client().moderations.create({ input: "I want to hurt them", ...more });
      expect(got).toEqual({
        id: "modr-1",
        model: "openai/omni-moderation-latest",
        results: [VERDICT],
      });
      expect(asked().at(-1)!.json()).toEqual({
        input: "I want to hurt them",
        model: "omni-moderation-latest",
      });
      // It costs nothing where the operator says so.
      expect(await last()).toMatchObject({ state: "exact", usage: { requests: 1 }, costNano: "0" });
    }
  });

  it("Mistral's is not mapped to other categories, and is billed by what was read", async () => {
    const got: any = await client().moderations.create({ model: MISTRAL, input: ["a", "b"] });
    expect(got.results).toEqual([OTHER, OTHER]);
    expect(await last()).toMatchObject({ state: "exact", usage: { input: 9 }, costNano: "900" });
  });

  it("without a price is counted, and unpriced", async () => {
    await client().moderations.create({ model: "openai/bare-moderation", input: "a" });
    const row = await last();
    expect(row).toMatchObject({ state: "unpriced", usage: { requests: 1 } });
    expect(row.costNano ?? null).toBeNull();
  });

  it("on pictures is not asked of a model that reads texts", async () => {
    const input = [{ type: "image_url", image_url: { url: "https://e.example/a.png" } }] as const;
    await client().moderations.create({ input: [...input] });
    expect(asked()).toHaveLength(1);
    expect(
      await raised(client().moderations.create({ model: MISTRAL, input: [...input] })),
    ).toMatchObject({
      status: 400,
      code: "unsupported_input",
    });
    expect(asked()).toHaveLength(1);
  });

  it("that is none is a 502", async () => {
    at.up.script({ "POST /mistral/v1/moderations": json({ results: [] }) });
    expect(await raised(client().moderations.create({ model: MISTRAL, input: "a" }))).toMatchObject(
      {
        status: 502,
      },
    );
  });
});

it("is refused by key, by budget and under Service-ZDR", async () => {
  expect(await raised(client(KEYS.narrow).moderations.create({ input: "a" }))).toMatchObject({
    status: 403,
  });
  const poor = client(KEYS.poor).moderations.create({ model: MISTRAL, input: "a ".repeat(500) });
  expect(await raised(poor)).toMatchObject({ status: 429, code: "insufficient_quota" });
  const zdr = { headers: { "service-zdr": "required" } };
  expect(await raised(client().moderations.create({ input: "a" }, zdr))).toMatchObject({
    status: 403,
  });
  expect(asked()).toEqual([]);
  await client().moderations.create({ model: "demo/moderate", input: "a" }, zdr);
});

it("demo/moderate flags what names a category; lists say what it is for", async () => {
  const got = await client().moderations.create({
    model: "demo/moderate",
    input: ["a walk", "pure violence"],
  });
  expect(got.results.map(({ flagged }) => flagged)).toEqual([false, true]);
  const headers = { authorization: `Bearer ${KEYS.alice}` };
  const res = await fetch(`${at.gateway.url}/v1/models?kind=moderation`, { headers });
  const ids = ((await res.json()) as any).data.map(({ id }: any) => id);
  expect(ids).toEqual(expect.arrayContaining(["demo/moderate", MISTRAL]));
});
