// What gateway.yaml says, once read, interpolated, validated and resolved: plain, frozen, nothing left to look up.
// snake_case in YAML becomes camelCase here and nowhere else; a plugin's options keep their author's spelling.
import type { FileHashes } from "../lib/content-hash.ts";
import type { HedgeDelays } from "../model/hedge.ts";
import type { RoutingStrategy } from "../model/routing-strategy.ts";
import type { ErrorKind } from "../model/error.ts";
import type { ModelInfo, Price, Privacy } from "../model/facts.ts";
import type { HeadersOut } from "../model/values.ts";
import type { LimitDisclosure, KeyDefaults } from "../plugin/store/account.ts";
import type { Branded, PluginKind } from "../plugin/define.ts";
import type { FrontendDef } from "../plugin/frontend.ts";
import type { MiddlewareDef } from "../plugin/middleware.ts";
import type { ObserverDef } from "../plugin/observer.ts";
import type { Role } from "../plugin/role.ts";
import type { ProviderDef } from "../plugin/provider.ts";
import type { Limit } from "../plugin/store/limit.ts";
import type { ListenConfig, ProxySettings } from "./sections/network-config.ts";
import type { PluginTrust } from "./sections/plugin-trust.ts";
import type { StoreDef } from "../plugin/store/store-definition.ts";

export interface GatewayConfig {
  /** Absolute. */
  readonly file: string;
  /** Every file that was read: gateway.yaml, includes, `${file:}` targets. What a watcher watches. */
  readonly sources: readonly string[];
  /** Of the resolved content, secrets included: equal hashes mean that a reload would change nothing. */
  readonly hash: string;
  /** Where clients reach us: at least one. The first is what `url` says. */
  readonly listen: readonly ListenConfig[];
  /** What calls to providers go through; undefined: they go straight. */
  readonly proxy: ProxySettings | undefined;
  /** Where operators' programs reach us; undefined: nowhere. */
  readonly admin: AdminConfig | undefined;
  /** Where clients reach us, for addresses we hand out; never taken from a Host header. */
  readonly publicUrl: string | undefined;
  /** Absolute. */
  readonly stateDir: string;
  readonly workers: number | "auto";
  /** What requests in flight have when the port has closed. */
  readonly shutdownTimeoutMs: number;
  /** How long all are still served when a stop has begun; undefined: it depends on whether anything asks /readyz. */
  readonly shutdownAnnounceMs: number | undefined;
  /** A reload may leave no provider where there were some: otherwise it is taken for a file that is half saved. */
  readonly allowEmpty: boolean;
  /** Translations must be lossless: a loss is a 400. */
  readonly strict: boolean;
  /** What answers say of the way that they came. */
  readonly responseHeaders: readonly ResponseHeaderName[];
  readonly timeouts: Timeouts;
  /** How long a client may take nothing of its answer. */
  readonly writeTimeoutMs: number;
  /** How often one request is tried, its first call counted: at one target, and at all of them together. */
  readonly retries: { readonly perTarget: number; readonly total: number };
  /** Bytes of one request's body. */
  readonly maxBodyBytes: number;
  readonly bounds: {
    /** Bodies and whole answers of one process at once. */
    readonly inFlightBytes: number;
    /** In the JSON of one body. */
    readonly jsonValues: number;
    /** One that is held or written anew. */
    readonly responseBytes: number;
    readonly connections: number;
    readonly connectionsPerAddress: number;
  };
  readonly overload: {
    /** Calls of one process at once. */
    readonly maxConcurrent: number;
    /** How long a request may wait for its turn. */
    readonly maxQueueWaitMs: number;
  };
  /** How often providers are asked what they have. */
  readonly listRefreshMs: number;
  /** Images that clients asked for by address. */
  readonly files: {
    readonly ttlMs: number;
    readonly maxFileBytes: number;
    readonly maxBytes: number;
    readonly maxKeyBytes: number;
  };
  /** Requests that are over and still known; 0: none, and nothing is counted. */
  readonly requestHistory: number;
  readonly log: {
    readonly level: "debug" | "info" | "warn" | "error";
    /** A request slower than this to its first byte gets a line. */
    readonly slowRequestMs: number;
  };
  readonly ledger: {
    /** How long rows are kept; undefined: for good. */
    readonly retentionMs: number | undefined;
  };
  readonly store: MountConfig<StoreDef<any> & Branded<"store">>;
  readonly frontends: readonly MountConfig<FrontendDef<any> & Branded<"frontend">>[];
  readonly middleware: readonly MiddlewareConfig[];
  readonly observers: readonly MountConfig<ObserverDef<any> & Branded<"observer">>[];
  /** Mounted ones only, in the file's order. */
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  /** Declared ones that `when:` left out, with the reason in words. A candidate on one of them is skipped with a note. */
  readonly unmountedProviders: ReadonlyMap<string, string>;
  readonly models: ReadonlyMap<string, ModelRoute>;
  readonly accounts: ReadonlyMap<string, AccountConfig>;
  /** Of keys that are made in no account, or in accounts that say nothing of it. */
  readonly keyDefaults: KeyDefaults | undefined;
}

export type ResponseHeaderName =
  | "server-timing"
  | "x-tollgate-attempts"
  | "x-tollgate-budget"
  | "x-tollgate-cost"
  | "x-tollgate-provider";

export interface AdminConfig {
  readonly address:
    | { readonly host: string; readonly port: number }
    /** Absolute. */
    | { readonly socket: string };
  /** More Host names that count as ours. */
  readonly hosts: readonly string[];
  /** Something in front of it speaks TLS, and says where its clients come from. */
  readonly behindProxy: boolean;
  /** Absolute paths of PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly tokens: readonly AdminToken[];
  readonly oidc: OidcConfig | undefined;
}

/** The identity provider that people sign in with at the admin listener. */
export interface OidcConfig {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Where it sends browsers back to: at the listener, as browsers reach it. */
  readonly callbackUrl: string;
  readonly scopes: readonly string[];
  /** The claims that say groups, and what a person is called. */
  readonly groupsClaim: string;
  readonly nameClaim: string;
  /** In the file's order: the first one counts. */
  readonly roles: readonly {
    readonly group: string;
    readonly role: AdminToken["role"];
    readonly account: string | undefined;
  }[];
}

/** What one program or person presents. */
export interface AdminToken {
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

/** Of one call, but for its connection. */
export interface CallTimes {
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

export interface Timeouts extends CallTimes {
  readonly connectMs: number;
  /** By class of call, whole: what a class does not say itself stands in it too. */
  readonly classes: ReadonlyMap<string, CallTimes>;
}

export interface MountConfig<D> {
  /** The path in gateway.yaml: "providers.anthropic", "middleware.auth", "frontends.messages", "store". */
  readonly id: string;
  readonly use: string;
  readonly definition: D;
  /** "built-in", a path, or "package@version". */
  readonly loadedFrom: string;
  /** Of its code, where that may change while the gateway runs. */
  readonly version: string | undefined;
  readonly options: Readonly<Record<string, unknown>>;
}

export interface MiddlewareConfig extends MountConfig<MiddlewareDef<any> & Branded<"middleware">> {
  /** Narrows the middleware, and so the lanes that it closes. Absent = everywhere. */
  readonly scope:
    | { readonly [W in "models" | "frontends" | "providers"]?: readonly string[] }
    | undefined;
  /** What one of its hooks may take. */
  readonly timeoutMs: number;
  /** What becomes of a request when one of its hooks fails or takes longer. */
  readonly onError: "reject" | "continue";
  /** A third party's claim that nothing is kept where it sends things counts only under this. */
  readonly trustPolicy: boolean;
  /** child: it runs in a process of its own. */
  readonly isolate: "child" | undefined;
}

export interface ProviderConfig extends MountConfig<ProviderDef<any, any> & Branded<"provider">> {
  /** Its key under `providers:`; what stands before the first "/" of a model id. */
  readonly name: string;
  /** At least one; a provider that takes no credential has one named "default" with no fields. */
  readonly credentials: readonly CredentialConfig[];
  /** A third party's claim of zero retention counts only under this. */
  readonly trustPolicy: boolean;
  /** relay: for operators with one tenant; binds id to key. */
  readonly stateMode: "reject" | "relay";
  /** Fields that may leave under Service-ZDR though they were not reviewed. */
  readonly zdrAllowedFields: readonly string[];
  /** forward: its calls carry the trace of their request. */
  readonly traceMode: "off" | "forward";
  readonly onDisconnect: "cancel" | "drain";
  readonly requireReady: boolean;
  readonly timeouts: Timeouts;
  /** Facts of the operator's own, by upstream model name: they win over live list and shipped facts. */
  readonly facts: ReadonlyMap<string, FactsOverride>;
}

/** `free` says that zero is the price; an absent price is unknown, never zero. */
export type FactsOverride = Partial<Omit<ModelInfo, "price">> & {
  readonly price?: Price | "free";
};

export interface CredentialConfig {
  readonly name: string;
  /** As the provider's `credential` schema has it. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly weight: number;
  /** Patterns, in which each `*` stands for any text. Default: all. */
  readonly models: readonly string[] | undefined;
  readonly zdr:
    | { readonly declared: boolean; readonly note?: string; readonly until?: string }
    | undefined;
}

/** One line of `models:`. A pattern has one star, which is carried over into its candidates. */
export interface ModelRoute {
  readonly name: string;
  readonly candidates: readonly string[];
  /** By candidate; absent: those of its credentials together. */
  readonly weights: ReadonlyMap<string, number>;
  readonly pick: RoutingStrategy;
  /** After which failures the next candidate is tried. */
  readonly fallbackOn: readonly ErrorKind[];
  /** Undefined: hedging is off. */
  readonly hedge?: HedgeDelays | undefined;
}

/** What several keys share. What is absent restricts nothing. */
export interface AccountConfig {
  /** Its key under `accounts:`. */
  readonly id: string;
  /** The account that it stands in. */
  readonly parent: string | undefined;
  readonly name: string | undefined;
  readonly limits: readonly Limit[];
  readonly models: readonly string[] | undefined;
  readonly frontends: readonly string[] | undefined;
  readonly privacy: Privacy | undefined;
  readonly labels: HeadersOut;
  readonly defaults?: KeyDefaults | undefined;
  readonly discloseLimits?: LimitDisclosure | undefined;
}

/** Something wrong, or worth saying, at a place in a file. */
export interface LocatedProblem {
  /** Stable slug, e.g. "config/unknown-key". */
  readonly id: string;
  /** note: true of this machine, and nothing to mend; for `check` and `explain`, not for a log. */
  readonly severity: "error" | "warning" | "note";
  readonly file: string;
  /** From 1; 0 = the file as a whole. */
  readonly line: number;
  readonly column: number;
  /** The path in the file, in words: "providers.anthropic". */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
  /** Three lines and a caret, no colour. */
  readonly frame?: string;
}

/** `use` → definition; the loader's promise to the config. A problem here has no place yet: the config knows the line. */
export type LoadPlugin = (
  use: string,
  kind: PluginKind,
  fromFile: string,
  trust?: PluginTrust,
  isolate?: "child",
) => Promise<
  {
    /** What is said of it though it is mounted: it is not locked. */
    readonly warning?: Pick<LocatedProblem, "id" | "severity" | "message" | "hint"> | undefined;
    /** What it was read from, where an operator may edit it: what a watcher watches. */
    readonly files?: FileHashes;
  } & (
    | {
        readonly definition: any;
        readonly from: string;
        /** Another one where the code is another. */
        readonly version?: string;
      }
    | { readonly problem: { id: string; message: string; hint?: string } }
  )
>;
