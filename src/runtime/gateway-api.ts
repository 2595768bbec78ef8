// Types that a running gateway exposes to the command line and to programs that embed it. All types
// except `Gateway` are plain data, because they are also sent over the control socket.
import type { ListStatus } from "../catalog/list-refresher.ts";
import type { PriceFeedStatus } from "./services/price-feed.ts";
import type { PluginOutage } from "../lib/plugin-outage.ts";
import type { LocatedProblem } from "../config/gateway-config.ts";
import type { QuarantinedHook } from "../plugin/gateway-event.ts";
import type { InstanceState } from "../plugin/store/store-instance.ts";
import type { HealthState, CooldownState } from "../plugin/gateway-stats.ts";
import type { RoutingStrategy } from "../model/route-settings.ts";
import type { HypotheticalClient } from "../pipeline/explain.ts";
import type { LatencyStatus } from "../pipeline/routing/target-health.ts";
import type { FileCounts } from "./services/image-file-store.ts";
import type { Fleet } from "./services/fleet.ts";
import type { LedgerOutage } from "./services/ledger-availability.ts";

export interface Gateway {
  /** URL for clients, with the actual port: "http://127.0.0.1:8787". */
  readonly url: string;
  /**
   * URL for operators' programs: "http://127.0.0.1:9787", "unix:/run/tollgate/admin.sock".
   * Undefined if there is no admin listener.
   */
  readonly adminUrl: string | undefined;
  /** Absolute path of the state directory. */
  readonly stateDir: string;
  /**
   * The key that was created at the first start. It is available only here, so the caller must show
   * or store it.
   */
  readonly firstKey: string | undefined;
  reload(trigger: ReloadTrigger): Promise<ReloadResult>;
  /**
   * Stops accepting requests, lets open requests finish within `shutdown.timeout`, and aborts the
   * rest.
   */
  stop(): Promise<void>;
  /**
   * Starts a new process with the currently installed version, and hands the sockets over. Returns
   * its process ID. `stop` then resolves when this process has finished its open requests. Rejects
   * if the restart fails, which changes nothing.
   */
  hotRestart(): Promise<number>;
  /** Stops without waiting for open requests. */
  kill(): Promise<void>;
  /**
   * Upper limit for the duration of a stop, in milliseconds, even if something hangs. Open requests
   * may take `shutdown.timeout`, and the other steps slightly longer.
   */
  readonly maxShutdownMs: number;
  /** Number of open requests. */
  readonly inFlight: number;
  /**
   * Resolves with the reason when the gateway cannot continue. With several workers, the gateway
   * cannot continue if all workers exit repeatedly.
   */
  readonly failed: Promise<Error>;
  /**
   * Resolves when the ledger has answered. Rejects if the ledger accepts no rows or does not answer
   * within `withinMs`.
   */
  assertLedgerAnswers(withinMs: number): Promise<void>;
  status(): Promise<GatewayStatus>;
  /** Returns the gateways that share the store. */
  fleet(): Promise<Fleet>;
  explain(
    model: string,
    frontend?: string,
    client?: HypotheticalClient,
  ): Promise<RequestExplanation>;
}

/** Cause of a reload. */
export type ReloadTrigger = "file" | "signal" | "command";

export interface ReloadResult {
  /**
   * Whether the reload succeeded. If false, no change was applied, and the previous generation
   * stays in use.
   */
  readonly ok: boolean;
  /** Number of the generation that serves now. */
  readonly generation: number;
  /** Whether gateway.yaml has the same content as before. */
  readonly isUnchanged?: boolean;
  readonly problems: readonly LocatedProblem[];
  /** Changed keys that take effect only after a restart. */
  readonly restartKeys?: readonly string[];
}

export interface GatewayStatus {
  readonly version: string;
  readonly pid: number;
  readonly url: string;
  /** All public URLs if there are several. The first one is `url`. */
  readonly urls: readonly string[];
  /** URL of the admin listener. */
  readonly adminUrl: string | undefined;
  /** Path of gateway.yaml. Undefined if the embedded default config is used. */
  readonly file: string | undefined;
  readonly stateDir: string;
  /**
   * State that `/readyz` reports. `starting`: commands are answered, but no client port is open
   * yet.
   */
  readonly state: HealthState;
  /** Reason why the ledger accepts no rows, and its start. Unset while it accepts rows. */
  readonly ledgerOutage?: LedgerOutage | undefined;
  /** In Unix milliseconds, like every time in this file. */
  readonly startedAt: number;
  readonly generation: number;
  /** Frontends with model routes, and the paths of these routes. */
  readonly frontends: readonly FrontendStatus[];
  readonly configHash: string;
  readonly loadedAt: number;
  readonly lastReload:
    | (ReloadResult & { readonly at: number; readonly trigger: ReloadTrigger })
    | undefined;
  /** The last hot restart, if it failed. */
  readonly lastHotRestart?:
    | { readonly ok: false; readonly at: number; readonly reason: string }
    | undefined;
  /**
   * The previous gateway process, which this process replaced, while it still has open requests.
   */
  readonly oldProcess?: { readonly pid: number; readonly inFlight: number } | undefined;
  /**
   * Configured providers that `when:` excludes, each with the reason: "OPENAI_API_KEY is not set".
   */
  readonly unmountedProviders: readonly { readonly provider: string; readonly reason: string }[];
  /** State of the live model lists, one entry per provider and credential. */
  readonly modelLists: readonly ListStatus[];
  /** State of the price feed. Unset if there is none. */
  readonly priceFeed?: PriceFeedStatus | undefined;
  /** Targets in cooldown after a failure, and until when. */
  readonly cooldowns: readonly CooldownStatus[];
  /** Plugin hooks that failed repeatedly and are skipped for a while. */
  readonly quarantinedHooks: readonly QuarantinedHook[];
  /** Middleware in other processes that a serving process cannot reach. */
  readonly unreachablePlugins: readonly UnreachablePlugin[];
  /** Latency of the targets of models with `pick: fastest`. */
  readonly latencies: readonly LatencyStatus[];
  /** Counts of images that are stored for clients that requested a URL. */
  readonly files: FileCounts;
  /**
   * The current generation is first. A retired generation is listed until its last request ends.
   */
  readonly generations: readonly { readonly generation: number; readonly inFlight: number }[];
  /**
   * Set if there are several workers. Cooldowns and open requests are summed over all processes.
   */
  readonly workers?: readonly WorkerStatus[];
  /** All gateways on the store, including this gateway. Set if several gateways share the store. */
  readonly instances?: readonly InstanceState[] | undefined;
}

/** A cooldown of a provider's credential, for one model or for all: "openai default gpt-6". */
export interface CooldownStatus extends Omit<CooldownState, "provider" | "credential" | "model"> {
  readonly target: string;
}

/** Middleware whose separate process has ended, is restarting, or does not respond. */
export interface UnreachablePlugin extends PluginOutage {
  /** "middleware.guard" */
  readonly plugin: string;
  /**
   * How requests that pass this plugin are handled until it is back. Requests that `for:` excludes
   * are unaffected.
   */
  readonly requests: "rejected" | "continued";
}

/** A frontend and its paths: "messages" with "/v1/messages". */
export interface FrontendStatus {
  readonly name: string;
  readonly paths: readonly string[];
}

/** One of several worker processes. */
export interface WorkerStatus extends Pick<GatewayStatus, "pid" | "startedAt" | "generations"> {
  readonly cooldowns: GatewayStatus["cooldowns"];
  readonly quarantinedHooks: GatewayStatus["quarantinedHooks"];
  readonly unreachablePlugins: GatewayStatus["unreachablePlugins"];
  readonly latencies: GatewayStatus["latencies"];
  readonly files: FileCounts;
}

/** The path of a request for a model, determined without sending the request. */
export interface RequestExplanation {
  readonly model: string;
  readonly frontend: string;
  /** Strategy that orders the candidates. Cooldowns and hooks apply after it. */
  readonly strategy: RoutingStrategy;
  /** Candidates in the order in which they would be tried. Excluded candidates are last. */
  readonly candidates: readonly ExplainedCandidate[];
  /** Hook → plugins with this hook on this route, in the order they run. */
  readonly hooks: { readonly [hook: string]: readonly string[] };
  /** Hooks of this list that are skipped now because they failed repeatedly. */
  readonly quarantinedHooks?: readonly QuarantinedHook[] | undefined;
  /** Delay before a second call is sent if the first call has no content yet, by call class. */
  readonly hedgeDelays?:
    | readonly { readonly class: string; readonly afterMs: number }[]
    | undefined;
  readonly timeouts: {
    readonly connectMs: number;
    readonly firstByteMs: number;
    readonly idleMs: number;
    readonly totalMs: number;
  };
  /** WebSockets through which clients reach the model. Empty if the frontend has none. */
  readonly sockets: readonly ExplainedSocket[];
  /** Remarks, such as an alias that was followed or a provider that is not mounted. */
  readonly notes?: readonly string[];
}

export interface ExplainedSocket {
  /**
   * `requests`: each message is a request, with the candidates of an HTTP request. `relay`: messages
   * pass unchanged to the socket of the first candidate that accepts the connection.
   */
  readonly type: "requests" | "relay";
  readonly paths: readonly string[];
  /** Paths at which clients set up calls over WebRTC. */
  readonly calls: readonly string[];
}

export interface ExplainedCandidate {
  /** The current cooldown of this candidate, in any process. Unset if there is none. */
  readonly cooldown?: Omit<CooldownStatus, "target"> | undefined;
  /**
   * When the candidate is called. `first`, `next`: in this order. `last`: it is in cooldown, so it
   * is called after the others. `not_called`: its provider rejects all requests until the cooldown
   * ends. Unset: it is excluded.
   */
  readonly callOrder?: "first" | "next" | "last" | "not_called" | undefined;
  /**
   * Whether the candidate is in cooldown and is called after the others. If every candidate is in
   * cooldown, the first candidate is called anyway.
   */
  readonly isCoolingDown?: boolean | undefined;
  readonly id: string;
  readonly credential: string;
  /** Protocol of the endpoint. Null for a native provider. */
  readonly protocol: string | null;
  readonly mode: "passthrough" | "translated";
  /** How requests of a client's WebSocket are sent. Unset if the frontend has no WebSocket. */
  readonly transport?: "http" | "websocket" | undefined;
  /** Reason for its position, if `pick` has one: "25 % of the calls". */
  readonly orderReason?: string | undefined;
  /** Reason for the translation: "middleware.guard (rewrite)", "no messages endpoint". */
  readonly translationReason?: string | undefined;
  readonly excluded?:
    | { readonly by: string; readonly code: string; readonly message: string }
    | undefined;
}
