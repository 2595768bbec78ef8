// Routes that a plugin answers itself: where they are, and which role may ask.
import {
  defineFrontend,
  defineMiddleware,
  defineObserver,
  type ChargeRecord,
  type ObserverRoute,
  type PluginRoute,
  type Role,
  type Route,
} from "tollgate/plugin";
import { is, type Same } from "./same.ts";

is<Same<Role, "metrics" | "viewer" | "operator" | "owner">>();

const serve = () => ({ status: 200, body: { ok: true } });

export const middleware = defineMiddleware({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  setup: () => {
    // The hook and the routes share it.
    let asked = 0;
    return {
      admit: () => void asked++,
      routes: [
        { method: "GET", path: "/asked", handle: () => ({ status: 200, body: asked }) },
        { method: "GET", path: ["/a", "/b"], listener: "admin", role: "viewer", handle: serve },
        { method: "GET", path: "/v1/asked", listener: "public", handle: serve },
        {
          method: "GET",
          path: "/v1/open",
          listener: "public",
          allowUnauthenticated: true,
          handle: serve,
        },
      ],
    };
  },
});
export const observer = defineObserver({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  setup: () => ({ routes: [{ method: "GET", path: "/metrics", role: "metrics", handle: serve }] }),
});
// What is told may be kept and not changed; money is whole, and may be unknown.
export const accountant = defineObserver({
  api: 1,
  name: "x",
  summary: "x",
  sends: "nowhere",
  setup: () => ({
    onCharges(lines) {
      is<Same<typeof lines, readonly ChargeRecord[]>>();
      for (const line of lines) {
        is<Same<typeof line.costNano, bigint | null>>();
        // @ts-expect-error  an unpriced call has no amount
        line.costNano.toString();
        // @ts-expect-error  of a correction nothing is known but its amount
        void line.call.key;
        // @ts-expect-error  a bill is what it is
        line.costNano = 0n;
        for (const { remaining } of line.call?.limits ?? [])
          is<Same<typeof remaining, number | bigint>>();
      }
    },
  }),
});
export const frontend = defineFrontend({
  api: 1,
  name: "x",
  summary: "x",
  setup: () => ({
    routes: [
      { method: "GET", path: "/x", handle: serve },
      { method: "GET", path: "/x", listener: "public", allowUnauthenticated: true, handle: serve },
      { method: "GET", path: "/x", listener: "admin", role: "operator", handle: serve },
    ],
  }),
});

// @ts-expect-error  no such listener
export const where: PluginRoute = { method: "GET", path: "/x", on: "private", handle: serve };
// @ts-expect-error  no such role
export const who: PluginRoute = { method: "GET", path: "/x", role: "boss", handle: serve };
export const both: PluginRoute = {
  method: "GET",
  path: "/",
  listener: "public",
  // @ts-expect-error  roles are the admin listener's; on the public port there are keys
  role: "viewer",
  handle: serve,
};
export const open: PluginRoute = {
  method: "GET",
  path: "/x",
  allowUnauthenticated: true,
  handle: serve,
};
export const page: ObserverRoute = {
  method: "GET",
  path: "/x",
  allowUnauthenticated: true,
  handle: serve,
};
export const half: ObserverRoute = {
  method: "GET",
  path: "/x",
  allowUnauthenticated: true,
  // @ts-expect-error  open to all, or to a role: not both
  role: "viewer",
  handle: serve,
};
export const shut: ObserverRoute = {
  method: "GET",
  path: "/x",
  // @ts-expect-error  it is open, or it does not say so
  allowUnauthenticated: false,
  handle: serve,
};
// @ts-expect-error  only a frontend leads to models
export const walks: PluginRoute = { method: "POST", path: "/x", op: "generate" };
// @ts-expect-error  what an observer knows is not the clients'
export const seen: ObserverRoute = { method: "GET", path: "/x", listener: "public", handle: serve };
// @ts-expect-error  a route without an answer
export const silent: ObserverRoute = { method: "GET", path: "/x" };
// @ts-expect-error  a frontend's routes are public unless they say otherwise, so this one has no role
export const usual: Route = { method: "GET", path: "/x", role: "viewer", handle: serve };
