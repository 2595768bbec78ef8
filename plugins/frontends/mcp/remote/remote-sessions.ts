// Sessions with a server that speaks a revision with sessions. Each partition has its own session,
// so that a client never uses what the server keeps for another one.
import type { Context, HeadersIn, HeadersOut, JsonObject } from "tollgate/plugin";
import { isObject, RPC_ERRORS, type RpcRequest } from "../json-rpc.ts";
import {
  GATEWAY_INFO,
  showRevisions,
  toRpcError,
  type RemoteServerSettings,
} from "./remote-settings.ts";
import { isModern, isRevision, SESSION_REVISIONS, type Revision } from "../revisions.ts";
import { deleteSession, openStream, post } from "./rpc-client.ts";
import {
  ServerError,
  type EventFilter,
  type ServerCaller,
  type ServerDescription,
  type ServerEvent,
  type ServerRequest,
} from "../tool-server.ts";

/** A session with a server. */
export interface RemoteSession {
  /** ID that the server assigned. Undefined if the server keeps no sessions. */
  readonly id: string | undefined;
  readonly revision: Revision;
  readonly description: ServerDescription;
  usedAt: number;
  logLevel: string | undefined;
}

/** Largest number of sessions with one server. The one that was not used for longest is ended. */
const MAX_SESSIONS = 1_000;
/** Time after which an unused session is ended, in milliseconds. */
const MAX_IDLE_MS = 30 * 60_000;
const SWEEP_MS = 60_000;
const STREAM_IDLE_MS = 3_600_000;
const MAX_SESSION_ID_LENGTH = 1_024;

/** Requests that a server may send to a client. */
const CLIENT_METHODS: ReadonlySet<string> = new Set([
  "sampling/createMessage",
  "elicitation/create",
  "roots/list",
]);

export class RemoteSessions {
  readonly #ctx: Context;
  readonly #settings: RemoteServerSettings;
  readonly #nextId: () => number;
  readonly #sessions = new Map<string, { session: Promise<RemoteSession>; headers: HeadersOut }>();

  constructor(ctx: Context, settings: RemoteServerSettings, nextId: () => number) {
    this.#ctx = ctx;
    this.#settings = settings;
    this.#nextId = nextId;
    ctx.runEvery(SWEEP_MS, () => this.#sweep());
  }

  /** Returns the session of the caller's partition. */
  async open(caller: ServerCaller): Promise<RemoteSession> {
    const { partition } = caller;
    const known = this.#sessions.get(partition);
    if (known) {
      // The map is ordered by the last use.
      this.#sessions.delete(partition);
      this.#sessions.set(partition, known);
      const session = await known.session;
      session.usedAt = Date.now();
      return session;
    }
    const session = this.#initialize(caller);
    this.#sessions.set(partition, { session, headers: caller.credential.headers });
    session.catch(() => this.#sessions.delete(partition));
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS) this.end(oldest!);
    return session;
  }

  /** Removes a session that the server has ended. */
  forget(partition: string, ended: RemoteSession): void {
    const known = this.#sessions.get(partition);
    void known?.session.then((session) => {
      if (session === ended && this.#sessions.get(partition) === known)
        this.#sessions.delete(partition);
    });
    this.#sessions.delete(partition);
  }

  /** Ends the session of a partition. */
  end(partition: string): void {
    const known = this.#sessions.get(partition);
    if (!known) return;
    this.#sessions.delete(partition);
    known.session.then(
      ({ id, revision }) => {
        if (id === undefined) return;
        void deleteSession(this.#ctx, this.#settings.url, {
          headers: {
            ...known.headers,
            "mcp-session-id": id,
            "mcp-protocol-version": revision,
          },
          signal: AbortSignal.timeout(5_000),
          idleMs: 5_000,
        });
      },
      () => undefined,
    );
  }

  /** Returns the headers of a request in a session. */
  headersOf({ id, revision }: RemoteSession, { credential }: ServerCaller): HeadersOut {
    return {
      ...credential.headers,
      ...(id !== undefined && { "mcp-session-id": id }),
      // The first revision has no such header.
      ...(revision !== "2025-03-26" && { "mcp-protocol-version": revision }),
    };
  }

  /** Answers a request of the server. */
  async answer(
    session: RemoteSession,
    { id, method, params }: RpcRequest,
    caller: ServerCaller,
    request: ServerRequest | undefined,
  ): Promise<void> {
    const reply = async (): Promise<JsonObject> => {
      if (method === "ping") return { result: {} };
      if (!request || !CLIENT_METHODS.has(method))
        return { error: { code: RPC_ERRORS.methodNotFound, message: "Method not found" } };
      try {
        return { result: await request.askClient(method, params) };
      } catch (problem) {
        const { code = RPC_ERRORS.internal, message = "" } = problem as Partial<ServerError>;
        return { error: { code: typeof code === "number" ? code : RPC_ERRORS.internal, message } };
      }
    };
    await this.#send(session, caller, { jsonrpc: "2.0", id: id!, ...(await reply()) });
  }

  /** Tells the server that a request was canceled. */
  notifyCanceled(session: RemoteSession, id: number, caller: ServerCaller): void {
    const params = { requestId: id, reason: "The client canceled the request." };
    void this.#send(session, caller, {
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params,
    });
  }

  /** Sets the log level of a session, if it differs. */
  async setLogLevel(session: RemoteSession, caller: ServerCaller): Promise<void> {
    const level = caller.logLevel!;
    if (session.logLevel === level || !session.description.capabilities["logging"]) return;
    session.logLevel = level;
    await this.#call(session, "logging/setLevel", { level }, caller).catch(() => undefined);
  }

  /** Reports the events of a session. */
  async subscribe(
    filter: EventFilter,
    caller: ServerCaller,
    on: { event(event: ServerEvent): void; end(): void },
  ): Promise<void> {
    const session = await this.open(caller);
    const read = await openStream(this.#ctx, this.#settings.url, {
      headers: this.headersOf(session, caller),
      signal: caller.signal,
      idleMs: STREAM_IDLE_MS,
      onMessage: (message) => {
        if (message.id !== undefined) void this.answer(session, message, caller, undefined);
        else on.event({ method: message.method, params: message.params });
      },
    });
    for (const uri of filter.resources)
      await this.#call(session, "resources/subscribe", { uri }, caller);
    // A server without a stream has no events.
    if (read) void read().then(on.end, on.end);
  }

  async #initialize(caller: ServerCaller): Promise<RemoteSession> {
    const pinned = this.#settings.revision;
    const wanted = pinned !== undefined && !isModern(pinned) ? pinned : SESSION_REVISIONS[0]!;
    const { response, headers, status } = await post(this.#ctx, this.#settings.url, {
      message: {
        jsonrpc: "2.0",
        id: this.#nextId(),
        method: "initialize",
        params: {
          protocolVersion: wanted,
          capabilities: caller.capabilities,
          clientInfo: caller.clientInfo ?? GATEWAY_INFO,
        },
      },
      headers: caller.credential.headers,
      signal: AbortSignal.timeout(this.#settings.idleMs),
      idleMs: this.#settings.idleMs,
    });
    const { result, error } = response!;
    if (error) throw toRpcError(error, { status, server: this.#settings.name });
    const session = toSession(result!, headers);
    await this.#send(session, caller, { jsonrpc: "2.0", method: "notifications/initialized" });
    return session;
  }

  async #call(
    session: RemoteSession,
    method: string,
    params: JsonObject,
    caller: ServerCaller,
  ): Promise<JsonObject> {
    const { response, status } = await post(this.#ctx, this.#settings.url, {
      message: { jsonrpc: "2.0", id: this.#nextId(), method, params },
      headers: this.headersOf(session, caller),
      signal: caller.signal,
      idleMs: this.#settings.idleMs,
    });
    const { result, error } = response!;
    if (error) throw toRpcError(error, { status, server: this.#settings.name });
    return result!;
  }

  /** Sends a message that has no response. Failures are logged. */
  async #send(session: RemoteSession, caller: ServerCaller, message: JsonObject): Promise<void> {
    try {
      await post(this.#ctx, this.#settings.url, {
        message,
        headers: this.headersOf(session, caller),
        signal: AbortSignal.timeout(this.#settings.idleMs),
        idleMs: this.#settings.idleMs,
      });
    } catch (problem) {
      this.#ctx.log.debug({ problem: String(problem) }, "message to server failed");
    }
  }

  #sweep(): void {
    const before = Date.now() - MAX_IDLE_MS;
    for (const [partition, { session }] of this.#sessions)
      void session.then(
        ({ usedAt }) => usedAt < before && this.end(partition),
        () => undefined,
      );
  }
}

function toSession(result: JsonObject, headers: HeadersIn): RemoteSession {
  const { protocolVersion, capabilities, instructions, serverInfo } = result;
  if (!isRevision(protocolVersion) || isModern(protocolVersion))
    throw new ServerError(
      `The server chose ${showRevisions([protocolVersion])}, which the gateway does not support.`,
      { code: RPC_ERRORS.internal, progress: "rejected" },
    );
  // An ID contains no space. If the header is repeated, its first value is used.
  const id = headers["mcp-session-id"]?.toString().split(", ", 1)[0];
  if (id !== undefined && id.length > MAX_SESSION_ID_LENGTH)
    throw new ServerError("The server assigned a session ID that is too long.", {
      code: RPC_ERRORS.internal,
      progress: "rejected",
    });
  return {
    id,
    revision: protocolVersion,
    description: {
      revision: protocolVersion,
      capabilities: isObject(capabilities) ? capabilities : {},
      ...(typeof instructions === "string" && { instructions }),
      ...(isObject(serverInfo) && { serverInfo }),
    },
    usedAt: Date.now(),
    logLevel: undefined,
  };
}
