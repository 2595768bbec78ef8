// examples/counter.ts
import { defineObserver } from "tollgate/plugin";

export default defineObserver({
  api: 1,
  name: "counter",
  summary: "Counts requests by status",
  sends: "nowhere",
  setup(_options, ctx) {
    // Kept across reloads: the next config generation receives the same map.
    const counts = ctx.shared("counts", () => new Map<number, number>());
    return {
      onRequests(batch) {
        for (const { status } of batch) counts.set(status, (counts.get(status) ?? 0) + 1);
      },
      onEvent(event) {
        ctx.log.info({ event: event.type }, "gateway event");
      },
      // On the admin listener, if gateway.yaml configures one, for admin tokens of every role.
      routes: [
        {
          method: "GET",
          path: "/counts",
          role: "metrics",
          handle: () => ({ status: 200, body: Object.fromEntries(counts) }),
        },
      ],
      commands: {
        counts: {
          summary: "Show the number of requests by status",
          run: async () => Object.fromEntries(counts),
        },
      },
    };
  },
});
