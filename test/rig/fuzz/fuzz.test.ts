import { expect, it } from "vitest";
import { shrunk, spelled, read } from "./input.ts";
import { fuzz } from "./fuzz.ts";

// The long form checks how long the event loop is blocked.
it("hostile bytes, bodies, and responses cause errors, and no request is smuggled", async () => {
  const { wrong, counts } = await fuzz({ http: 800, json: 800, sse: 800, seed: 7 });
  expect(wrong.filter((line) => !line.includes("the loop was held"))).toEqual([]);
  expect(Number(counts["smuggling"])).toBeGreaterThanOrEqual(60);
}, 240_000);

it.each([
  ["throws", /^json: 5\d\d .*planted[^]*--replay json:/],
  ["holds", /^the loop was held for (\d{4}|[3-9]\d\d) ms/],
  ["opens", /^\d{3,} more descriptors are open/],
  ["keeps", /^\d{2,} MB more are in use/],
] as const)(
  "a plugin that %s sometimes is detected",
  async (mutant, found) => {
    const less = { http: 0, json: 100, sse: 0, smuggling: false, settles: 1 };
    const { wrong } = await fuzz({ ...less, seed: 7, mutant });
    expect(wrong.filter((line) => found.test(line))).not.toEqual([]);
  },
  120_000,
);

it("a failing case is minimized, and printed so that it can be repeated", async () => {
  const input = {
    base: 3,
    edits: [
      [1, 2, 3],
      [4, 5, 6],
      [7, 8, 9],
    ],
  } as const;
  const least = await shrunk(input, async ({ edits }) =>
    edits.some(([operator]) => operator === 4),
  );
  expect(least).toEqual({ base: 3, edits: [[4, 5, 6]] });
  expect(read(spelled("json", least))).toEqual({ lane: "json", input: least });
});
