// Moderations through a whole gateway: each vendor's verdict as the vendor words it, by OpenAI's SDK, and one row a request.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { operating, raised, type Operating } from "./stage.ts";
import { OTHER_VERDICT, VERDICT } from "./vendors.ts";

let at: Operating;
beforeAll(async () => void (at = await operating()));
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const last = async () => (await at.rows()).at(-1);
const MISTRAL = "mistral/mistral-moderation-latest";

describe("a verdict", () => {
  it("comes as its vendor words it, for a request that names no model too", async () => {
    for (const more of [{}, { model: "openai/omni-moderation-latest" }]) {
      const got: any = await at
        .client()
        .moderations.create({ input: "I want to hurt them", ...more });
      expect(got).toEqual({
        id: "modr-1",
        model: "openai/omni-moderation-latest",
        results: [VERDICT],
      });
      expect(at.asked().at(-1)!.json()).toEqual({
        input: "I want to hurt them",
        model: "omni-moderation-latest",
      });
      // It costs nothing where the operator says so.
      expect(await last()).toMatchObject({ state: "exact", usage: { requests: 1 }, costNano: "0" });
    }
  });

  it("Mistral's is not mapped to other categories, and is billed by what was read", async () => {
    const got: any = await at.client().moderations.create({ model: MISTRAL, input: ["a", "b"] });
    expect(got.results).toEqual([OTHER_VERDICT, OTHER_VERDICT]);
    expect(await last()).toMatchObject({ state: "exact", usage: { input: 9 }, costNano: "900" });
  });

  it("on pictures is not asked of a model that reads texts", async () => {
    const input = [{ type: "image_url", image_url: { url: "https://e.example/a.png" } }] as const;
    await at.client().moderations.create({ input: [...input] });
    expect(at.asked()).toHaveLength(1);
    expect(
      await raised(at.client().moderations.create({ model: MISTRAL, input: [...input] })),
    ).toMatchObject({
      status: 400,
      code: "unsupported_input",
    });
    expect(at.asked()).toHaveLength(1);
  });
});

it("demo/moderate flags what names a category", async () => {
  const got = await at.client().moderations.create({
    model: "demo/moderate",
    input: ["a walk", "pure violence"],
  });
  expect(got.results.map(({ flagged }) => flagged)).toEqual([false, true]);
});
