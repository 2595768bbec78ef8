import * as fc from "fast-check";
import { expect, it } from "vitest";
import { RetiringModels } from "../../../src/runtime/services/retiring-models.ts";

const DAY_MS = 86_400_000;

it("logs each retiring model at most once per day, and only shortly before", () => {
  const use = fc.record({
    afterMs: fc.integer({ min: 0, max: 2 * DAY_MS }),
    model: fc.constantFrom("a", "b"),
    inDays: fc.integer({ min: -10, max: 200 }),
  });
  fc.assert(
    fc.property(fc.array(use, { maxLength: 60 }), (uses) => {
      let now = Date.parse("2026-11-20T10:00:00Z");
      const said: { model: string; at: number; days: number }[] = [];
      const log = {
        warn: ({ model, days }: any) => void said.push({ model, days, at: now }),
      };
      const retiring = new RetiringModels(log as never, () => now);
      for (const { afterMs, model, inDays } of uses) {
        now += afterMs;
        const before = said.length;
        const last = said.findLast((line) => line.model === model);
        retiring.recordUse(model, new Date(now + inDays * DAY_MS).toISOString());
        const due = inDays <= 90 && (!last || now - last.at >= DAY_MS);
        expect(said.length - before).toBe(due ? 1 : 0);
        if (due) expect(said.at(-1)).toEqual({ model, days: inDays, at: now });
      }
    }),
  );
});

it("an invalid date is no warning", () => {
  const retiring = new RetiringModels({ warn: () => expect.unreachable() } as never);
  retiring.recordUse("a", "2026-99-99");
});
