// The console: pages for people, on the admin listener. They ask the commands of the admin API as any program does, so that nothing
// depends on them, and what they may is what their reader may.
import { defineObserver } from "tollgate/plugin";
import { askingBy } from "./console/asking.ts";
import { pagesOf } from "./console/pages.ts";

/** Its pages' own addresses begin so. */
const BASE = "/console";

export default defineObserver({
  api: 1,
  name: "console",
  summary: "Pages for people, at /console of the admin listener",
  stability: "beta",
  sends: "nowhere",
  setup(_options, ctx) {
    const pages = pagesOf(BASE, ctx);
    const home = () => ({ status: 302, headers: { location: BASE } });
    return {
      routes: [
        { method: "GET", path: "/", open: true, serve: home },
        { method: "GET", path: [BASE, `${BASE}/**:rest`], open: true, serve: pages },
        {
          method: "POST",
          path: `${BASE}/ask`,
          role: "viewer",
          // Every request goes by the key that its sender presents, so it reaches nothing of another account.
          accounts: true,
          body: "json",
          serve: askingBy(ctx),
        },
      ],
    };
  },
});
