// The MCP endpoint: reads the messages of clients and dispatches them by method. Both kinds of
// clients use the same paths: those with a session, and those whose requests carry their metadata.
import {
  ERRORS,
  fail,
  getFault,
  type Context,
  type Fault,
  type JsonObject,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";
import { ClientReply, type FinalMessage } from "./client-reply.ts";
import { ClientRequests } from "./client-requests.ts";
import { ClientSessions } from "./client-sessions.ts";
import { readModernClient, unsupportedRevision, usesSession, type Client } from "./client.ts";
import {
  createErrorCleaner,
  findResource,
  hiddenNames,
  listPage,
  UNAVAILABLE_SERVERS,
} from "./directory.ts";
import { HIDDEN_MESSAGE } from "./hidden-names.ts";
import {
  ClientError,
  isObject,
  isResponse,
  parseClientMessage,
  RPC_ERRORS,
  type RpcId,
  type RpcRequest,
} from "./json-rpc.ts";
import { LIST_MEMBERS, LIST_METHODS } from "./list-entries.ts";
import { Relay } from "./relay.ts";
import { GATEWAY_INFO } from "./remote/remote-settings.ts";
import { isRevision, META, REVISIONS, withoutConnectionMeta } from "./revisions.ts";
import type { Scope, Scopes } from "./scopes.ts";
import { SealedState } from "./sealed-state.ts";
import { EventStream, readFilter, type WantedEvents } from "./subscriptions.ts";
import { SuspendedCalls } from "./suspended-calls.ts";
import {
  ServerError,
  URL_ELICITATION_REQUIRED,
  type ListKind,
  type ServerMethod,
} from "./tool-server.ts";

const LISTS_BY_METHOD = new Map(
  Object.entries(LIST_METHODS).map(([kind, method]) => [method, kind as ListKind]),
);
const RELAYED: ReadonlySet<string> = new Set<ServerMethod>([
  "tools/call",
  "prompts/get",
  "resources/read",
  "completion/complete",
]);

const isRelayed = (method: string): method is ServerMethod => RELAYED.has(method);

/** Methods that observers see by name. */
const KNOWN_METHODS: ReadonlySet<string> = new Set([
  ...LISTS_BY_METHOD.keys(),
  ...RELAYED,
  "initialize",
  "server/discover",
  "ping",
  "logging/setLevel",
  "resources/subscribe",
  "resources/unsubscribe",
  "subscriptions/listen",
  "notifications/initialized",
  "notifications/cancelled",
  "notifications/progress",
  "notifications/roots/list_changed",
]);

export class McpEndpoint {
  readonly #ctx: Context;
  readonly #scopes: Scopes;
  readonly #sessions: ClientSessions;
  readonly #requests: ClientRequests;
  readonly #relay: Relay;

  constructor(ctx: Context, scopes: Scopes) {
    this.#ctx = ctx;
    this.#scopes = scopes;
    const sealed = new SealedState(ctx);
    this.#sessions = new ClientSessions(ctx, sealed);
    this.#requests = new ClientRequests(ctx);
    const suspended = new SuspendedCalls(ctx);
    this.#relay = new Relay({ ctx, requests: this.#requests, suspended, sealed });
  }

  /** Handles a POST request: one message of a client. */
  async handleMessage(x: RequestHead, body: Buffer): Promise<RouteResponse> {
    let id: RpcId | undefined;
    let method: string | undefined;
    try {
      const scope = this.#scopeOf(x);
      const message = parseClientMessage(body, this.#ctx.bounds.jsonValues);
      id = message.id ?? undefined;
      if (isResponse(message)) {
        const { profile } = this.#sessions.read(x, scope);
        await this.#requests.deliver({ session: profile.sessionId, response: message });
        return { status: 202 };
      }
      ({ method } = message);
      reportOperation(x, message);
      if (method === "initialize" && usesSession(x, message))
        return await this.#initialize(x, scope, message).catch((problem: unknown) =>
          this.#rejectSession(x, scope, message, problem),
        );
      const client = this.#readClient(x, scope, message);
      if (id === undefined) return await this.#handleNotification(client, message);
      return await this.#handleRequest(client, message, id);
    } catch (problem) {
      const { status, body: error, headers } = toErrorMessage(problem, id);
      if (method !== undefined) reportOperation(x, { method }, { errorType: errorTypeOf(error) });
      return { status, body: error, ...(headers && { headers }) };
    }
  }

  /** Handles a GET request: the stream of events of a session. */
  handleStream(x: RequestHead): RouteResponse {
    return this.#respond(x, (scope) => {
      const client = this.#sessions.read(x, scope);
      const wanted: WantedEvents = {
        lists: new Set<ListKind>(["tools", "prompts", "resources"]),
        resources: [...this.#sessions.subscriptions(client)],
      };
      const reply = new ClientReply({ canStream: true, signal: x.signal });
      return new EventStream(this.#ctx, client, reply, { wanted, id: undefined }).open();
    });
  }

  /** Handles a DELETE request: the end of a session. */
  handleDelete(x: RequestHead): RouteResponse {
    return this.#respond(x, (scope) => {
      this.#sessions.end(this.#sessions.read(x, scope));
      return { status: 200 };
    });
  }

  #respond(x: RequestHead, run: (scope: Scope) => RouteResponse): RouteResponse {
    try {
      return run(this.#scopeOf(x));
    } catch (problem) {
      const { status, body } = toErrorMessage(problem, undefined);
      return { status, body };
    }
  }

  #scopeOf(x: RequestHead): Scope {
    const { name } = x.params;
    return (
      this.#scopes.find(name, x.identity!) ??
      fail("not_found", "No MCP server or set has this name. Check the path.", {
        code: "unknown_mcp_server",
      })
    );
  }

  #readClient(x: RequestHead, scope: Scope, message: RpcRequest): Client {
    if (!usesSession(x, message)) return readModernClient(x, scope, message);
    return this.#sessions.read(x, scope);
  }

  async #initialize(x: RequestHead, scope: Scope, message: RpcRequest): Promise<RouteResponse> {
    const requested = message.params["protocolVersion"];
    if (typeof requested !== "string") throw unsupportedRevision("");
    const { id, revision } = this.#sessions.open(x, scope, message.params);
    const { capabilities, instructions } = await this.#describe(x, scope);
    const result = {
      protocolVersion: revision,
      capabilities,
      serverInfo: GATEWAY_INFO,
      ...(instructions !== undefined && { instructions }),
    };
    return {
      status: 200,
      headers: { "mcp-session-id": id, "cache-control": "no-store" },
      body: { jsonrpc: "2.0", id: message.id!, result },
    };
  }

  /** Returns the response to a client for which the server cannot be described. */
  async #rejectSession(
    x: RequestHead,
    scope: Scope,
    message: RpcRequest,
    problem: unknown,
  ): Promise<RouteResponse> {
    if (!(problem instanceof ServerError)) throw problem;
    const { status, body } = await this.#toClientMessage(
      { x, scope, isModern: false },
      message,
      problem,
      message.id!,
    );
    reportOperation(x, message, { errorType: errorTypeOf(body) });
    return { status, body };
  }

  async #handleNotification(
    client: Client,
    { method, params }: RpcRequest,
  ): Promise<RouteResponse> {
    const canceled = params["requestId"];
    const isCancel = method === "notifications/cancelled" && !client.isModern;
    if (isCancel && (typeof canceled === "string" || typeof canceled === "number"))
      await this.#requests.deliver({ session: client.profile.sessionId, canceled });
    return { status: 202 };
  }

  #handleRequest(client: Client, message: RpcRequest, id: RpcId): Promise<RouteResponse> {
    const { x } = client;
    const accept = String(x.headers.accept ?? "*/*");
    const canStream = /text\/event-stream|\*\/\*/.test(accept);
    const reply = new ClientReply({ canStream, signal: x.signal });
    if (client.isModern && message.method === "subscriptions/listen") {
      const wanted = readFilter(message.params);
      return Promise.resolve(new EventStream(this.#ctx, client, reply, { wanted, id }).open());
    }
    const report = (body: JsonObject) =>
      reportOperation(x, message, { target: reply.target, errorType: errorTypeOf(body) });
    const done = client.isModern
      ? () => undefined
      : this.#requests.run(client.profile.sessionId, id, reply);
    return reply.respond(async () => {
      try {
        const params = withoutMetaOfConnection(message.params);
        const result = isRelayed(message.method)
          ? await this.#relay.run(client, message.method, params, reply)
          : await this.#dispatch(client, message, params);
        const body = { jsonrpc: "2.0", id, result: withServerInfo(client, result) };
        report(body);
        return { status: 200, body };
      } catch (problem) {
        const final = await this.#toClientMessage(client, message, problem, id);
        report(final.body);
        return final;
      } finally {
        done();
      }
    });
  }

  async #dispatch(client: Client, { method }: RpcRequest, params: JsonObject): Promise<JsonObject> {
    const kind = LISTS_BY_METHOD.get(method);
    if (kind) return this.#list(client, kind, params["cursor"]);
    const result = client.isModern
      ? await this.#dispatchModern(client, method)
      : this.#dispatchLegacy(client, method, params);
    if (result) return result;
    throw new ClientError(RPC_ERRORS.methodNotFound, `Method not found: ${method.slice(0, 128)}`, {
      status: client.isModern ? 404 : 200,
    });
  }

  async #dispatchModern({ x, scope }: Client, method: string): Promise<JsonObject | undefined> {
    if (method !== "server/discover") return undefined;
    const { capabilities, instructions } = await this.#describe(x, scope);
    return {
      supportedVersions: [...REVISIONS],
      capabilities,
      ...(instructions !== undefined && { instructions }),
      ttlMs: 0,
      cacheScope: "private",
    };
  }

  #dispatchLegacy(client: Client, method: string, params: JsonObject): JsonObject | undefined {
    switch (method) {
      case "ping":
        return {};
      case "logging/setLevel":
        this.#sessions.setLogLevel(client, params["level"]);
        return {};
      case "resources/subscribe":
      case "resources/unsubscribe": {
        const uri = String(params["uri"]);
        const { server } = findResource(client.scope, uri);
        if (method === "resources/subscribe") server.assertRetention(client.x);
        this.#sessions.setSubscription(client, uri, method === "resources/subscribe");
        return {};
      }
      default:
        return undefined;
    }
  }

  async #list(
    { x, scope, isModern }: Client,
    kind: ListKind,
    cursor: unknown,
  ): Promise<JsonObject> {
    if (cursor !== undefined && typeof cursor !== "string")
      throw new ClientError(RPC_ERRORS.invalidParams, "cursor must be a string.");
    const { items, nextCursor, ttlMs, unavailable } = await listPage(x, scope, kind, cursor);
    return {
      [LIST_MEMBERS[kind]]: [...items],
      ...(nextCursor !== undefined && { nextCursor }),
      // The list depends on the key, whatever the server states.
      ...(isModern && { ttlMs, cacheScope: "private" }),
      ...(unavailable && { _meta: { [UNAVAILABLE_SERVERS]: { ...unavailable } } }),
    };
  }

  /** Describes the servers of a scope. Throws the error of the server if there is only one. */
  async #describe(
    x: RequestHead,
    scope: Scope,
  ): Promise<{ capabilities: JsonObject; instructions: string | undefined }> {
    const found = await Promise.allSettled(scope.servers.map((server) => server.describe(x)));
    const [first] = found;
    if (scope.only && first?.status === "rejected") throw first.reason;
    const has = new Set<string>();
    for (const [at, result] of found.entries())
      if (result.status === "fulfilled" && scope.access.covers(scope.servers[at]!.name))
        for (const name of Object.keys(result.value.capabilities)) has.add(name);
    const capabilities: JsonObject = {
      tools: { listChanged: true },
      logging: {},
      ...(has.has("prompts") && { prompts: { listChanged: true } }),
      ...(has.has("resources") && { resources: { listChanged: true, subscribe: true } }),
      ...(has.has("completions") && { completions: {} }),
    };
    // Instructions can name any tool of the server.
    const { only } = scope;
    const text = first?.status === "fulfilled" ? first.value.instructions : undefined;
    if (text == null || !only || !scope.access.covers(only.name))
      return { capabilities, instructions: undefined };
    const hidden = await hiddenNames(x, scope, only);
    return { capabilities, instructions: hidden?.removeFrom(text) };
  }

  async #toClientMessage(
    { x, scope, isModern }: Pick<Client, "x" | "scope" | "isModern">,
    { method }: RpcRequest,
    problem: unknown,
    id: RpcId,
  ): Promise<FinalMessage> {
    if (!(problem instanceof ServerError)) {
      const unexpected = !(problem instanceof ClientError) && !getFault(problem);
      if (unexpected) this.#ctx.log.error({ err: problem, method }, "request of MCP failed");
      return toErrorMessage(problem, id);
    }
    // A problem without a status that left the request unsent is one of the client.
    const isOfServer = problem.progress !== "unsent" || problem.status != null;
    if (isOfServer && problem.code === RPC_ERRORS.internal)
      this.#ctx.log.warn({ method, reason: problem.message }, "MCP server failed");
    const code = clientCode(problem.code, isModern);
    const error = { code, ...(await shownError(x, scope, problem)) };
    return { status: 200, body: { jsonrpc: "2.0", id, error } };
  }
}

/** Returns the message and the data of an error, without names of tools that are hidden. */
async function shownError(
  x: RequestHead,
  scope: Scope,
  { message, data, challenge, server }: ServerError,
): Promise<JsonObject> {
  const more = challenge != null && { data: { ...data, wwwAuthenticate: challenge } };
  // A link of the gateway must not be changed.
  if (server == null) return { message, ...(data && { data }), ...more };
  const clean = await createErrorCleaner(x, scope, server);
  if (!clean) return { message: HIDDEN_MESSAGE };
  return clean({ message, ...(data && { data }), ...more });
}

/** States the method for the records of observers. */
function reportOperation(
  x: RequestHead,
  { method }: Pick<RpcRequest, "method">,
  of?: { readonly target?: string | undefined; readonly errorType?: string | undefined },
): void {
  const version = x.headers["mcp-protocol-version"];
  x.setRpcOperation({
    system: "mcp",
    method: KNOWN_METHODS.has(method) ? method : "_OTHER",
    version: isRevision(version) ? version : undefined,
    target: of?.target,
    errorType: of?.errorType,
  });
}

/** Codes that observers see. A server can respond with any number of others. */
const KNOWN_CODES: ReadonlySet<unknown> = new Set<number>([
  ...Object.values(RPC_ERRORS),
  URL_ELICITATION_REQUIRED,
]);

/**
 * Returns the code of an error, "_OTHER" for an unknown code, and "tool_error" for a result of a tool
 * that failed.
 */
function errorTypeOf({ result, error }: JsonObject): string | undefined {
  if (isObject(error)) return KNOWN_CODES.has(error["code"]) ? String(error["code"]) : "_OTHER";
  return isObject(result) && result["isError"] === true ? "tool_error" : undefined;
}

/** Codes that concern the connection between the gateway and the server, not the client's. */
const HOP_CODES: ReadonlySet<number> = new Set([
  RPC_ERRORS.headerMismatch,
  RPC_ERRORS.unsupportedVersion,
]);

function clientCode(code: number, isModern: boolean): number {
  if (!Number.isInteger(code) || HOP_CODES.has(code)) return RPC_ERRORS.internal;
  // The newest revision asks for input with a result, and has no code for it.
  if (isModern && code === URL_ELICITATION_REQUIRED) return RPC_ERRORS.implementation;
  // The newest revision has no separate code for unknown resources.
  return isModern && code === RPC_ERRORS.resourceNotFound ? RPC_ERRORS.invalidParams : code;
}

function withoutMetaOfConnection(params: JsonObject): JsonObject {
  if (params["_meta"] === undefined) return params;
  const { _meta: meta, ...own } = params;
  const kept = withoutConnectionMeta(meta as JsonObject);
  return kept ? { ...own, _meta: kept } : own;
}

const SERVER_META: JsonObject = { [META.serverInfo]: GATEWAY_INFO };

/** Adds the fields that each result of the newest revision has. */
function withServerInfo({ isModern }: Client, result: JsonObject): JsonObject {
  if (!isModern) {
    const { resultType: _, ttlMs: __, cacheScope: ___, ...legacy } = result;
    return legacy;
  }
  const meta = result["_meta"] as JsonObject | undefined;
  return {
    ...result,
    resultType: result["resultType"] ?? "complete",
    _meta: meta ? { ...meta, ...SERVER_META } : SERVER_META,
  };
}

/** Returns the message for an error. */
export function toErrorMessage(problem: unknown, id: RpcId | undefined): FinalMessage {
  const respond = (status: number, error: JsonObject, headers?: Record<string, string>) => ({
    status,
    body: { jsonrpc: "2.0", ...(id !== undefined && { id }), error },
    headers,
  });
  if (problem instanceof ClientError || problem instanceof ServerError) {
    const { code, message, data } = problem;
    const status = problem instanceof ClientError ? problem.status : 200;
    return respond(status, { code, message, ...(data && { data }) });
  }
  const fault = getFault(problem);
  if (!fault || fault.kind === "internal")
    return respond(500, { code: RPC_ERRORS.internal, message: "Internal error" });
  const { retryAfterMs } = fault;
  const headers =
    retryAfterMs == null ? undefined : { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) };
  return respond(ERRORS[fault.kind][0], faultError(fault), headers);
}

/** Returns the error of JSON-RPC for a fault of the gateway. */
export const faultError = (fault: Fault): JsonObject => ({
  code: RPC_ERRORS.implementation,
  message: fault.message,
  data: {
    type: fault.kind,
    ...(fault.code != null && { code: fault.code }),
    ...(fault.retryAfterMs != null && { retryAfterMs: fault.retryAfterMs }),
    ...fault.details,
  },
});
