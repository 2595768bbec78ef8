// Texts that no store chooses: an upstream's ids, a client's words, what is asked for in a path.
import assert from "node:assert/strict";
import { reserve, settle, type Law } from "./bench.ts";

/** Whatever stands in a text, it is kept and found. */
export const textLaws: readonly Law[] = [
  [
    "what an upstream or a client writes may be any text, and is found and asked for",
    async (store) => {
      const odd = ["\0", "a\0b", "\uD800", "'\"\\", "%00", "{}", "NULL", ""];
      for (const [i, upstreamId] of odd.entries()) {
        const labels = { [`n${upstreamId}`]: upstreamId };
        await store.apply([reserve(`a${i}`, { labels }), settle(`a${i}`, { upstreamId })]);
        const { items } = await store.entries({ upstreamId });
        assert.ok(
          items.some(({ attempt }) => attempt === `a${i}`),
          JSON.stringify(upstreamId),
        );
      }
      for (const text of odd) {
        for (const one of ["key", "account", "attempt", "provider", "model", "credential"] as const)
          assert.deepEqual((await store.entries({ [one]: text })).items, []);
        await store.entries({ label: text });
        await store.totals({ by: ["key"], label: text });
        assert.equal(await store.key(text), undefined);
        await store.keys({ after: text });
      }
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],
];
