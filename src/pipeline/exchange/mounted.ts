// Types of the frontends and providers that a config generation mounts from gateway.yaml, and of
// the candidates derived from them.
import type { buildConnector, Dispatcher, Pool } from "undici";
import type { Timeouts } from "../../config/gateway-config.ts";
import type { DataPolicy, PolicyException } from "../../model/facts.ts";
import type { ProxyConfig } from "../../lib/net/http-proxy.ts";
import type { Operation } from "../../model/request.ts";
import type { HeadersIn, QueryIn } from "../../model/values.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Frontend, Route, SocketRoute } from "../../plugin/frontend.ts";
import type { Protocol, ServerHalf } from "../../plugin/protocol.ts";
import type { Endpoint, Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import type { HookRunner } from "../hooks/hook-runner.ts";
import type { ConnectionPool } from "../upstream/connection-pool.ts";
import type { UpstreamTarget } from "../targets/upstream-target.ts";

/**
 * A frontend in one protocol. A frontend that speaks several protocols has one `MountedFrontend`
 * for each.
 */
export interface MountedFrontend {
  /** Name in gateway.yaml, such as "messages". */
  readonly name: string;
  /** The plugin, including all its routes that may use this protocol. */
  readonly plugin: Frontend;
  /** The routes whose requests start in this protocol. */
  readonly routes: readonly Route[];
  readonly protocol: Protocol | undefined;
  readonly server: ServerHalf<Operation> | undefined;
  /** Returns the first problem of a body, or undefined. */
  readonly validate: (body: unknown) => { pointer: string; message: string } | undefined;
  readonly extractCredential: (headers: HeadersIn, query: QueryIn) => string | undefined;
  readonly hooks: HookRunner;
  /** The same frontend in each protocol that it speaks. */
  readonly byProtocol: ReadonlyMap<Protocol, MountedFrontend>;
}

export interface MountedRoute {
  readonly frontend: MountedFrontend;
  readonly route: Route;
  /**
   * The path that this route was mounted for, such as "/v1/models/:id". A route may have several.
   */
  readonly path: string;
}

/** The route of a subrequest. */
export interface SubrequestRoute {
  readonly mounted: MountedRoute;
  /** Parameters of the path. */
  readonly params: { readonly [name: string]: string };
}

/** A path at which clients open a WebSocket. */
export interface MountedSocket {
  /** The frontend in the protocol of the route. */
  readonly frontend: MountedFrontend;
  readonly route: SocketRoute;
  readonly path: string;
}

export interface MountedProvider {
  /** The part of a model ID before the first "/". */
  readonly name: string;
  readonly plugin: Provider;
  readonly dataPolicy: DataPolicy | undefined;
  readonly dataPolicyExceptions: readonly PolicyException[];
  readonly isPolicyTrusted: boolean;
  readonly stateMode: "reject" | "relay";
  /**
   * Fields that may be sent under Service-ZDR although they were not reviewed, such as "min_p" or
   * "messages[].new".
   */
  readonly zdrFields: readonly string[];
  readonly traceMode: "off" | "forward";
  readonly onDisconnect: "cancel" | "drain";
  readonly timeouts: Timeouts;
  readonly endpoints: readonly MountedEndpoint[];
  readonly credentials: readonly Credential[];
  /**
   * Origins to which requests may be sent in addition to the origins of the endpoints. The
   * operator's options name them.
   */
  readonly extraOrigins: ReadonlySet<string>;
  /** Whether requests to the cloud's metadata service are allowed. */
  readonly allowsMetadataService: boolean;
  /** Proxy for requests to these origins. Undefined: direct connections. */
  readonly proxy?: ProxyConfig | undefined;
}

export interface MountedEndpoint {
  readonly definition: Endpoint;
  readonly operation: Operation;
  /** Null for a native endpoint. */
  readonly protocol: Protocol | null;
  readonly transport: EndpointTransport | null;
  /**
   * Connection pool for the base URL of a native endpoint. Undefined if the endpoint has no base
   * URL.
   */
  readonly nativePool: Pool | undefined;
}

/** Transport to an endpoint's base URL: a connection pool for the origin, and the path prefix. */
export interface EndpointTransport {
  readonly pool: Pool;
  /** Opens an additional connection for one request. */
  openConnection(): Dispatcher;
  /** Opens a connection for a WebSocket. */
  readonly connect: buildConnector.connector;
  /** WebSockets over which requests are sent. */
  readonly connections: ConnectionPool;
  readonly origin: string;
  /** Path prefix without a trailing slash. */
  readonly pathPrefix: string;
  readonly definition: ProtocolEndpoint;
}

export interface Credential {
  readonly name: string;
  /**
   * Accounts whose keys may use their own credential with the provider. "*" stands for every key.
   * Set only if the credential is the client's own. It then has no fields.
   */
  readonly clientAccounts?: readonly string[] | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly weight: number;
  readonly models: readonly string[] | undefined;
  readonly zdr: { declared: boolean; note?: string; until?: string } | undefined;
}

/** A candidate with data that only the host may see. */
export interface HostCandidate extends Candidate {
  readonly mounted: {
    provider: MountedProvider;
    endpoint: MountedEndpoint;
    credential: Credential;
    target: UpstreamTarget;
    /** Share of the requested name's calls that start with this candidate, from 0 to 1. */
    share: number;
  };
}
