// A server of tools, prompts, and resources. The frontend knows no other interface of a server: a
// remote MCP server and an OpenAPI document both implement it.
import type { JsonObject, Opt } from "tollgate/plugin";
import type { ServerCredential } from "./server-credential.ts";

/** Lists that a server can have. */
export type ListKind = "tools" | "prompts" | "resources" | "resourceTemplates";

/** An entry of a list, as the server defines it. `name` or `uri` are the server's own. */
export type ServerItem = JsonObject;

/** A complete list of a server. */
export interface ServerList {
  /** Entries in the server's order. Names are unique, and entries that are not valid are missing. */
  readonly items: readonly ServerItem[];
  /**
   * Parts of tools that decide what a call does and that clients do not see, by the name of the
   * tool, such as the method and path of an operation. The hash of a tool covers them.
   */
  readonly bindings?: Opt<ReadonlyMap<string, JsonObject>>;
  /** Time for which the list is valid, in milliseconds. Default: `list_ttl` of the config. */
  readonly ttlMs?: Opt<number>;
}

/** Description that a server gives of itself. */
export interface ServerDescription {
  /** Capabilities in MCP's form, such as `{ tools: { listChanged: true } }`. */
  readonly capabilities: JsonObject;
  /** Instructions for models. */
  readonly instructions?: Opt<string>;
  /** Name and version of the server. */
  readonly serverInfo?: Opt<JsonObject>;
  /** Revision of MCP that the server speaks. Undefined for a server that is not an MCP server. */
  readonly revision?: Opt<string>;
}

/** The client on whose behalf a server is called. */
export interface ServerCaller {
  /** Credential for the server. It never contains a token of the client. */
  readonly credential: ServerCredential;
  /**
   * Separates clients: what a server keeps for one partition, such as a session, is not used for
   * another one. It consists of the key and the credential.
   */
  readonly partition: string;
  /** Capabilities that the client declared. Default: none. */
  readonly capabilities: JsonObject;
  /** Name and version of the client, if they are forwarded. */
  readonly clientInfo?: Opt<JsonObject>;
  /** Minimum level of the log messages that the client wants. Default: it wants none. */
  readonly logLevel?: Opt<string>;
  /** Aborts when the client has disconnected or canceled its request. */
  readonly signal: AbortSignal;
}

/** Requests that are sent to a server, besides its lists. */
export type ServerMethod = "tools/call" | "prompts/get" | "resources/read" | "completion/complete";

/** A request to a server. Names and URIs are the server's own. */
export interface ServerRequest {
  /** Method of MCP. */
  readonly method: ServerMethod;
  /** Parameters, without the fields of `_meta` that belong to one connection. */
  readonly params: JsonObject;
  /** Headers that mirror arguments, such as `mcp-param-region`. Default: none. */
  readonly headers?: Opt<Readonly<Record<string, string>>>;
  /** Receives the notifications that precede the result, such as progress. */
  onNotification(method: string, params: JsonObject): void;
  /**
   * Sends a request of the server to the client, such as `elicitation/create`, and resolves with its
   * result. Rejects if the client cannot answer it.
   */
  askClient(method: string, params: JsonObject): Promise<JsonObject>;
}

/** Notifications of a server that concern no request. */
export interface ServerEvent {
  /** Method of MCP, such as `notifications/tools/list_changed`. */
  readonly method: string;
  /** Parameters of the notification. */
  readonly params: JsonObject;
}

/** Events that a client wants to receive. */
export interface EventFilter {
  /** Lists whose changes are reported. */
  readonly lists: ReadonlySet<ListKind>;
  /** URIs of resources whose changes are reported. */
  readonly resources: readonly string[];
}

/**
 * A server of tools, prompts, and resources. Every method rejects with a `ServerError` or a fault,
 * and never returns an empty list in place of an error.
 */
export interface ToolServer {
  /** Name under `servers:` in the options. */
  readonly name: string;
  /** Returns the server's description of itself. */
  describe(caller: ServerCaller): Promise<ServerDescription>;
  /** Returns a complete list. Its size and the depth of its schemas are bounded. */
  list(kind: ListKind, caller: ServerCaller): Promise<ServerList>;
  /**
   * Sends a request and resolves with its result. The result of `tools/call`, `prompts/get`, and
   * `resources/read` can have the type `input_required`.
   */
  request(request: ServerRequest, caller: ServerCaller): Promise<JsonObject>;
  /**
   * Reports events until `caller.signal` aborts. Resolves when the server has confirmed the
   * subscription. `onEnd` is called once if the server ends it. A server without events lacks this
   * method.
   */
  listen?(
    filter: EventFilter,
    caller: ServerCaller,
    on: { event(event: ServerEvent): void; end(): void },
  ): Promise<void>;
  /** Ends what the server keeps for a partition, such as a session. */
  endPartition?(partition: string): void;
}

/** Code of MCP for an error that asks the client's user to open a URL. */
export const URL_ELICITATION_REQUIRED = -32_042;

/** JSON-RPC error that a server returned, or that the gateway returns in its place. */
export class ServerError extends Error {
  override readonly name = "ServerError";
  /** Code of JSON-RPC or of MCP. */
  readonly code: number;
  /** Further data of the error. */
  readonly data: Opt<JsonObject>;
  /**
   * How far the request came. `unsent`: nothing was sent. `rejected`: the server did not run it.
   * `unknown`: the server may have run it.
   */
  readonly progress: "unsent" | "rejected" | "unknown";
  /** Challenge of the server for a credential: its `WWW-Authenticate` header. */
  readonly challenge: Opt<string>;
  /** HTTP status of the response, if the error comes from it. */
  readonly status: Opt<number>;
  /**
   * Server that wrote the message and the data, which can name any of its tools. Undefined: the
   * gateway wrote them.
   */
  readonly server: Opt<string>;

  constructor(
    message: string,
    of: {
      code: number;
      progress: ServerError["progress"];
      data?: Opt<JsonObject>;
      challenge?: Opt<string>;
      status?: Opt<number>;
      server?: Opt<string>;
    },
  ) {
    super(message);
    this.code = of.code;
    this.progress = of.progress;
    this.data = of.data;
    this.challenge = of.challenge;
    this.status = of.status;
    this.server = of.server;
  }
}
