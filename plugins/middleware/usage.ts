// Adds labels to ledger rows, and provides the operator's usage commands.
import { defineMiddleware } from "tollgate/plugin";

const LABEL_MAX = 64;
const DAY_MS = 86_400_000;

export default defineMiddleware({
  api: 1,
  name: "usage",
  summary: "Record usage and cost by key, model, and label",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      label_headers: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: [],
        description:
          "Request headers to record as labels of a ledger row, up to 64 characters each",
      },
    },
  },
  setup({ label_headers }, ctx) {
    const names = label_headers.map((name) => name.toLowerCase());
    return {
      charge(call) {
        const labels: Record<string, string> = {};
        const own = call.exchange.identity?.labels ?? {};
        for (const name of names) {
          // The holder of a key cannot override labels that the operator set.
          if (Object.hasOwn(own, name)) continue;
          const value = call.exchange.headers[name];
          if (typeof value === "string") labels[name] = value.slice(0, LABEL_MAX);
        }
        return { labels };
      },
      commands: {
        today: {
          summary: "Show the cost of the last 24 hours by key",
          role: "viewer",
          writes: false,
          run: async () =>
            (await ctx.ledger.sumEntries({ by: ["key"], from: Date.now() - DAY_MS })).map((t) => ({
              ...t.by,
              calls: t.calls,
              nano_usd: String(t.costNano),
              unpriced: t.unpriced,
            })),
        },
      },
    };
  },
});
