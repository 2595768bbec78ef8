// Token counts: units that do not overlap and add up to the reported total, whatever the backend's
// convention is.
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { inputTokens, outputTokens } from "../../../src/model/usage.ts";
import { usageOf, usageTo } from "../../../src/protocols/chat-completions/usage.ts";

const n = fc.nat({ max: 100_000 });

describe("counts", () => {
  test("match the reference vector", () => {
    const wire = {
      prompt_tokens: 1200,
      completion_tokens: 100,
      total_tokens: 1300,
      prompt_tokens_details: { cached_tokens: 900, cache_write_tokens: 200 },
      completion_tokens_details: { reasoning_tokens: 60 },
    };
    const units = { input: 100, cache_read: 900, cache_write_30m: 200, output: 100, reasoning: 60 };
    expect(usageOf(wire, {})).toEqual(units);
    expect(usageTo(units)).toEqual(wire);
    expect(
      usageTo({
        input: 100,
        cache_read: 900,
        cache_write_5m: 150,
        cache_write_1h: 50,
        output: 100,
        reasoning: 60,
      }),
    ).toMatchObject({
      prompt_tokens: 1200,
      prompt_tokens_details: { cached_tokens: 900, cache_write_tokens: 200 },
    });
  });

  test("add up when encoded again, and reasoning is never outside the output", () => {
    fc.assert(
      fc.property(n, n, n, n, n, n, (input, read, written, output, thought, heard) => {
        const prompt = input + read + written;
        const wire = {
          prompt_tokens: prompt,
          completion_tokens: output,
          total_tokens: prompt + output,
          prompt_tokens_details: {
            cached_tokens: read,
            cache_write_tokens: written,
            audio_tokens: heard,
          },
          completion_tokens_details: { reasoning_tokens: thought },
        };
        const usage = usageOf(wire, {})!;
        expect(inputTokens(usage)).toBe(prompt);
        expect(outputTokens(usage)).toBe(output);
        expect(usage.reasoning!).toBeLessThanOrEqual(output);
        for (const count of Object.values(usage)) expect(count).toBeGreaterThanOrEqual(0);
        // Our report equals the received one, and is decoded to the same counts.
        const told = usageTo(usage);
        expect(told).toMatchObject({
          prompt_tokens: prompt,
          completion_tokens: output,
          total_tokens: prompt + output,
        });
        expect(usageOf(told, {})).toEqual(usage);
      }),
    );
  });

  test.each([
    [
      "DeepSeek",
      {
        prompt_tokens: 25,
        completion_tokens: 5,
        prompt_cache_hit_tokens: 16,
        prompt_cache_miss_tokens: 9,
      },
      {},
      { input: 9, cache_read: 16, output: 5 },
    ],
    [
      "Moonshot",
      { prompt_tokens: 20, completion_tokens: 5, cached_tokens: 8 },
      {},
      { input: 12, cache_read: 8, output: 5 },
    ],
    [
      "Mistral",
      { prompt_tokens: 20, completion_tokens: 5, num_cached_tokens: 8 },
      {},
      { input: 12, cache_read: 8, output: 5 },
    ],
    [
      "Alibaba",
      {
        prompt_tokens: 100,
        completion_tokens: 5,
        prompt_tokens_details: {
          cached_tokens: 10,
          cache_creation_input_tokens: 60,
          cache_type: "ephemeral",
        },
      },
      { cacheWriteTtl: "5m" as const },
      { input: 30, cache_read: 10, cache_write_5m: 60, output: 5 },
    ],
    [
      "more cached than prompted",
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 105,
        prompt_tokens_details: { cached_tokens: 90 },
      },
      {},
      { input: 10, cache_read: 90, output: 5 },
    ],
    [
      "reasoning beside the completion",
      {
        prompt_tokens: 10,
        completion_tokens: 5,
        total_tokens: 45,
        completion_tokens_details: { reasoning_tokens: 30 },
      },
      {},
      { input: 10, output: 35, reasoning: 30 },
    ],
    [
      "reasoning beside it, by its own admission",
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, reasoning_tokens: 30 },
      { reasoningNotInOutput: true },
      { input: 10, output: 35, reasoning: 30 },
    ],
    [
      "two lives of a cache",
      {
        prompt_tokens: 50,
        completion_tokens: 1,
        prompt_tokens_details: {
          cache_write_tokens: 30,
          cache_write_tokens_details: { ttl_30m_tokens: 10, ttl_12h_tokens: 20 },
        },
      },
      {},
      { input: 20, cache_write_30m: 10, cache_write_12h: 20, output: 1 },
    ],
  ])("%s", (_, wire, dialect, units) => expect(usageOf(wire, dialect)).toEqual(units));

  test.each([
    [{ prompt_tokens: -1, completion_tokens: 5 }],
    [{ prompt_tokens: 5, completion_tokens: 1e10 }],
    [{ prompt_tokens: 5 }],
    [{ prompt_tokens: "5", completion_tokens: 5 }],
    [{ prompt_tokens: Number.NaN, completion_tokens: 5 }],
  ])("%j is not a report", (wire) => expect(usageOf(wire as never, {})).toBeUndefined());
});
