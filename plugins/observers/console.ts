// The console: pages for people, on the admin listener. They ask the commands of the admin API as any program does, so that nothing
// depends on them, and what they may is what their reader may.
import { defineObserver } from "tollgate/plugin";
import { createPlaygroundProxy } from "./console/playground-proxy.ts";
import { createPageServer } from "./console/page-server.ts";

/** Its pages' own addresses begin so. */
const BASE_PATH = "/console";

export default defineObserver({
  api: 1,
  name: "console",
  summary: "Pages for people, at /console of the admin listener",
  stability: "beta",
  sends: "nowhere",
  setup(_options, ctx) {
    const pages = createPageServer(BASE_PATH, ctx);
    const home = () => ({ status: 302, headers: { location: BASE_PATH } });
    return {
      routes: [
        { method: "GET", path: "/", allowUnauthenticated: true, handle: home },
        {
          method: "GET",
          path: [BASE_PATH, `${BASE_PATH}/**:rest`],
          allowUnauthenticated: true,
          handle: pages,
        },
        {
          method: "POST",
          path: `${BASE_PATH}/ask`,
          role: "viewer",
          // Every request goes by the key that its sender presents, so it reaches nothing of another account.
          allowAccountAdmins: true,
          body: "json",
          handle: createPlaygroundProxy(ctx),
        },
      ],
    };
  },
});
