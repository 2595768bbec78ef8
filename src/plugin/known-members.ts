// What each part of a plugin may have, by name. The contract's types say which: a name too many or too few here does not
// compile. A member whose name is none of them would never be called, and no type says so to an author who writes JavaScript.
import { nearest } from "../lib/text.ts";
import type {
  Frontend,
  FrontendDef,
  RouteAddress,
  HandlerRoute,
  PipelineRoute,
} from "./frontend.ts";
import type { Hooks, MiddlewareDef, MiddlewareRoutes } from "./middleware.ts";
import type { Observer, ObserverDef } from "./observer.ts";
import type { Commands, Needs } from "./plugin.ts";
import type { NativeEndpoint, Provider, ProviderDef, ProtocolEndpoint } from "./provider.ts";
import type { Store } from "./store/store.ts";
import type { StoreDef } from "./store/store-definition.ts";

type MemberTable<T> = { readonly [K in keyof Required<T>]: true };

const PLUGIN_MEMBERS = {
  api: true,
  since: true,
  name: true,
  summary: true,
  stability: true,
  unverified: true,
  options: true,
  needs: true,
  check: true,
  setup: true,
} as const;

/** Of a definition's `needs`. */
export const NEEDS_MEMBERS = {
  origins: true,
  metadata: true,
  env: true,
  files: true,
} as const satisfies MemberTable<Needs<never>>;

/** Of a definition, by kind. */
export const DEFINITION_MEMBERS = {
  provider: {
    ...PLUGIN_MEMBERS,
    credential: true,
    dataPolicy: true,
    dataPolicyExceptions: true,
    facts: true,
  },
  frontend: PLUGIN_MEMBERS,
  middleware: { ...PLUGIN_MEMBERS, sends: true },
  observer: { ...PLUGIN_MEMBERS, sends: true },
  store: PLUGIN_MEMBERS,
} as const satisfies {
  provider: MemberTable<ProviderDef>;
  frontend: MemberTable<FrontendDef>;
  middleware: MemberTable<MiddlewareDef>;
  observer: MemberTable<ObserverDef>;
  store: MemberTable<StoreDef>;
};

const COMMANDS_MEMBERS = { commands: true } as const satisfies MemberTable<Commands>;

/** Of what `setup` gives, by kind. */
export const SETUP_RESULT_MEMBERS = {
  provider: { ...COMMANDS_MEMBERS, endpoints: true, listModels: true, checkReady: true },
  frontend: {
    ...COMMANDS_MEMBERS,
    protocol: true,
    routes: true,
    encodeFault: true,
    extractCredential: true,
  },
  middleware: {
    ...COMMANDS_MEMBERS,
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
    ...COMMANDS_MEMBERS,
    clientAddress: true,
    onRequests: true,
    onRejected: true,
    onCharges: true,
    onEvent: true,
    flush: true,
    routes: true,
  },
  store: {
    ...COMMANDS_MEMBERS,
    lease: true,
    open: true,
    apply: true,
    findKey: true,
    listKeys: true,
    listEntries: true,
    sumEntries: true,
    listAccounts: true,
    audit: true,
    readLimits: true,
    findPrice: true,
    verify: true,
    getOrCreateShared: true,
    readSize: true,
    listInstances: true,
    thresholds: true,
    supportsHandoff: true,
    maintenance: true,
    transfer: true,
  },
} as const satisfies {
  provider: MemberTable<Provider & Commands>;
  frontend: MemberTable<Frontend & Commands>;
  middleware: MemberTable<Hooks & MiddlewareRoutes & Commands>;
  observer: MemberTable<Observer & Commands>;
  store: MemberTable<Store & Commands>;
};

const ENDPOINT_MEMBERS = {
  protocol: true,
  paths: true,
  prepare: true,
  sessionAffinity: true,
  base: true,
  origins: true,
  auth: true,
  headers: true,
  servesModel: true,
  streaming: true,
  can: true,
  dataPolicy: true,
  operation: true,
  run: true,
  countTokens: true,
} as const satisfies MemberTable<ProtocolEndpoint> & MemberTable<NativeEndpoint>;

const ROUTE_MEMBERS = {
  method: true,
  path: true,
  actionType: true,
  action: true,
  protocol: true,
  protocols: true,
  body: true,
  readInput: true,
  listener: true,
  role: true,
  allowUnauthenticated: true,
  handle: true,
} as const satisfies MemberTable<PipelineRoute> &
  MemberTable<Extract<HandlerRoute, { body: "bytes" }>> &
  MemberTable<RouteAddress>;

/** A member that nothing calls, and the one that was probably meant. */
export interface UnknownMember {
  readonly name: string;
  readonly suggestion: string | undefined;
}

/**
 * The first member that is none of `names`. `all`: any such member counts. Otherwise only a slip of the finger does: an
 * older gateway meets members that a newer contract has added, and a class has methods of its own.
 */
export function findUnknownMember(
  part: object,
  names: object,
  all = false,
): UnknownMember | undefined {
  const known = Object.keys(names);
  for (const [name, own] of listMembers(part)) {
    if (Object.hasOwn(names, name)) continue;
    const near = nearest(name, known);
    if (near !== undefined && near in part) continue;
    if (near !== undefined || (all && own)) return { name, suggestion: near };
  }
  return undefined;
}

/** Own members, and methods of its class. Names with a ~ are a host's own marks. */
function* listMembers(part: object): Generator<readonly [name: string, own: boolean]> {
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
export function findUnknownSetupMember(
  kind: keyof typeof SETUP_RESULT_MEMBERS,
  made: object,
): (UnknownMember & { readonly part: string }) | undefined {
  const stranger = findUnknownMember(made, SETUP_RESULT_MEMBERS[kind], kind === "middleware");
  if (stranger) return { part: kind === "middleware" ? "hook" : "member", ...stranger };
  const { endpoints, routes } = made as { endpoints?: unknown; routes?: unknown };
  const inside = (list: unknown, names: object, part: string) => {
    for (const each of Array.isArray(list) ? (list as unknown[]) : []) {
      const found =
        typeof each === "object" && each !== null ? findUnknownMember(each, names) : undefined;
      if (found) return { part, ...found };
    }
    return undefined;
  };
  if (kind === "provider") return inside(endpoints, ENDPOINT_MEMBERS, "member of an endpoint");
  return inside(routes, ROUTE_MEMBERS, "member of a route");
}
