// The types of the resolved config: gateway.yaml after reading, interpolation, and validation. The
// values are plain and frozen, and contain no unresolved references. Only this layer converts
// snake_case in YAML to camelCase. Options of a plugin keep the spelling of their author.
import type { FileHashes } from "../lib/content-hash.ts";
import type { HedgeDelays, RoutingStrategy } from "../model/route-settings.ts";
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
import type { ResolvedSection } from "./resolved-section.ts";
import type { CORE_OPTIONS, SHUTDOWN_OPTIONS } from "./schema/core-options.ts";
import type { StoreDef } from "../plugin/store/store-definition.ts";

/**
 * Options whose values need no conversion have the types of their schemas: see
 * `schema/core-options.ts`, which also describes them.
 */
export interface GatewayConfig extends ResolvedSection<typeof CORE_OPTIONS> {
  /** Absolute path. */
  readonly file: string;
  /**
   * All files that were read: gateway.yaml, includes, and `${file:}` references. The file watcher
   * watches them.
   */
  readonly sources: readonly string[];
  /**
   * Hash of the resolved content, including secrets. If it is unchanged, a reload would change
   * nothing.
   */
  readonly hash: string;
  /** Addresses for clients, at least one. `url` is the URL of the first address. */
  readonly listen: readonly ListenConfig[];
  /** Proxy for calls to providers. If unset, connections are direct. */
  readonly proxy: ProxySettings | undefined;
  /** Listener of the admin API. If unset, there is no such listener. */
  readonly admin: AdminConfig | undefined;
  readonly workers: number | "auto";
  /** `announceMs` is undefined if it depends on whether anything polls /readyz. */
  readonly shutdown: ResolvedSection<typeof SHUTDOWN_OPTIONS>;
  readonly timeouts: Timeouts;
  /** Maximum time in milliseconds for which a client may read nothing of its response. */
  readonly writeTimeoutMs: number;
  /** Time without content after which a client gets a ping in its event stream. */
  readonly pingIntervalMs: number;
  readonly store: MountConfig<StoreDef<any> & Branded<"store">>;
  readonly frontends: readonly MountConfig<FrontendDef<any> & Branded<"frontend">>[];
  readonly middleware: readonly MiddlewareConfig[];
  readonly observers: readonly MountConfig<ObserverDef<any> & Branded<"observer">>[];
  /** Mounted providers, in file order. */
  readonly providers: ReadonlyMap<string, ProviderConfig>;
  /**
   * Providers that `when:` excludes, with the reason. A candidate with such a provider is skipped,
   * and a note reports it.
   */
  readonly unmountedProviders: ReadonlyMap<string, string>;
  readonly models: ReadonlyMap<string, ModelRoute>;
  readonly accounts: ReadonlyMap<string, AccountConfig>;
  /** Limits of groups of requests that appear at run time, in file order. */
  readonly scopes: ReadonlyMap<string, ScopeConfig>;
  /** Defaults for new keys without an account, or in accounts without defaults. */
  readonly keyDefaults: KeyDefaults | undefined;
  /** Currencies and margins of invoices, by name, in file order. */
  readonly views: ReadonlyMap<string, ViewConfig>;
}

export interface AdminConfig {
  readonly address:
    | { readonly host: string; readonly port: number }
    /** Absolute path. */
    | { readonly socket: string };
  /** Additional host names that are accepted in the Host header. */
  readonly hosts: readonly string[];
  /** Whether a proxy in front of it terminates TLS and reports client addresses. */
  readonly behindProxy: boolean;
  /** Absolute paths of PEM files. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly tokens: readonly AdminToken[];
  readonly oidc: OidcConfig | undefined;
}

/** The identity provider for sign-in at the admin listener. */
export interface OidcConfig {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** URL to which browsers are redirected after sign-in, as they reach the listener. */
  readonly callbackUrl: string;
  readonly scopes: readonly string[];
  /** Names of the claims that contain the groups and the person's name. */
  readonly groupsClaim: string;
  readonly nameClaim: string;
  /** The entries are in file order. The first match is used. */
  readonly roles: readonly {
    readonly group: string;
    readonly role: AdminToken["role"];
    readonly account: string | undefined;
  }[];
}

/** A currency and a margin. The ledger itself is always in US dollars. */
export interface ViewConfig {
  readonly currency: string;
  /** Units of the currency per US dollar, as a decimal. Unset if `ratesFile` is set. */
  readonly rate: string | undefined;
  /** Absolute path of a CSV file with a rate per day. */
  readonly ratesFile: string | undefined;
  /** Percent that is added to the cost, as a decimal. */
  readonly margin: string;
  /** Accounts that have this view, with the accounts nested under them. */
  readonly accounts: readonly string[];
}

/** A bearer token of the admin API. */
export interface AdminToken {
  readonly name: string;
  readonly role: Role;
  readonly token: string;
}

/** Timeouts of one call, without the timeouts of its connection. */
export interface CallTimes {
  readonly firstByteMs: number;
  readonly idleMs: number;
  readonly totalMs: number;
}

export interface Timeouts extends CallTimes {
  readonly connectMs: number;
  /** Complete timeouts by class of call. Values that a class does not set are filled in. */
  readonly classes: ReadonlyMap<string, CallTimes>;
}

export interface MountConfig<D> {
  /**
   * Path in gateway.yaml: "providers.anthropic", "middleware.auth", "frontends.messages", "store".
   */
  readonly id: string;
  readonly use: string;
  readonly definition: D;
  /** "built-in", a path, or "package@version". */
  readonly loadedFrom: string;
  /** Whether it comes with Tollgate, so that the data policy it declares is trusted. */
  readonly isBuiltIn: boolean;
  /** Version of the plugin's code, if the code may change while the gateway is running. */
  readonly version: string | undefined;
  readonly options: Readonly<Record<string, unknown>>;
}

export interface MiddlewareConfig extends MountConfig<MiddlewareDef<any> & Branded<"middleware">> {
  /**
   * Requests to which the middleware applies, and whose passthrough it may prevent. Default: all
   * requests.
   */
  readonly scope:
    | { readonly [W in "models" | "frontends" | "providers"]?: readonly string[] }
    | undefined;
  /** Maximum run time of one of its hooks, in milliseconds. */
  readonly timeoutMs: number;
  /** Handling of a request whose hook fails or times out. */
  readonly onError: "reject" | "continue";
  /**
   * Whether to trust a third-party plugin's claim that it sends data only to destinations with zero
   * retention.
   */
  readonly trustPolicy: boolean;
  /** `child` runs it in a separate process. */
  readonly isolate: "child" | undefined;
}

export interface ProviderConfig extends MountConfig<ProviderDef<any, any> & Branded<"provider">> {
  /** Key under `providers:`, which is the part before the first "/" of a model ID. */
  readonly name: string;
  /**
   * There is at least one. A provider without a credential has one that is named "default" and has
   * no fields.
   */
  readonly credentials: readonly CredentialConfig[];
  /** Whether a third-party plugin's claim of zero data retention is trusted. */
  readonly trustPolicy: boolean;
  /**
   * `relay` forwards references to stored objects. Each ID is bound to the key that created it.
   * Only for operators with one tenant.
   */
  readonly stateMode: "reject" | "relay";
  /** Additional fields that may be sent under Service-ZDR although they were not reviewed. */
  readonly zdrAllowedFields: readonly string[];
  /** `forward` sends the trace context of a request to the provider. */
  readonly traceMode: "off" | "forward";
  readonly onDisconnect: "cancel" | "drain";
  readonly requireReady: boolean;
  readonly timeouts: Timeouts;
  /**
   * The operator's model metadata, by upstream model name. Overrides the live list and the metadata
   * that ships with Tollgate.
   */
  readonly facts: ReadonlyMap<string, FactsOverride>;
}

/** `free` sets the price to zero. An unset price is unknown, never zero. */
export type FactsOverride = Partial<Omit<ModelInfo, "price">> & {
  readonly price?: Price | "free";
};

export interface CredentialConfig {
  readonly name: string;
  /**
   * Accounts whose keys may use their own credential with the provider. "*" stands for every key.
   * Set only if the credential is the client's own. It then has no fields.
   */
  readonly clientAccounts?: readonly string[] | undefined;
  /** Values of the fields that the provider's `credential` schema defines. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly weight: number;
  /** Patterns, in which each `*` stands for any text. Default: all. */
  readonly models: readonly string[] | undefined;
  readonly zdr:
    | { readonly declared: boolean; readonly note?: string; readonly until?: string }
    | undefined;
}

/**
 * An entry of `models:`. A pattern contains one `*`, whose match is inserted into its candidates.
 */
export interface ModelRoute {
  readonly name: string;
  readonly candidates: readonly string[];
  /** Weights by candidate. Default: the sum of the weights of its credentials. */
  readonly weights: ReadonlyMap<string, number>;
  readonly pick: RoutingStrategy;
  /** Failures after which the next candidate is tried. */
  readonly fallbackOn: readonly ErrorKind[];
  /** If unset, hedging is off. */
  readonly hedge?: HedgeDelays | undefined;
}

/** Settings that several keys share. An unset member restricts nothing. */
export interface AccountConfig {
  /** Key under `accounts:`. */
  readonly id: string;
  /** Parent account. */
  readonly parent: string | undefined;
  readonly name: string | undefined;
  readonly limits: readonly Limit[];
  readonly models: readonly string[] | undefined;
  readonly frontends: readonly string[] | undefined;
  readonly tools?: readonly string[] | undefined;
  readonly privacy: Privacy | undefined;
  readonly labels: HeadersOut;
  readonly defaults?: KeyDefaults | undefined;
  readonly discloseLimits?: LimitDisclosure | undefined;
}

/** Source of the value that names a member of a scope. `text` is the form in gateway.yaml. */
export type ScopeSource =
  | { readonly kind: "header"; readonly text: string; readonly name: string }
  | { readonly kind: "label"; readonly text: string; readonly name: string }
  | { readonly kind: "body"; readonly text: string; readonly path: readonly string[] }
  | { readonly kind: "key" | "account"; readonly text: string };

/** Limits of each member of a group of requests. */
export interface ScopeConfig {
  /** Key under `scopes:`. */
  readonly name: string;
  /** Without sources, the scope has one member. */
  readonly from: readonly ScopeSource[];
  /** Owner within which a value is unique. */
  readonly within: "key" | "account" | "gateway";
  /** Requests that the scope counts. An unset member restricts nothing. */
  readonly models: readonly string[] | undefined;
  readonly providers: readonly string[] | undefined;
  readonly credentials: readonly string[] | undefined;
  readonly labels: HeadersOut;
  readonly accounts: readonly string[] | undefined;
  readonly limits: readonly Omit<Limit, "scope">[];
  readonly idleMs: number;
  readonly maxMembers: number;
  readonly overflow: "refuse" | "warn" | "downgrade";
  /** Model that serves a request above a limit, and the limits for it. */
  readonly downgrade:
    | { readonly model: string; readonly limits: readonly Omit<Limit, "scope">[] }
    | undefined;
  readonly missing: "skip" | "refuse";
  readonly label: "text" | "hash" | "none";
  readonly hold: "hard" | "expected" | "soft" | undefined;
}

/** A problem or note at a position in a file. */
export interface LocatedProblem {
  /** Stable slug, e.g. "config/unknown-key". */
  readonly id: string;
  /**
   * A `note` describes this machine and requires no action. `check` and `explain` show it, and it
   * is not logged.
   */
  readonly severity: "error" | "warning" | "note";
  readonly file: string;
  /** Line number from 1. 0 stands for the whole file. */
  readonly line: number;
  readonly column: number;
  /** Path in the file, for people: "providers.anthropic". */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
  /** Excerpt of the file with three lines and a caret, without color. */
  readonly frame?: string;
}

/**
 * Returns the definition for a `use` name. The loader implements this type. A returned problem has
 * no position, because only the config layer has the line numbers.
 */
export type LoadPlugin = (
  use: string,
  kind: PluginKind,
  fromFile: string,
  trust?: PluginTrust,
  isolate?: "child",
) => Promise<
  {
    /** Warning about a mounted plugin that is not in the lock file. */
    readonly warning?: Pick<LocatedProblem, "id" | "severity" | "message" | "hint"> | undefined;
    /** Source files that an operator may edit. The file watcher watches them. */
    readonly files?: FileHashes;
  } & (
    | {
        readonly definition: any;
        /** "built-in", a path, or "package@version". */
        readonly from: string;
        /** Whether it comes with Tollgate, so that the data policy it declares is trusted. */
        readonly isBuiltIn?: boolean;
        /** Changes whenever the code changes. */
        readonly version?: string;
      }
    | { readonly problem: { id: string; message: string; hint?: string } }
  )
>;
