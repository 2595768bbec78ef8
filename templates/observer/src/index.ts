import { defineObserver } from "tollgate/plugin";

export default defineObserver({
  api: 1,
  name: "acme",
  summary: "Counts requests by status, and logs the slow ones",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      slow_ms: {
        type: "integer",
        minimum: 1,
        default: 30_000,
        description: "From how many milliseconds on a request is slow",
      },
    },
  },
  setup({ slow_ms }, ctx) {
    // It outlives a reload: the next generation's setup is handed the same map.
    const counts = ctx.shared("counts", () => new Map<number, number>());
    return {
      // In batches, after the answers have left. No request waits for it.
      onRequests(batch) {
        for (const { id, status, ms } of batch) {
          counts.set(status, (counts.get(status) ?? 0) + 1);
          if (ms > slow_ms) ctx.log.warn({ request: id, ms }, "slow");
        }
      },
      commands: {
        counts: { summary: "Requests by status", run: async () => Object.fromEntries(counts) },
      },
    };
  },
});
