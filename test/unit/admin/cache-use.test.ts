// The report of `tollgate caches`.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { summarizeCaches, summarizeChanges } from "../../../src/admin/commands/cache-use.ts";

const row = (key: string, model: string, usage: object, calls = 1) => ({
  by: { key, model, credential: "main" },
  calls,
  usage,
});

it("adds up models, and counts writes of which nothing was read", () => {
  expect(
    summarizeCaches(
      [
        row("a", "m1", { input: 10, cache_read: 80, cache_write_5m: 10 }, 2),
        row("a", "m2", { input: 5, cache_write_5m: 20, cache_write_1h: 7 }),
        row("b", "m1", { input: 1_000 }),
      ],
      { dimension: "key" },
    ),
  ).toEqual([
    { name: "b", calls: 1, input: 1_000, read: 0, written: 0, unread: 0 },
    { name: "a", calls: 3, input: 132, read: 80, written: 37, unread: 27 },
  ]);
});

it("groups by the members of a scope", () => {
  const rows = ["session=s1", "session=s2", "team=web", ""].map((label) => ({
    by: { label, model: "m", credential: "c" },
    calls: 1,
    usage: { input: 1 },
  }));
  const found = summarizeCaches(rows, { dimension: "label", prefix: "session=" });
  expect(found.map(({ name }) => name)).toEqual(["s1", "s2"]);
});

it("law: no call is lost, and reads and unread writes are parts of the input", () => {
  const count = fc.nat(1_000);
  const rows = fc.array(
    fc
      .record({
        key: fc.constantFrom("a", "b"),
        model: fc.constantFrom("m1", "m2"),
        input: count,
        cache_read: count,
        cache_write_5m: count,
      })
      .map(({ key, model, ...usage }) => row(key, model, usage)),
  );
  fc.assert(
    fc.property(rows, (given) => {
      const found = summarizeCaches(given, { dimension: "key" });
      expect(found.reduce((sum, { calls }) => sum + calls, 0)).toBe(given.length);
      for (const { input, read, written, unread } of found) {
        expect(read + written).toBeLessThanOrEqual(input);
        expect(unread).toBeLessThanOrEqual(written);
      }
    }),
  );
});

const changed = (key: string, labels: object, calls = 1) => ({
  by: { key, labels: JSON.stringify(labels) },
  calls,
});

it("shows the most frequent places of the first difference, at most 3 per group", () => {
  const places = ["system 8", "system 9", "tools[0] 1", "messages[2] 64-127"];
  const rows = [
    ...places.map((place, i) =>
      changed("a", { prompt_prefix: "tools", prompt_prefix_at: place, session: "s1" }, i + 1),
    ),
    changed("a", { prompt_prefix: "tools", prompt_prefix_at: "system 8", session: "s2" }, 9),
    changed("b", { prompt_prefix: "messages" }),
    changed("b", { team: "web" }),
  ];
  const byKey = summarizeChanges(rows, { dimension: "key" });
  expect([...byKey]).toEqual([
    [
      "a",
      {
        changed: 19,
        differences: [
          { place: "system 8", calls: 10 },
          { place: "messages[2] 64-127", calls: 4 },
          { place: "tools[0] 1", calls: 3 },
        ],
      },
    ],
    // Without the label of the place, the section is the place.
    ["b", { changed: 1, differences: [{ place: "messages", calls: 1 }] }],
  ]);
  const bySession = summarizeChanges(rows, { dimension: "label", prefix: "session=" });
  expect([...bySession].map(([name, each]) => [name, each.changed])).toEqual([
    ["s1", 10],
    ["s2", 9],
  ]);
});
