// Completions through a whole gateway: passthrough to providers with this protocol, and
// fill-in-the-middle in two vendors' formats; by OpenAI's SDK and the AI SDK, streaming and
// non-streaming, with one exact row each.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { UpstreamRequest } from "tollgate/testing";
import { keyOf, operating, raised, type Operating } from "./stage.ts";
import { COMPLETERS, CONTINUATION, TOKENS } from "./vendors.ts";

let at: Operating;
beforeAll(async () => void (at = await operating()));
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

describe.each(["vllm/base", "deepseek/base", "mistral/codestral-latest", "ollama/qwen-coder"])(
  "%s",
  (model) => {
    const ask = { model, prompt: "Once upon a", suffix: "The end.", max_tokens: 5 } as const;
    const exact = { state: "exact", usage: { input: 4, output: 5 }, costNano: "14000" };

    it("returns the complete text, with the requested suffix", async () => {
      const got = await at.client().completions.create(ask);
      expect(got).toMatchObject({ object: "text_completion", model, usage: TOKENS });
      expect(got.choices).toMatchObject([
        { text: CONTINUATION, index: 0, finish_reason: "length" },
      ]);
      expect(at.asked()[0]!.json().suffix).toBe("The end.");
      expect((await at.rows()).at(-1)).toMatchObject(exact);
    });

    it.each([undefined, { include_usage: true }])(
      "streams, with counts if requested: %j",
      async (stream_options) => {
        const stream = await at.client().completions.create({
          ...ask,
          stream: true,
          ...(stream_options && { stream_options }),
        });
        const chunks = [];
        for await (const chunk of stream) chunks.push(chunk);
        for (const chunk of chunks)
          expect(chunk).toMatchObject({ object: "text_completion", model });
        expect(chunks.map(({ choices }) => choices[0]?.text ?? "").join("")).toBe(CONTINUATION);
        expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual([
          "length",
        ]);
        const told = chunks.filter(({ choices }) => choices.length === 0);
        expect(told.map(({ usage }) => usage)).toEqual(stream_options ? [TOKENS] : []);
        expect((await at.rows()).at(-1)).toMatchObject(exact);
      },
    );

    it("AI SDK", async () => {
      const sdk = createOpenAICompatible({
        name: "team",
        baseURL: `${at.gateway.url}/v1`,
        apiKey: keyOf("alice"),
      });
      const got = await generateText({
        model: sdk.completionModel(model),
        prompt: "Once upon a",
        maxRetries: 0,
      });
      expect(got.text).toBe(CONTINUATION);
    });

    it("a truncated stream is never a complete response", async () => {
      for (const [route, of] of Object.entries(COMPLETERS))
        at.up.setRoutes({
          [route]: (one: UpstreamRequest) => ({
            ...of(one),
            truncation: { after: { pieces: 2 }, how: "close" },
          }),
        });
      let text = "";
      const read = async () => {
        const stream = await at.client().completions.create({ ...ask, stream: true });
        for await (const { choices } of stream) text += choices[0]?.text ?? "";
      };
      await expect(read()).rejects.toThrow();
      expect(CONTINUATION.startsWith(text)).toBe(true);
      expect((await at.rows()).at(-1).state).toBe("estimated");
      at.up.setRoutes(COMPLETERS);
    });
  },
);

it("multiple choices and unknown fields pass if the provider speaks this protocol", async () => {
  const got = await at.client().completions.create({
    model: "vllm/base",
    prompt: "x",
    n: 2,
    min_p: 0.1,
  } as never);
  expect((got as any).choices).toHaveLength(2);
  expect(at.asked()[0]!.json()).toMatchObject({ n: 2, min_p: 0.1 });
  for (const more of [{ n: 2 }, { echo: true }, { prompt: ["a", "b"] }])
    expect(
      (
        await raised(
          at
            .client()
            .completions.create({ model: "mistral/codestral-latest", prompt: "x", ...more }),
        )
      ).status,
    ).toBe(400);
  expect(at.asked()).toHaveLength(1);
});

it("demo/complete returns the same text for the same seed, and no more tokens than asked for", async () => {
  const demo = { model: "demo/complete", prompt: "Once", max_tokens: 6, seed: 1 };
  const one = await at.client().completions.create(demo);
  expect(one.usage!.completion_tokens).toBeLessThanOrEqual(6);
  expect((await at.client().completions.create(demo)).choices[0]!.text).toBe(one.choices[0]!.text);
});
