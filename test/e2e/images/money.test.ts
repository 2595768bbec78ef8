// Cost of images: one row per request, with the counts of the response, by the unit of the provider
// and its price.
import { jsonResponse } from "tollgate/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { B64, list, studio, type Studio } from "./studio.ts";

let s: Studio;
beforeAll(async () => {
  s = await studio({
    hosts: ["openai", "google", "recraft", "bfl", "demo"],
    store: "sqlite",
    routes: {
      "GET /painter/v1/models": list("by-the-pixel", "by-quality", "unheard-of"),
      "POST /painter/v1/images/generations": (asked) =>
        jsonResponse({
          created: 1,
          data: Array.from({ length: asked.json().n ?? 1 }, () => ({ b64_json: B64 })),
        }),
    },
    providers: (up) => `  painter:
    use: openai-compatible
    with: { base_url: "${up}/painter/v1", images: ["*"] }
    models:
      by-the-pixel: { price: { megapixels: "0.5" } }
      by-quality:
        price:
          images: "0.01"
          variants:
            - { unit: images, usd: "0.04", quality: high }
            - { unit: images, usd: "0.09", quality: high, size: 1536x1024 }
`,
  });
});
afterAll(() => s[Symbol.asyncDispose]());

/** The rows of the last request. */
async function rows() {
  const { items } = (await s.gateway.ask("ledger.entries", { limit: 1_000 })) as any;
  const last = items.at(-1).request;
  const amount = (text: string | null | undefined) => (text == null ? text : Number(text));
  return (items as any[])
    .filter(({ request }) => request === last)
    .map(({ kind, state, usage, costNano, upstreamCostNano }) => ({
      kind,
      state,
      usage,
      cost: amount(costNano),
      upstream: amount(upstreamCostNano),
    }));
}
const present = (usage: object) =>
  Object.fromEntries(Object.entries(usage).filter(([, count]) => count));

const FORMS = [
  ["bytes as they come", {}],
  ["an address", { response_format: "url" }],
] as const;

it.each([
  // $5 and $30 a million.
  ["openai/gpt-image-2", {}, { input: 9, image_out: 1_000 }, "exact", 30_045_000],
  ["google/gemini-3-pro-image", {}, { input: 5, image_out: 1_120 }, "exact", 134_410_000],
  ["recraft/recraftv3", {}, { images: 1, megapixels: 0.000768 }, "exact", 40_000_000],
  ["painter/by-the-pixel", { n: 3 }, { images: 3, megapixels: 0.002304 }, "exact", 1_152_000],
  ["painter/by-quality", { n: 2 }, { images: 2, megapixels: 0.001536 }, "exact", 20_000_000],
  [
    "painter/by-quality",
    { quality: "high" },
    { images: 1, megapixels: 0.000768 },
    "exact",
    40_000_000,
  ],
  [
    "painter/by-quality",
    { quality: "high", size: "1536x1024" },
    { images: 1, megapixels: 0.000768 },
    "exact",
    90_000_000,
  ],
  ["painter/unheard-of", { n: 2 }, { images: 2, megapixels: 0.001536 }, "unpriced", null],
  ["bfl/flux-pro-1.1", {}, { images: 1, megapixels: 0.000768 }, "exact", 40_000_000],
  ["demo/image", { size: "100x50" }, { images: 1, megapixels: 0.005 }, "exact", 0],
])("%s %j: %j, %s, %s", async (model, more: object, usage: any, state, cost) => {
  for (const [form, wanted] of FORMS) {
    const made: any = await s
      .client()
      .images.generate({ model, prompt: "A harbour", ...more, ...wanted });
    const [reserve, settle, ...others] = await rows();
    expect([reserve!.kind, settle!.kind, others], form).toEqual(["reserve", "settle", []]);
    // A URL from the provider is not fetched, so the size of its image is unknown.
    const blind = form !== FORMS[0][0] && made.data[0].url.startsWith(s.up.url);
    const { megapixels, ...rest } = usage;
    expect(present(settle!.usage), form).toEqual(
      blind ? rest : { ...rest, ...(megapixels && { megapixels }) },
    );
    expect([settle!.state, settle!.cost], form).toEqual([state, cost]);
    if (model.startsWith("bfl/")) expect(settle!.upstream).toBe(40_000_000);
    // If tokens were counted, the client reads the same counts. If images were counted, it has
    // them.
    if (usage.image_out)
      expect(made.usage).toMatchObject({
        input_tokens: usage.input,
        output_tokens: usage.image_out,
        total_tokens: usage.input + usage.image_out,
      });
    else {
      expect(made.usage).toBeUndefined();
      expect(made.data).toHaveLength(usage.images);
    }
  }
});

it("a stream costs the same as a non-streaming response, and reports the same counts", async () => {
  for (const [model, cost] of [
    ["openai/gpt-image-2", 30_045_000],
    ["recraft/recraftv3", 40_000_000],
  ] as const) {
    const stream = await s.client().images.generate({ model, prompt: "A harbour", stream: true });
    let last: any;
    for await (const event of stream) last = event;
    const settled = (await rows()).filter(({ kind }) => kind === "settle");
    expect(settled.map(({ cost }) => cost)).toEqual([cost]);
    expect(last.usage?.output_tokens).toBe(settled[0]!.usage.image_out);
  }
});

it("a request that reaches no provider costs nothing", async () => {
  s.up.setRoutes({
    "POST /recraft/v1/images/generations": jsonResponse({ error: { message: "no" } }, 400),
  });
  await s
    .client()
    .images.generate({ model: "recraft/recraftv3", prompt: "A harbour" })
    .then(
      () => expect.unreachable(),
      (error) => expect(error.status).toBe(400),
    );
  expect((await rows()).map(({ kind, state, cost }) => [kind, state, cost])).toEqual([
    ["reserve", "open", null],
    ["settle", "void", 0],
  ]);
});
