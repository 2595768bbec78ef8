// Everything that comes with Tollgate, by kind and by the name that `use:` says. Imported only when a gateway.yaml
// names it, so that what is not used costs nothing at start.
export const builtin = {
  frontend: {
    images: () => import("./frontends/images.ts"),
    models: () => import("./frontends/models.ts"),
    messages: () => import("./frontends/messages.ts"),
    responses: () => import("./frontends/responses.ts"),
  },
  provider: {
    anthropic: () => import("./providers/anthropic.ts"),
    "anthropic-compatible": () => import("./providers/anthropic-compatible.ts"),
  },
  middleware: {
    auth: () => import("./middleware/auth.ts"),
    limits: () => import("./middleware/limits.ts"),
    usage: () => import("./middleware/usage.ts"),
    zdr: () => import("./middleware/zdr.ts"),
  },
  store: {
    memory: () => import("./stores/memory.ts"),
    sqlite: () => import("./stores/sqlite.ts"),
  },
};
