// What keys may use that have no such limit of their own, and how much a budget sets aside. A declaration: the store takes all
// limits and the reserve row in one step. A key's own limits are the host's to count.
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
      const own = who.limits?.some((l) => l.unit === "concurrent");
      if (!own && concurrent !== undefined) x.occupy(`key:${who.id}`, concurrent);
    },
    charge(call) {
      const who = call.exchange.identity;
      if (!who) return undefined;
      const limits: Limit[] = [];
      const add = (unit: Limit["unit"], max: number | undefined, per: Limit["per"]) => {
        if (max !== undefined && !who.limits?.some((l) => l.unit === unit))
          limits.push({ scope: `key:${who.id}`, unit, max, per });
      };
      // A second attempt is the same request: it is not counted as one more.
      if (call.n === 1) add("requests", rpm, "minute");
      add("concurrent", concurrent, "open");
      return { limits, hold };
    },
  }),
});
