// Moderations through a whole gateway: each vendor's result in the vendor's format, by OpenAI's
// SDK, with one row per request.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { operating, raised, type Operating } from "./stage.ts";
import { OTHER_VERDICT, VERDICT } from "./vendors.ts";

let at: Operating;
beforeAll(async () => void (at = await operating()));
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const last = async () => (await at.rows()).at(-1);
const MISTRAL = "mistral/mistral-moderation-latest";

describe("a result", () => {
  it("has the vendor's format, also for a request without a model", async () => {
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
      // It is free if the operator configured this.
      expect(await last()).toMatchObject({ state: "exact", usage: { requests: 1 }, costNano: "0" });
    }
  });

  it("of Mistral is not mapped to other categories, and is billed by its input", async () => {
    const got: any = await at.client().moderations.create({ model: MISTRAL, input: ["a", "b"] });
    expect(got.results).toEqual([OTHER_VERDICT, OTHER_VERDICT]);
    expect(await last()).toMatchObject({ state: "exact", usage: { input: 9 }, costNano: "900" });
  });

  it("for images is not requested from a text model", async () => {
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

it("demo/moderate flags text that names a category", async () => {
  const got = await at.client().moderations.create({
    model: "demo/moderate",
    input: ["a walk", "pure violence"],
  });
  expect(got.results.map(({ flagged }) => flagged)).toEqual([false, true]);
});
