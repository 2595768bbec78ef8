// What each part of a plugin may have, by name. The contract's types say which: a name too many or too few here does not
// compile. A member whose name is none of them would never be called, and no type says so to an author who writes JavaScript.
import { nearest } from "../lib/text.ts";
import type { Frontend, FrontendDef, RouteAddress, ServeRoute, WalkRoute } from "./frontend.ts";
import type { Hooks, MiddlewareDef, MiddlewareRoutes } from "./middleware.ts";
import type { Observer, ObserverDef } from "./observer.ts";
import type { Commands, Needs } from "./plugin.ts";
import type { NativeEndpoint, Provider, ProviderDef, WireEndpoint } from "./provider.ts";
import type { Store } from "./store.ts";
import type { StoreDef } from "./store-definition.ts";

type Names<T> = { readonly [K in keyof Required<T>]: true };

const PLUGIN = {
  api: true,
  since: true,
  name: true,
  summary: true,
  stability: true,
  unchecked: true,
  options: true,
  needs: true,
  check: true,
  setup: true,
} as const;

/** Of a definition's `needs`. */
export const NEEDS = {
  origins: true,
  metadata: true,
  env: true,
  files: true,
} as const satisfies Names<Needs<never>>;

/** Of a definition, by kind. */
export const DEFINITION = {
  provider: { ...PLUGIN, credential: true, data: true, exceptions: true, facts: true },
  frontend: PLUGIN,
  middleware: { ...PLUGIN, sends: true },
  observer: { ...PLUGIN, sends: true },
  store: PLUGIN,
} as const satisfies {
  provider: Names<ProviderDef>;
  frontend: Names<FrontendDef>;
  middleware: Names<MiddlewareDef>;
  observer: Names<ObserverDef>;
  store: Names<StoreDef>;
};

const COMMANDS = { commands: true } as const satisfies Names<Commands>;

/** Of what `setup` gives, by kind. */
export const MADE = {
  provider: { ...COMMANDS, endpoints: true, models: true, ready: true },
  frontend: { ...COMMANDS, protocol: true, routes: true, fault: true, secret: true },
  middleware: {
    ...COMMANDS,
    admit: true,
    edit: true,
    rewrite: true,
    inspect: true,
    route: true,
    charge: true,
    prepare: true,
    attempt: true,
    event: true,
    watch: true,
    settle: true,
    routes: true,
  },
  observer: {
    ...COMMANDS,
    clients: true,
    seen: true,
    turnedAway: true,
    billed: true,
    told: true,
    end: true,
    routes: true,
  },
  store: {
    ...COMMANDS,
    lease: true,
    open: true,
    apply: true,
    key: true,
    keys: true,
    entries: true,
    totals: true,
    accounts: true,
    audit: true,
    counted: true,
    price: true,
    verify: true,
    shared: true,
    size: true,
    instances: true,
    crossings: true,
    handsOver: true,
    keeping: true,
    moving: true,
  },
} as const satisfies {
  provider: Names<Provider & Commands>;
  frontend: Names<Frontend & Commands>;
  middleware: Names<Hooks & MiddlewareRoutes & Commands>;
  observer: Names<Observer & Commands>;
  store: Names<Store & Commands>;
};

const ENDPOINT = {
  protocol: true,
  paths: true,
  prepare: true,
  affinity: true,
  base: true,
  origins: true,
  auth: true,
  headers: true,
  serves: true,
  streams: true,
  can: true,
  data: true,
  kind: true,
  run: true,
  count: true,
} as const satisfies Names<WireEndpoint> & Names<NativeEndpoint>;

const ROUTE = {
  method: true,
  path: true,
  op: true,
  name: true,
  protocol: true,
  protocols: true,
  body: true,
  read: true,
  on: true,
  role: true,
  open: true,
  serve: true,
} as const satisfies Names<WalkRoute> &
  Names<Extract<ServeRoute, { body: "bytes" }>> &
  Names<RouteAddress>;

/** A member that nothing calls, and the one that was probably meant. */
export interface UnknownMember {
  readonly name: string;
  readonly near: string | undefined;
}

/**
 * The first member that is none of `names`. `all`: any such member counts. Otherwise only a slip of the finger does: an
 * older gateway meets members that a newer contract has added, and a class has methods of its own.
 */
export function strangerIn(part: object, names: object, all = false): UnknownMember | undefined {
  const known = Object.keys(names);
  for (const [name, own] of membersOf(part)) {
    if (Object.hasOwn(names, name)) continue;
    const near = nearest(name, known);
    if (near !== undefined && near in part) continue;
    if (near !== undefined || (all && own)) return { name, near };
  }
  return undefined;
}

/** Own members, and methods of its class. Names with a ~ are a host's own marks. */
function* membersOf(part: object): Generator<readonly [name: string, own: boolean]> {
  for (const name of Object.keys(part)) if (!name.startsWith("~")) yield [name, true];
  for (
    let proto: unknown = Object.getPrototypeOf(part);
    typeof proto === "object" && proto !== null && proto !== Object.prototype;
    proto = Object.getPrototypeOf(proto)
  )
    for (const name of Object.getOwnPropertyNames(proto))
      if (name !== "constructor" && !/^[#_~]/.test(name)) yield [name, false];
}

/** Of what a setup gave: which part has a member that nothing calls. A hook that is not called protects nothing, so any counts. */
export function strangerMade(
  kind: keyof typeof MADE,
  made: object,
): (UnknownMember & { readonly part: string }) | undefined {
  const stranger = strangerIn(made, MADE[kind], kind === "middleware");
  if (stranger) return { part: kind === "middleware" ? "hook" : "member", ...stranger };
  const { endpoints, routes } = made as { endpoints?: unknown; routes?: unknown };
  const inside = (list: unknown, names: object, part: string) => {
    for (const each of Array.isArray(list) ? (list as unknown[]) : []) {
      const found = typeof each === "object" && each !== null ? strangerIn(each, names) : undefined;
      if (found) return { part, ...found };
    }
    return undefined;
  };
  if (kind === "provider") return inside(endpoints, ENDPOINT, "member of an endpoint");
  return inside(routes, ROUTE, "member of a route");
}
