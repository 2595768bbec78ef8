// examples/require-team.ts
import { defineMiddleware, fail } from "tollgate/plugin";

export default defineMiddleware({
  api: 1,
  name: "require-team",
  summary: "Rejects requests without the header x-team",
  sends: "nowhere",
  setup: () => ({
    admit(x) {
      if (!x.headers["x-team"]) fail("invalid", "Missing header x-team: the name of your team.");
    },
  }),
});
