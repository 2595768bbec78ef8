// Cooldowns and recoveries: one line each, however many processes detect them and however often the
// target fails.
import fc from "fast-check";
import { expect, it } from "vitest";
import { EventLog } from "../../../src/runtime/observers/event-log.ts";

const what = { provider: "up", credential: "default", model: "m" };

it("is logged once when it starts and once when it ends, with dates in place of numbers", () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 40 }), (fails) => {
      const lines: [string, Record<string, unknown>][] = [];
      const say = (fields: Record<string, unknown>, message: string) =>
        void lines.push([message, fields]);
      const log = new EventLog({ warn: say, info: say } as never);
      for (const [i, failed] of fails.entries())
        log.log(
          failed
            ? {
                type: "cooldown_started",
                at: i * 1_000,
                until: i * 1_000 + 5_000,
                reason: "overloaded",
                ...what,
              }
            : { type: "cooldown_ended", at: i * 1_000, ...what },
        );
      // Lines alternate, and the first reports a cooldown.
      const expected = fails.filter((failed, i) => failed !== (i > 0 ? fails[i - 1] : false));
      expect(lines.map(([message]) => /provider unavailable/.test(message))).toEqual(expected);
      for (const [message, { until, seconds }] of lines)
        if (/provider unavailable/.test(message))
          expect(until).toMatch(/^1970-01-01T00:00:\d\d\.\d{3}Z$/);
        else expect(seconds).toBeGreaterThanOrEqual(1);
    }),
  );
});
