// Checks with texts that a store does not control: provider IDs, client text, and paths.
import assert from "node:assert/strict";
import { reserveCommand, settleCommand, type Law } from "./fixtures.ts";

/** Any text must be stored and found again. */
export const textLaws: readonly Law[] = [
  [
    "text from upstreams and clients may be arbitrary and can be stored and searched",
    async (store) => {
      const odd = ["\0", "a\0b", "\uD800", "'\"\\", "%00", "{}", "NULL", ""];
      for (const [i, upstreamId] of odd.entries()) {
        const labels = { [`n${upstreamId}`]: upstreamId };
        await store.apply([
          reserveCommand(`a${i}`, { labels }),
          settleCommand(`a${i}`, { upstreamId }),
        ]);
        const { items } = await store.listEntries({ upstreamId });
        assert.ok(
          items.some(({ attempt }) => attempt === `a${i}`),
          JSON.stringify(upstreamId),
        );
      }
      for (const text of odd) {
        for (const one of ["key", "account", "attempt", "provider", "model", "credential"] as const)
          assert.deepEqual((await store.listEntries({ [one]: text })).items, []);
        await store.listEntries({ label: text });
        await store.sumEntries({ by: ["key"], label: text });
        assert.equal(await store.findKey(text), undefined);
        await store.listKeys({ after: text });
      }
      assert.deepEqual((await store.verify?.()) ?? [], []);
    },
  ],
];
