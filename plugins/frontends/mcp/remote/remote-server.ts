// A remote MCP server over streamable HTTP. The gateway finds out which revision the server speaks,
// and calls it in that revision, whatever revision the client speaks.
import { getFault, type Context, type JsonObject } from "tollgate/plugin";
import { encodeHeaderValue } from "../header-values.ts";
import { isObject, RPC_ERRORS, wrongShape, type RpcRequest } from "../json-rpc.ts";
import { findEntryFlaw, keyOf, LIST_MEMBERS, LIST_METHODS, MAX_ENTRIES } from "../list-entries.ts";
import { isModern, META, REVISIONS, type Revision } from "../revisions.ts";
import {
  GATEWAY_INFO,
  showRevisions,
  toRpcError,
  type RemoteServerSettings,
} from "./remote-settings.ts";
import { post, type PostedResponse } from "./rpc-client.ts";
import { RemoteSessions, type RemoteSession } from "./remote-sessions.ts";
import {
  ServerError,
  type EventFilter,
  type ListKind,
  type ServerCaller,
  type ServerDescription,
  type ServerEvent,
  type ServerItem,
  type ServerList,
  type ServerRequest,
  type ToolServer,
} from "../tool-server.ts";

/** Maximum time of a stream of events without data, in milliseconds. */
const EVENTS_IDLE_MS = 3_600_000;
const MAX_PAGES = 200;
/** Maximum time in which the revision is determined, in milliseconds. */
const MAX_PROBE_MS = 60_000;

/** Statuses with which a server with sessions rejects a request without one. */
const SESSION_STATUSES: ReadonlySet<number> = new Set([400, 404, 405]);

export class RemoteServer implements ToolServer {
  readonly #ctx: Context;
  readonly #settings: RemoteServerSettings;
  readonly #sessions: RemoteSessions;
  /** Undefined until it is determined, and after the server has shown that it speaks another one. */
  #revision: Revision | undefined;
  #detecting: Promise<Revision> | undefined;
  #lastId = 0;

  constructor(settings: RemoteServerSettings, ctx: Context) {
    this.#ctx = ctx;
    this.#settings = settings;
    this.#sessions = new RemoteSessions(ctx, settings, () => ++this.#lastId);
  }

  get name(): string {
    return this.#settings.name;
  }

  async describe(caller: ServerCaller): Promise<ServerDescription> {
    const revision = await this.#detectRevision(caller);
    if (isModern(revision)) {
      const result = await this.#callModern(revision, "server/discover", {}, caller);
      const { capabilities, instructions, _meta: meta } = result;
      const info = isObject(meta) ? meta[META.serverInfo] : undefined;
      return {
        revision,
        capabilities: isObject(capabilities) ? capabilities : {},
        ...(typeof instructions === "string" && { instructions }),
        serverInfo: isObject(info) ? info : undefined,
      };
    }
    const { description } = await this.#openSession(caller);
    return description;
  }

  async list(kind: ListKind, caller: ServerCaller): Promise<ServerList> {
    const items: ServerItem[] = [];
    const seen = new Set<string>();
    let ttlMs: number | undefined;
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const params = cursor === undefined ? {} : { cursor };
      const result = await this.#call(LIST_METHODS[kind], params, caller);
      const entries = result[LIST_MEMBERS[kind]];
      if (!Array.isArray(entries)) throw wrongShape(`has no ${LIST_MEMBERS[kind]}`);
      for (const item of entries) {
        const flaw = findEntryFlaw(kind, item);
        if (flaw !== undefined) {
          this.#ctx.log.warn({ server: this.name, list: kind, flaw }, "entry of list not valid");
          continue;
        }
        const key = keyOf(kind, item as ServerItem);
        if (seen.has(key)) continue;
        seen.add(key);
        items.push(item as ServerItem);
        if (items.length > MAX_ENTRIES)
          throw wrongShape(`has more than ${MAX_ENTRIES} entries in a list`);
      }
      const { ttlMs: ttl, nextCursor } = result;
      if (typeof ttl === "number" && ttl >= 0) ttlMs = Math.min(ttl, ttlMs ?? ttl);
      if (typeof nextCursor !== "string") return { items, ttlMs };
      cursor = nextCursor;
    }
    throw wrongShape(`has more than ${MAX_PAGES} pages in a list`);
  }

  request(request: ServerRequest, caller: ServerCaller): Promise<JsonObject> {
    // Most requests do not have to wait for the revision.
    const revision = this.#revision;
    return revision === undefined
      ? needed(this.#detectRevision(caller)).then((found) =>
          this.#requestIn(found, request, caller),
        )
      : this.#requestIn(revision, request, caller);
  }

  #requestIn(
    revision: Revision,
    request: ServerRequest,
    caller: ServerCaller,
  ): Promise<JsonObject> {
    const { method, params, headers } = request;
    if (!isModern(revision)) return this.#callLegacy(method, params, caller, request);
    return this.#callModern(revision, method, params, caller, {
      headers: headers ?? {},
      onMessage: (message) => request.onNotification(message.method, message.params),
    });
  }

  async listen(
    filter: EventFilter,
    caller: ServerCaller,
    on: { event(event: ServerEvent): void; end(): void },
  ): Promise<void> {
    const revision = await this.#detectRevision(caller);
    if (!isModern(revision)) {
      await this.#openSession(caller);
      return this.#sessions.subscribe(filter, caller, on);
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const notifications = {
      ...(filter.lists.has("tools") && { toolsListChanged: true }),
      ...(filter.lists.has("prompts") && { promptsListChanged: true }),
      ...(filter.lists.has("resources") && { resourcesListChanged: true }),
      ...(filter.resources.length > 0 && { resourceSubscriptions: [...filter.resources] }),
    };
    const onMessage = ({ method, params }: RpcRequest) => {
      if (method === "notifications/subscriptions/acknowledged") resolve();
      else on.event({ method, params });
    };
    this.#callModern(revision, "subscriptions/listen", { notifications }, caller, {
      headers: {},
      onMessage,
      idleMs: EVENTS_IDLE_MS,
    }).then(
      () => (resolve(), on.end()),
      (problem: unknown) => (reject(problem as Error), on.end()),
    );
    return promise;
  }

  endPartition(partition: string): void {
    this.#sessions.end(partition);
  }

  async #call(method: string, params: JsonObject, caller: ServerCaller): Promise<JsonObject> {
    const revision = await this.#detectRevision(caller);
    return isModern(revision)
      ? this.#callModern(revision, method, params, caller)
      : this.#callLegacy(method, params, caller);
  }

  /** Returns the newest revision that both sides speak. It is determined once. */
  async #detectRevision(caller: ServerCaller): Promise<Revision> {
    this.#revision ??= this.#settings.revision;
    if (this.#revision !== undefined) return this.#revision;
    this.#detecting ??= this.#probe(caller).finally(() => {
      this.#detecting = undefined;
    });
    this.#revision = await this.#detecting;
    return this.#revision;
  }

  async #probe(caller: ServerCaller): Promise<Revision> {
    const [newest] = REVISIONS;
    // The revision is for all clients, so the probe does not end with one of them.
    const signal = AbortSignal.timeout(Math.min(this.#settings.idleMs, MAX_PROBE_MS));
    const own = { ...caller, signal };
    const answer = await this.#postModern(newest, "server/discover", {}, own, {
      headers: {},
    }).catch((problem: unknown) => {
      if (problem instanceof ServerError && SESSION_STATUSES.has(problem.status ?? 0))
        return undefined;
      throw problem;
    });
    const { result, error } = answer?.response ?? {};
    const supported = result?.["supportedVersions"];
    if (Array.isArray(supported))
      return REVISIONS.find((one) => supported.includes(one)) ?? failRevision(supported);
    if (error?.code === RPC_ERRORS.unsupportedVersion && isObject(error.data)) {
      const offered = error.data["supported"];
      if (Array.isArray(offered))
        return REVISIONS.find((one) => offered.includes(one)) ?? failRevision(offered);
    }
    // Other errors, such as those of an overloaded server, do not show its revision.
    if (error && answer!.status >= 300 && !SESSION_STATUSES.has(answer!.status))
      throw toRpcError(error, { status: answer!.status, server: this.name });
    return REVISIONS[1];
  }

  /** Opens a session. If the server opens none, its revision is determined again. */
  async #openSession(caller: ServerCaller): Promise<RemoteSession> {
    try {
      return await this.#sessions.open(caller);
    } catch (problem) {
      this.#revision = undefined;
      throw problem;
    }
  }

  async #callModern(
    revision: Revision,
    method: string,
    params: JsonObject,
    caller: ServerCaller,
    of: ModernOptions = { headers: {} },
  ): Promise<JsonObject> {
    const { response, status } = await this.#postModern(revision, method, params, caller, of);
    const { result, error } = response!;
    if (!error) return result!;
    // The server was replaced by another one, so the revision is determined again.
    if (error.code === RPC_ERRORS.unsupportedVersion) this.#revision = undefined;
    throw toRpcError(error, { status, server: this.name });
  }

  #postModern(
    revision: Revision,
    method: string,
    params: JsonObject,
    caller: ServerCaller,
    of: ModernOptions,
  ): Promise<PostedResponse> {
    const { _meta: meta } = params;
    const name = params["name"] ?? params["uri"];
    const hasName =
      method === "tools/call" || method === "prompts/get" || method === "resources/read";
    const message = {
      jsonrpc: "2.0",
      id: ++this.#lastId,
      method,
      params: {
        ...params,
        _meta: {
          ...(isObject(meta) && meta),
          [META.protocolVersion]: revision,
          [META.clientInfo]: caller.clientInfo ?? GATEWAY_INFO,
          [META.clientCapabilities]: caller.capabilities,
          ...(caller.logLevel != null && { [META.logLevel]: caller.logLevel }),
        },
      },
    };
    return post(this.#ctx, this.#settings.url, {
      message,
      headers: {
        ...of.headers,
        ...caller.credential.headers,
        "mcp-protocol-version": revision,
        "mcp-method": method,
        ...(hasName && typeof name === "string" && { "mcp-name": encodeHeaderValue(name) }),
      },
      signal: caller.signal,
      idleMs: of.idleMs ?? this.#settings.idleMs,
      onMessage: of.onMessage,
    });
  }

  /** Calls a server with a session. If the server has ended the session, another one is opened. */
  async #callLegacy(
    method: string,
    params: JsonObject,
    caller: ServerCaller,
    request?: ServerRequest,
  ): Promise<JsonObject> {
    for (let attempt = 1; ; attempt++) {
      const opening = this.#openSession(caller);
      const session = await (request ? needed(opening) : opening);
      try {
        return await this.#postLegacy(session, method, params, caller, request);
      } catch (problem) {
        const isEnded = problem instanceof ServerError && problem.status === 404;
        if (!isEnded || session.id === undefined || attempt > 1) throw problem;
        this.#sessions.forget(caller.partition, session);
      }
    }
  }

  async #postLegacy(
    session: RemoteSession,
    method: string,
    params: JsonObject,
    caller: ServerCaller,
    request: ServerRequest | undefined,
  ): Promise<JsonObject> {
    const id = ++this.#lastId;
    if (caller.logLevel != null && method === "tools/call")
      await this.#sessions.setLogLevel(session, caller);
    const onMessage = (message: RpcRequest) => {
      if (message.id !== undefined) void this.#sessions.answer(session, message, caller, request);
      else request?.onNotification(message.method, message.params);
    };
    const cancel = () => this.#sessions.notifyCanceled(session, id, caller);
    caller.signal.addEventListener("abort", cancel, { once: true });
    try {
      const { response, status } = await post(this.#ctx, this.#settings.url, {
        message: { jsonrpc: "2.0", id, method, params },
        headers: this.#sessions.headersOf(session, caller),
        signal: caller.signal,
        idleMs: this.#settings.idleMs,
        onMessage,
      });
      const { result, error } = response!;
      if (error) throw toRpcError(error, { status, server: this.name });
      return result!;
    } finally {
      caller.signal.removeEventListener("abort", cancel);
    }
  }
}

interface ModernOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly onMessage?: (message: RpcRequest) => void;
  readonly idleMs?: number;
}

/** Resolves with what a request needs before it is sent. If that fails, the request is unsent. */
const needed = <T>(value: Promise<T>): Promise<T> =>
  value.catch((problem: unknown) => {
    if (problem instanceof ServerError)
      throw problem.progress === "unknown"
        ? new ServerError(problem.message, { ...problem, progress: "unsent" })
        : problem;
    if (getFault(problem)?.kind !== "canceled") throw problem;
    throw new ServerError("The server did not respond in time.", {
      code: RPC_ERRORS.internal,
      progress: "unsent",
      status: 504,
    });
  });

const failRevision = (offered: readonly unknown[]): never => {
  throw new ServerError(
    `The server supports none of the gateway's revisions. It supports ${showRevisions(offered)}.`,
    { code: RPC_ERRORS.internal, progress: "rejected" },
  );
};
