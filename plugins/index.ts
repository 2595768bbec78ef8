// Everything that comes with Tollgate, by kind and by the name that `use:` says. Imported only when a gateway.yaml
// names it, so that what is not used costs nothing at start.
export const builtin = {
  frontend: {},
  provider: {},
  middleware: {},
  store: {},
};
