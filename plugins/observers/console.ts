// The web console on the admin listener. Its pages call the commands of the admin API like any
// other client, so no other part of the gateway depends on the console. In the console, a user has
// exactly the permissions of the user's role.
import { defineObserver } from "tollgate/plugin";
import { createPlaygroundProxy } from "./console/playground-proxy.ts";
import { createPlaygroundSockets } from "./console/playground-sockets.ts";
import { createPageServer } from "./console/page-server.ts";

/** Path prefix of the console's pages. */
const BASE_PATH = "/console";

export default defineObserver({
  api: 1,
  name: "console",
  summary: "Serve the web console at /console of the admin listener",
  stability: "beta",
  sends: "nowhere",
  setup(_options, ctx) {
    const pages = createPageServer(BASE_PATH, ctx);
    const sockets = createPlaygroundSockets(ctx);
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
          // Each request is authorized by the credential of its sender, so an account's admin
          // cannot reach other accounts.
          allowAccountAdmins: true,
          body: "json",
          handle: createPlaygroundProxy(ctx),
        },
        {
          method: "POST",
          path: `${BASE_PATH}/socket`,
          role: "viewer",
          allowAccountAdmins: true,
          body: "json",
          handle: sockets.open,
        },
        {
          method: "POST",
          path: `${BASE_PATH}/socket/send`,
          role: "viewer",
          allowAccountAdmins: true,
          body: "json",
          handle: sockets.send,
        },
      ],
    };
  },
});
