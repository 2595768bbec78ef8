// Names of the members that each part of a plugin can have. The lists are derived from the types of
// the contract: a missing or additional name does not compile. A member with an unknown name would
// never be called, and plugins in JavaScript get no type error for it.
import { nearest } from "../lib/text.ts";
import type {
  Frontend,
  FrontendDef,
  RouteAddress,
  HandlerRoute,
  PipelineRoute,
  RelaySocketRoute,
  RequestSocketRoute,
} from "./frontend.ts";
import type { Hooks, MiddlewareDef, MiddlewareExtras } from "./middleware.ts";
import type { Observer, ObserverDef } from "./observer.ts";
import type { Commands, Needs } from "./plugin.ts";
import type {
  NativeEndpoint,
  Provider,
  ProviderDef,
  ProtocolEndpoint,
  VideoEndpoint,
} from "./provider.ts";
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

/** Members of a definition's `needs`. */
export const NEEDS_MEMBERS = {
  origins: true,
  metadata: true,
  env: true,
  files: true,
} as const satisfies MemberTable<Needs<never>>;

/** Members of a definition, by kind of plugin. */
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
  store: { ...PLUGIN_MEMBERS, isVolatile: true },
} as const satisfies {
  provider: MemberTable<ProviderDef>;
  frontend: MemberTable<FrontendDef>;
  middleware: MemberTable<MiddlewareDef>;
  observer: MemberTable<ObserverDef>;
  store: MemberTable<StoreDef>;
};

const COMMANDS_MEMBERS = { commands: true } as const satisfies MemberTable<Commands>;

/** Members of the object that `setup` returns, by kind of plugin. */
export const SETUP_RESULT_MEMBERS = {
  provider: { ...COMMANDS_MEMBERS, endpoints: true, listModels: true, checkReady: true },
  frontend: {
    ...COMMANDS_MEMBERS,
    protocol: true,
    routes: true,
    sockets: true,
    jobKinds: true,
    beforeJobEnds: true,
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
    needsFirstKey: true,
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
    jobs: true,
    maintenance: true,
    transfer: true,
  },
} as const satisfies {
  provider: MemberTable<Provider & Commands>;
  frontend: MemberTable<Frontend & Commands>;
  middleware: MemberTable<Hooks & MiddlewareExtras & Commands>;
  observer: MemberTable<Observer & Commands>;
  store: MemberTable<Store & Commands>;
};

const ENDPOINT_MEMBERS = {
  protocol: true,
  paths: true,
  sockets: true,
  batches: true,
  background: true,
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
  videos: true,
} as const satisfies MemberTable<ProtocolEndpoint> &
  MemberTable<NativeEndpoint> &
  MemberTable<VideoEndpoint>;

const ROUTE_MEMBERS = {
  method: true,
  path: true,
  timeoutMs: true,
  actionType: true,
  action: true,
  protocol: true,
  protocols: true,
  body: true,
  readInput: true,
  listener: true,
  role: true,
  allowUnauthenticated: true,
  acceptsClientSecrets: true,
  cookies: true,
  handle: true,
} as const satisfies MemberTable<PipelineRoute> &
  MemberTable<Extract<HandlerRoute, { body: "bytes" }>> &
  MemberTable<RouteAddress>;

const SOCKET_MEMBERS = {
  path: true,
  subprotocols: true,
  actionType: true,
  action: true,
  protocol: true,
  protocols: true,
  body: true,
  readInput: true,
  openSession: true,
  readsFirstMessage: true,
  calls: true,
  acceptsClientSecrets: true,
  readSession: true,
  readModel: true,
} as const satisfies MemberTable<RequestSocketRoute> & MemberTable<RelaySocketRoute>;

/** A member that nothing calls, and the name that was probably intended. */
export interface UnknownMember {
  readonly name: string;
  readonly suggestion: string | undefined;
}

/**
 * Returns the first member that is not in `names`. With `all`, returns any such member. Otherwise,
 * returns only a probable typo. A plugin for a newer contract may have members that are unknown to
 * this gateway, and a class may have additional methods.
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

/**
 * Lists the own members of an object, and the methods of its class. Names that start with ~ are
 * marks set by the host.
 */
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

/**
 * Returns an unknown member in the object that `setup` returned, with the part that contains it.
 * For middleware, every unknown member is an error, because a hook that is never called has no
 * effect.
 */
export function findUnknownSetupMember(
  kind: keyof typeof SETUP_RESULT_MEMBERS,
  made: object,
): (UnknownMember & { readonly part: string }) | undefined {
  const stranger = findUnknownMember(made, SETUP_RESULT_MEMBERS[kind], kind === "middleware");
  if (stranger) return { part: kind === "middleware" ? "hook" : "member", ...stranger };
  const { endpoints, routes, sockets } = made as {
    endpoints?: unknown;
    routes?: unknown;
    sockets?: unknown;
  };
  const inside = (list: unknown, names: object, part: string) => {
    for (const each of Array.isArray(list) ? (list as unknown[]) : []) {
      const found =
        typeof each === "object" && each !== null ? findUnknownMember(each, names) : undefined;
      if (found) return { part, ...found };
    }
    return undefined;
  };
  if (kind === "provider") return inside(endpoints, ENDPOINT_MEMBERS, "member of an endpoint");
  const inRoute = inside(routes, ROUTE_MEMBERS, "member of a route");
  return inRoute ?? inside(sockets, SOCKET_MEMBERS, "member of a socket route");
}
