// Finds the server of a name, and merges the lists of the servers of a scope.
import type { JsonObject, RequestHead } from "tollgate/plugin";
import { HiddenNames } from "./hidden-names.ts";
import { ClientError, RPC_ERRORS } from "./json-rpc.ts";
import { LIST_MEMBERS } from "./list-entries.ts";
import {
  unknownName,
  type CachedList,
  type ListEntry,
  type MountedServer,
} from "./mounted-server.ts";
import { ownUri, publicName, serverOf, withPublicName } from "./public-names.ts";
import type { Scope } from "./scopes.ts";
import {
  ServerError,
  URL_ELICITATION_REQUIRED,
  type ListKind,
  type ServerItem,
  type ServerMethod,
} from "./tool-server.ts";

/** The server of a request, with the parameters in the server's own names. */
export interface Target {
  readonly server: MountedServer;
  readonly method: ServerMethod;
  readonly params: JsonObject;
  /** The tool of a call. */
  readonly tool: ListEntry | undefined;
}

const PAGE_SIZE = 500;
const MAX_CURSOR_LENGTH = 4_096;

/**
 * Returns the target of a request, without a promise if the server's list is known. Throws the same
 * error for a hidden and for an unknown name.
 */
export function findTarget(
  x: RequestHead,
  scope: Scope,
  method: ServerMethod,
  params: JsonObject,
): Target | Promise<Target> {
  switch (method) {
    case "tools/call":
    case "prompts/get": {
      const kind = method === "tools/call" ? "tools" : "prompts";
      const name = requireText(params["name"], "name");
      return findEntry(x, scope, { kind, name }, ({ server, entry }) => ({
        server,
        method,
        params: { ...params, name: entry.key },
        tool: kind === "tools" ? entry : undefined,
      }));
    }
    case "resources/read": {
      const { server, uri } = findResource(scope, requireText(params["uri"], "uri"));
      return { server, method, params: { ...params, uri }, tool: undefined };
    }
    case "completion/complete": {
      const ref = params["ref"] as JsonObject | undefined;
      if (ref?.["type"] === "ref/prompt") {
        const name = requireText(ref["name"], "ref.name");
        return findEntry(x, scope, { kind: "prompts", name }, (of) => ({
          server: of.server,
          method,
          params: { ...params, ref: { ...ref, name: of.entry.key } },
          tool: undefined,
        }));
      }
      const { server, uri } = findResource(scope, requireText(ref?.["uri"], "ref.uri"));
      return { server, method, params: { ...params, ref: { ...ref, uri } }, tool: undefined };
    }
  }
}

function requireText(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  throw new ClientError(RPC_ERRORS.invalidParams, `${field} must be a string.`);
}

function findEntry(
  x: RequestHead,
  { only, servers, access, capabilities }: Scope,
  { kind, name }: { readonly kind: "tools" | "prompts"; readonly name: string },
  toTarget: (of: { readonly server: MountedServer; readonly entry: ListEntry }) => Target,
): Target | Promise<Target> {
  const what = kind === "tools" ? "tool" : "prompt";
  const of = serverOf(name, false);
  const server = only ?? servers.find((one) => one.name === of);
  if (!server) throw unknownName(what, name);
  if (kind === "prompts" && !access.covers(server.name)) throw unknownName(what, name);
  const find = (list: CachedList): Target => {
    const entry = (only ? list.entries : list.byPublicName).get(name);
    if (!entry || (kind === "tools" && !access.permits(server.name, entry.key)))
      throw unknownName(what, name);
    return toTarget({ server, entry });
  };
  const list = server.list(kind, x, { capabilities, allowStale: true });
  return list instanceof Promise ? list.then(find) : find(list);
}

/** Returns the server of a resource, and its own URI. */
export function findResource(
  { only, servers, access }: Scope,
  uri: string,
): { server: MountedServer; uri: string } {
  const of = serverOf(uri, true);
  const server = only ?? servers.find((one) => one.name === of);
  if (!server || !access.covers(server.name)) throw unknownName("resource", uri);
  return { server, uri: only ? uri : ownUri(server.name, uri) };
}

/** Servers of which the client may use a list. */
export const serversWith = ({ servers, access }: Scope, kind: ListKind): readonly MountedServer[] =>
  kind === "tools" ? servers : servers.filter(({ name }) => access.covers(name));

/**
 * Names of tools of a server that the client may not call. Undefined if the client may not call some
 * tools, and their names are not known because the list cannot be read.
 */
export async function hiddenNames(
  x: RequestHead,
  { access, capabilities }: Scope,
  server: MountedServer,
): Promise<HiddenNames | undefined> {
  if (access.covers(server.name) && server.offersAllTools) return new HiddenNames([]);
  try {
    const list = await server.list("tools", x, { capabilities, allowStale: true });
    return hiddenNamesOf(list, server, access);
  } catch {
    return undefined;
  }
}

const hiddenNamesOf = (
  { allNames, entries }: CachedList,
  { name }: MountedServer,
  access: Scope["access"],
): HiddenNames =>
  new HiddenNames(
    access.covers(name) && entries.size === allNames.length
      ? []
      : allNames.filter((tool) => !entries.has(tool) || !access.permits(name, tool)),
  );

/**
 * Returns a function that removes the names of tools that the client may not call from an error that
 * a server wrote. Undefined if the names of this server are not known.
 */
export async function createErrorCleaner(
  x: RequestHead,
  scope: Scope,
  of: string,
): Promise<(<T extends JsonObject | string>(value: T) => T) | undefined> {
  const servers = serversWith(scope, "tools");
  const found = await Promise.all(servers.map((server) => hiddenNames(x, scope, server)));
  if (servers.some(({ name }, at) => name === of && !found[at])) return undefined;
  const hidden = found.filter((names) => names !== undefined);
  return <T extends JsonObject | string>(value: T): T =>
    hidden.reduce<T>((text, names) => names.removeFromJson(text, { isError: true }), value);
}

/** One page of a merged list. */
export interface ListPage {
  readonly items: readonly ServerItem[];
  readonly nextCursor: string | undefined;
  /** How long the page is valid, in milliseconds. */
  readonly ttlMs: number;
  /** Servers whose entries are missing, because their lists cannot be read. Undefined: none. */
  readonly unavailable: UnavailableServers | undefined;
}

/** Name of the metadata of a list from which servers are missing. */
export const UNAVAILABLE_SERVERS = "tollgate/unavailable_servers";

/** Servers whose lists cannot be read. */
export interface UnavailableServers {
  readonly count: number;
  /** Names of those that the client may use as a whole. A server can have no tool for others. */
  readonly names: readonly string[];
}

/**
 * Returns a page of a list in a fixed order. Throws the error of a server if none can be read. If
 * only some can be read, the page is not valid for any time.
 */
export async function listPage(
  x: RequestHead,
  scope: Scope,
  kind: ListKind,
  cursor: string | undefined,
): Promise<ListPage> {
  const { only, access } = scope;
  const servers = serversWith(scope, kind);
  const results = await Promise.allSettled(
    servers.map(async (server) => {
      const { capabilities } =
        kind === "tools" ? { capabilities: undefined } : await server.describe(x);
      // A server that does not have the list rejects the request for it.
      const has = !capabilities || capabilities[capabilityOf(kind)] !== undefined;
      if (!has) return undefined;
      const list = await server.list(kind, x, { capabilities: scope.capabilities });
      return { list, hidden: await hiddenInList(x, scope, kind, { server, list }) };
    }),
  );
  const items: { key: string; item: ServerItem }[] = [];
  let ttlMs = Infinity;
  let failure: unknown;
  const failed: MountedServer[] = [];
  for (const [at, result] of results.entries()) {
    const server = servers[at]!;
    if (result.status === "rejected") {
      failure ??= result.reason;
      ttlMs = 0;
      if (kind === "tools" && isUnconnected(result.reason)) items.push(connectTool(server.name));
      else failed.push(server);
      continue;
    }
    if (!result.value) continue;
    const { list, hidden } = result.value;
    ttlMs = Math.min(ttlMs, Math.max(0, list.readAt + list.ttlMs - performance.now()));
    for (const { key, item } of list.entries.values()) {
      if (kind === "tools" && !access.permits(server.name, key)) continue;
      const named = only ? item : withPublicName(server.name, kind, item);
      items.push({
        key: only ? key : publicName(server.name, kind, key),
        item: hidden.removeFromJson(named),
      });
    }
  }
  if (failure !== undefined && results.every(({ status }) => status === "rejected")) throw failure;
  const names = failed.map(({ name }) => name).filter((name) => access.covers(name));
  return {
    ...pageOf(items, cursor),
    ttlMs: Number.isFinite(ttlMs) ? Math.floor(ttlMs) : 0,
    unavailable: failed.length > 0 ? { count: failed.length, names } : undefined,
  };
}

/** Names of tools that must not appear in the entries of a list. */
async function hiddenInList(
  x: RequestHead,
  { access, capabilities }: Scope,
  kind: ListKind,
  { server, list }: { readonly server: MountedServer; readonly list: CachedList },
): Promise<HiddenNames> {
  if (kind === "tools") return hiddenNamesOf(list, server, access);
  if (server.offersAllTools) return new HiddenNames([]);
  const tools = await server.list("tools", x, { capabilities, allowStale: true });
  return hiddenNamesOf(tools, server, access);
}

const isUnconnected = (problem: unknown): boolean =>
  problem instanceof ServerError && problem.code === URL_ELICITATION_REQUIRED;

/**
 * The entry of a server whose user has not connected an account. A call of it, as of every tool of
 * the server, asks the user to connect.
 */
function connectTool(server: string): { readonly key: string; readonly item: ServerItem } {
  const name = publicName(server, "tools", "connect");
  const description = `Asks the user to connect an account for ${server}. After that, the tools of ${server} are listed.`;
  return { key: name, item: { name, description, inputSchema: { type: "object" } } };
}

const capabilityOf = (kind: ListKind): string =>
  kind === "resourceTemplates" ? "resources" : LIST_MEMBERS[kind];

function pageOf(
  all: { readonly key: string; readonly item: ServerItem }[],
  cursor: string | undefined,
): Pick<ListPage, "items" | "nextCursor"> {
  all.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const after = cursor === undefined ? undefined : openCursor(cursor);
  const start = after === undefined ? 0 : all.findIndex(({ key }) => key > after);
  const rest = start < 0 ? [] : all.slice(start, start + PAGE_SIZE);
  const hasMore = start >= 0 && start + PAGE_SIZE < all.length;
  return {
    items: rest.map(({ item }) => item),
    nextCursor: hasMore
      ? Buffer.from(`after:${rest.at(-1)!.key}`).toString("base64url")
      : undefined,
  };
}

function openCursor(cursor: string): string {
  const text = cursor.length > MAX_CURSOR_LENGTH ? "" : Buffer.from(cursor, "base64url").toString();
  if (text.startsWith("after:")) return text.slice("after:".length);
  throw new ClientError(RPC_ERRORS.invalidParams, "Invalid cursor. Start again without a cursor.");
}
