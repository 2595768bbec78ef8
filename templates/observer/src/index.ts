import { defineObserver } from "tollgate/plugin";

export default defineObserver({
  api: 1,
  name: "acme",
  summary: "Counts requests by status and logs slow requests",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      slow_ms: {
        type: "integer",
        minimum: 1,
        default: 30_000,
        description: "Duration from which a request is logged as slow, in milliseconds",
      },
    },
  },
  setup({ slow_ms }, ctx) {
    // Kept across reloads: the next config generation receives the same map.
    const counts = ctx.shared("counts", () => new Map<number, number>());
    return {
      // Called with batches of completed requests. No request waits for it.
      onRequests(batch) {
        for (const { id, status, ms } of batch) {
          counts.set(status, (counts.get(status) ?? 0) + 1);
          if (ms > slow_ms) ctx.log.warn({ request: id, ms }, "slow request");
        }
      },
      commands: {
        counts: {
          summary: "Show the number of requests by status",
          run: async () => Object.fromEntries(counts),
        },
      },
    };
  },
});
