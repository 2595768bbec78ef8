// As it was written for Tollgate 0.1. Nothing here is changed: what api 1 promised to it is kept.
import { defineObserver } from "tollgate/plugin";

export default defineObserver({
  api: 1,
  name: "counter",
  summary: "Counts requests by status",
  sends: "nowhere",
  setup(_options, ctx) {
    // It outlives a reload: the next generation's setup is handed the same map.
    const counts = ctx.shared("counts", () => new Map<number, number>());
    return {
      onRequests(batch) {
        for (const { status } of batch) counts.set(status, (counts.get(status) ?? 0) + 1);
      },
      onEvent(notice) {
        ctx.log.info({ notice: notice.type }, "the gateway says");
      },
      // On the admin listener, where gateway.yaml has one, for an admin token of any role.
      routes: [
        {
          method: "GET",
          path: "/counts",
          role: "metrics",
          handle: () => ({ status: 200, body: Object.fromEntries(counts) }),
        },
      ],
      commands: {
        counts: { summary: "Requests by status", run: async () => Object.fromEntries(counts) },
      },
    };
  },
});
