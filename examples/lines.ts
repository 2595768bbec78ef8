// examples/lines.ts
import { defineFrontend } from "tollgate/plugin";
import { lines } from "./lines-protocol.ts";

export default defineFrontend({
  api: 1,
  name: "lines",
  summary: "POST /lines: accepts a prompt, returns lines of JSON",
  setup: () => ({
    protocol: lines(),
    routes: [
      { method: "POST", path: "/lines", actionType: "generate" },
      {
        method: "GET",
        path: "/lines/health",
        allowUnauthenticated: true,
        handle: () => ({ status: 200, body: { ok: true } }),
      },
    ],
  }),
});
