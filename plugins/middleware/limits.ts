// What a key may use. A declaration: the store takes all limits and the reserve row in one step.
import { defineMiddleware, type Limit } from "tollgate/plugin";

const count = (description: string) => ({ type: "integer", minimum: 1, description }) as const;

export default defineMiddleware({
  api: 1,
  name: "limits",
  summary: "Rates and budgets",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      rpm: count("Requests a minute, for keys without a request limit of their own"),
      concurrent: count("Requests at once, for keys without such a limit of their own"),
      hold: {
        enum: ["hard", "expected", "soft"],
        default: "expected",
        description:
          "What a budget sets aside for a request: the worst case (and caps the answer at it), the usual, or nothing",
      },
    },
  },
  setup: ({ rpm, concurrent, hold }) => ({
    /** Before the body is read; the store counts exactly, over all processes, when the call is reserved. */
    admit(x) {
      const who = x.identity;
      if (!who) return;
      const own = who.limits?.filter((l) => l.unit === "concurrent") ?? [];
      for (const limit of own) x.occupy(limit.scope, Number(limit.max));
      if (own.length === 0 && concurrent !== undefined) x.occupy(`key:${who.id}`, concurrent);
    },
    charge(call) {
      const who = call.exchange.identity;
      if (!who) return undefined;
      const own = who.limits ?? [];
      const limits: Limit[] = [...own];
      const add = (unit: Limit["unit"], max: number | undefined, per: Limit["per"]) => {
        if (max !== undefined && !own.some((l) => l.unit === unit))
          limits.push({ scope: `key:${who.id}`, unit, max, per });
      };
      add("requests", rpm, "minute");
      add("concurrent", concurrent, "open");
      // A second attempt is the same request: it is not counted as one more.
      return { limits: call.n === 1 ? limits : limits.filter((l) => l.unit !== "requests"), hold };
    },
  }),
});
