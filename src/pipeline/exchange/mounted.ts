// What stands in a generation: frontends and providers as gateway.yaml mounts them, and the candidates that they make.
import type { Dispatcher, Pool } from "undici";
import type { Timeouts } from "../../config/gateway-config.ts";
import type { DataPolicy, PolicyException } from "../../model/facts.ts";
import type { ProxyConfig } from "../../lib/net/http-proxy.ts";
import type { Operation } from "../../model/request.ts";
import type { HeadersIn, QueryIn } from "../../model/values.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Frontend, Route } from "../../plugin/frontend.ts";
import type { Protocol, ServerHalf } from "../../plugin/protocol.ts";
import type { Endpoint, Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import type { HookChain } from "../hooks/hook-chain.ts";
import type { UpstreamTarget } from "../targets/upstream-target.ts";

/** A frontend in one protocol. One that speaks several is one for each. */
export interface MountedFrontend {
  /** Its name in gateway.yaml: "messages". */
  readonly name: string;
  /** With the routes at which this protocol may be spoken. */
  readonly plugin: Frontend;
  /** Those of them whose requests begin in it. */
  readonly routes: readonly Route[];
  readonly protocol: Protocol | undefined;
  readonly server: ServerHalf<Operation> | undefined;
  /** The first thing wrong with a body, or nothing. */
  readonly validate: (body: unknown) => { pointer: string; message: string } | undefined;
  readonly extractCredential: (headers: HeadersIn, query: QueryIn) => string | undefined;
  readonly hookChain: HookChain;
  /** The same frontend in each protocol that it speaks. */
  readonly byProtocol: ReadonlyMap<Protocol, MountedFrontend>;
}

export interface MountedRoute {
  readonly frontend: MountedFrontend;
  readonly route: Route;
  /** The one of its paths that this is: "/v1/models/:id". */
  readonly path: string;
}

export interface MountedProvider {
  /** What stands before the first "/" of a model id. */
  readonly name: string;
  readonly plugin: Provider;
  readonly dataPolicy: DataPolicy | undefined;
  readonly dataPolicyExceptions: readonly PolicyException[];
  readonly isPolicyTrusted: boolean;
  readonly stateMode: "reject" | "relay";
  /** Fields that may leave under Service-ZDR though they were not reviewed: "min_p", "messages[].new". */
  readonly zdrFields: readonly string[];
  readonly traceMode: "off" | "forward";
  readonly onDisconnect: "cancel" | "drain";
  readonly timeouts: Timeouts;
  readonly endpoints: readonly MountedEndpoint[];
  readonly credentials: readonly Credential[];
  /** Reached as they are, beside its endpoints' own: the operator's options name them. */
  readonly extraOrigins: ReadonlySet<string>;
  /** Whether it reaches the cloud's metadata service. */
  readonly allowsMetadataService: boolean;
  /** What those origins are reached through; undefined: they are reached straight. */
  readonly proxy?: ProxyConfig | undefined;
}

export interface MountedEndpoint {
  readonly definition: Endpoint;
  readonly operation: Operation;
  /** null: native. */
  readonly protocol: Protocol | null;
  readonly transport: EndpointTransport | null;
  /** The pool for the base of a native endpoint that has one. */
  readonly nativePool: Pool | undefined;
}

/** The way to an endpoint's base: a pool for its origin and what a path is put behind. */
export interface EndpointTransport {
  readonly pool: Pool;
  /** One more connection, for one request. */
  openConnection(): Dispatcher;
  readonly origin: string;
  /** Without a trailing slash. */
  readonly pathPrefix: string;
  readonly definition: ProtocolEndpoint;
}

export interface Credential {
  readonly name: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly weight: number;
  readonly models: readonly string[] | undefined;
  readonly zdr: { declared: boolean; note?: string; until?: string } | undefined;
}

/** A candidate with what the host knows of it and no plugin may. */
export interface HostCandidate extends Candidate {
  readonly "~": {
    provider: MountedProvider;
    endpoint: MountedEndpoint;
    credential: Credential;
    target: UpstreamTarget;
    /** Of the calls to the name that was asked for, where the first one is drawn: 0 to 1. */
    share: number;
  };
}
