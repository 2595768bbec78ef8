// What a running gateway shows to the command line and to a program that embeds it. All of it but Gateway itself is plain data:
// it also travels over the control socket.
import type { ListStatus } from "../catalog/list-refresher.ts";
import type { PluginOutage } from "../lib/plugin-outage.ts";
import type { LocatedProblem } from "../config/gateway-config.ts";
import type { QuarantinedHook } from "../plugin/gateway-event.ts";
import type { InstanceState } from "../plugin/store/store-instance.ts";
import type { HealthState, CooldownState } from "../plugin/gateway-stats.ts";
import type { RoutingStrategy } from "../model/routing-strategy.ts";
import type { HypotheticalClient } from "../pipeline/explain.ts";
import type { LatencyStatus } from "../pipeline/routing/target-health.ts";
import type { FileCounts } from "./services/image-file-store.ts";
import type { Fleet } from "./services/fleet.ts";
import type { LedgerOutage } from "./services/ledger-availability.ts";

export interface Gateway {
  /** Where clients reach it, with the port it really has: "http://127.0.0.1:8787". */
  readonly url: string;
  /** Where operators' programs reach it: "http://127.0.0.1:9787", "unix:/run/tollgate/admin.sock"; undefined: nowhere. */
  readonly adminUrl: string | undefined;
  /** Absolute. */
  readonly stateDir: string;
  /** The key that a first start made, whole and for the only time. The caller shows it or files it. */
  readonly firstKey: string | undefined;
  reload(trigger: ReloadTrigger): Promise<ReloadResult>;
  /** Stops accepting, lets what is in flight finish within `shutdown.timeout`, ends everything else. */
  stop(): Promise<void>;
  /**
   * Another process takes over, with what is installed now; its number. From then on `stop` resolves when nothing is left of this one.
   * Rejects, and nothing has changed, when that cannot be.
   */
  hotRestart(): Promise<number>;
  /** Ends what is in flight too. */
  kill(): Promise<void>;
  /** How long a stop may take, whatever hangs: what is in flight has the shutdown timeout, the rest a little more. */
  readonly maxShutdownMs: number;
  /** Requests in flight. */
  readonly inFlight: number;
  /** Resolves, with the reason, when it cannot go on: with several workers, when none stays up. */
  readonly failed: Promise<Error>;
  /** Resolves when its ledger has answered; rejects where that does not take rows, or is silent for so long. */
  assertLedgerAnswers(withinMs: number): Promise<void>;
  status(): Promise<GatewayStatus>;
  /** The gateways that share its store. */
  fleet(): Promise<Fleet>;
  explain(
    model: string,
    frontend?: string,
    client?: HypotheticalClient,
  ): Promise<RequestExplanation>;
}

/** What has asked for it. */
export type ReloadTrigger = "file" | "signal" | "command";

export interface ReloadResult {
  /** False: nothing changed, the generation before goes on. */
  readonly ok: boolean;
  /** The one that answers now. */
  readonly generation: number;
  /** The file says what it said before. */
  readonly isUnchanged?: boolean;
  readonly problems: readonly LocatedProblem[];
  /** Static keys that differ: they need a restart. */
  readonly restartKeys?: readonly string[];
}

export interface GatewayStatus {
  readonly version: string;
  readonly pid: number;
  readonly url: string;
  /** All of them, where there are several; that one first. */
  readonly urls: readonly string[];
  /** The admin listener's. */
  readonly adminUrl: string | undefined;
  /** Undefined: the embedded default. */
  readonly file: string | undefined;
  readonly stateDir: string;
  /** What `/readyz` says. `starting`: commands are answered, and no port of clients is open yet. */
  readonly state: HealthState;
  /** Why the ledger accepts no rows, and since when; absent: it accepts them. */
  readonly ledgerOutage?: LedgerOutage | undefined;
  /** Unix milliseconds, as every time here. */
  readonly startedAt: number;
  readonly generation: number;
  /** Frontends that lead to models, with the paths at which they take requests for one. */
  readonly frontends: readonly FrontendStatus[];
  readonly configHash: string;
  readonly loadedAt: number;
  readonly lastReload:
    | (ReloadResult & { readonly at: number; readonly trigger: ReloadTrigger })
    | undefined;
  /** The last time that another process should have taken over, and did not. */
  readonly lastHotRestart?:
    | { readonly ok: false; readonly at: number; readonly reason: string }
    | undefined;
  /** The gateway before, whose place this one has taken, while it has something under way. */
  readonly oldProcess?: { readonly pid: number; readonly inFlight: number } | undefined;
  /** Declared providers that `when:` leaves out, each with the reason: "OPENAI_API_KEY is not set". */
  readonly unmountedProviders: readonly { readonly provider: string; readonly reason: string }[];
  /** Live model lists, line by line. */
  readonly modelLists: readonly ListStatus[];
  /** What rests after a failure, and until when. */
  readonly cooldowns: readonly CooldownStatus[];
  /** Hooks of plugins that have failed again and again, and are not asked for a while. */
  readonly quarantinedHooks: readonly QuarantinedHook[];
  /** Middleware in other processes that cannot be reached by a process that serves requests. */
  readonly unreachablePlugins: readonly UnreachablePlugin[];
  /** How fast the targets of names with `pick: fastest` are. */
  readonly latencies: readonly LatencyStatus[];
  /** Images that are kept for clients that asked for an address. */
  readonly files: FileCounts;
  /** The current one first. A retired one is here until its last request is over. */
  readonly generations: readonly { readonly generation: number; readonly inFlight: number }[];
  /** Where more than one process answers. What rests and what is in flight is told of all of them together. */
  readonly workers?: readonly WorkerStatus[];
  /** Where the store is shared by several gateways: all of them, this one too. */
  readonly instances?: readonly InstanceState[] | undefined;
}

/** "openai default gpt-6": a provider's credential, for one model or for all. */
export interface CooldownStatus extends Omit<CooldownState, "provider" | "credential" | "model"> {
  readonly target: string;
}

/** A middleware in another process that has ended, restarts, or does not answer. */
export interface UnreachablePlugin extends PluginOutage {
  /** "middleware.guard" */
  readonly plugin: string;
  /** What requests that pass it get until it is back. Requests that `for:` excludes are unaffected. */
  readonly requests: "rejected" | "continued";
}

/** "messages", with "/v1/messages" */
export interface FrontendStatus {
  readonly name: string;
  readonly paths: readonly string[];
}

/** One process of several. */
export interface WorkerStatus extends Pick<GatewayStatus, "pid" | "startedAt" | "generations"> {
  readonly cooldowns: GatewayStatus["cooldowns"];
  readonly quarantinedHooks: GatewayStatus["quarantinedHooks"];
  readonly unreachablePlugins: GatewayStatus["unreachablePlugins"];
  readonly latencies: GatewayStatus["latencies"];
  readonly files: FileCounts;
}

/** What a request for a model would meet, without sending it. */
export interface RequestExplanation {
  readonly model: string;
  readonly frontend: string;
  /** What their order goes by; what rests and what a hook says come after it. */
  readonly strategy: RoutingStrategy;
  /** In the order in which they would be tried; excluded ones last. */
  readonly candidates: readonly ExplainedCandidate[];
  /** Hook → the plugins that have it here, in the order they run. */
  readonly hooks: { readonly [hook: string]: readonly string[] };
  /** Of those, what is not asked now because it has failed again and again. */
  readonly quarantinedHooks?: readonly QuarantinedHook[] | undefined;
  /** When another call is made beside one that has no content, by class of call. */
  readonly hedgeDelays?:
    | readonly { readonly class: string; readonly afterMs: number }[]
    | undefined;
  readonly timeouts: {
    readonly connectMs: number;
    readonly firstByteMs: number;
    readonly idleMs: number;
    readonly totalMs: number;
  };
  /** Things worth saying: an alias followed, a provider not mounted. */
  readonly notes?: readonly string[];
}

export interface ExplainedCandidate {
  /** What is known against it now, in all processes; absent: nothing. */
  readonly cooldown?: Omit<CooldownStatus, "target"> | undefined;
  /**
   * When it is called. `first`, `next`: in this order. `last`: it is in cooldown, so it is called after the others. `not_called`: its
   * provider refuses all requests until the cooldown ends. Absent: it is left out.
   */
  readonly callOrder?: "first" | "next" | "last" | "not_called" | undefined;
  /** Whether a cooldown moves it behind the others. If every candidate is in cooldown, the first one is called all the same. */
  readonly isCoolingDown?: boolean | undefined;
  readonly id: string;
  readonly credential: string;
  /** The endpoint's protocol; null: native. */
  readonly protocol: string | null;
  readonly mode: "passthrough" | "translated";
  /** Why it stands where it does, where `pick` has a reason: "25 % of the calls". */
  readonly orderReason?: string | undefined;
  /** Why it is translated: "middleware.guard (rewrite)", "no messages endpoint". */
  readonly translationReason?: string | undefined;
  readonly excluded?:
    | { readonly by: string; readonly code: string; readonly message: string }
    | undefined;
}
