// How the gateway is at one moment, for plugins that show it.
import type { ErrorKind } from "../model/error.ts";
import type { Opt } from "../model/values.ts";
import type { StoreSize } from "./store/ledger-maintenance.ts";

/**
 * All processes of the gateway together, as plain data. The host asks each of them and adds up; a process that has not answered
 * within a second is there with what it said last. What only counts up (`refusals`, `dropped`) never falls: what a process that
 * has ended counted stays in the sum.
 */
export interface GatewayStats {
  /** Unix milliseconds. */
  readonly at: number;
  /** Of the program. */
  readonly version: string;
  /** The generation that answers now, and since when: Unix milliseconds. */
  readonly generation: { readonly number: number; readonly at: number };
  /** What `/readyz` says, in every process. */
  readonly state: HealthState;
  /** `answered` in time, of those that are `there`. */
  readonly processes: { readonly expected: number; readonly responded: number };
  /** Each of them, as it said last; the primary is the first. */
  readonly perProcess: readonly ProcessStats[];
  /** Requests of clients under way. */
  readonly inFlight: number;
  /**
   * Of them those that a frontend has, by its name in gateway.yaml: every one that is mounted, those with none too. A middleware that
   * serves routes is there under its path. Not in it: health checks, and what no route has taken.
   */
  readonly inFlightByFrontend: { readonly [frontend: string]: number };
  /** What is tried last after a failure, 1,000 at most: those that rest longest. */
  readonly cooldowns: readonly CooldownState[];
  /** Middleware in other processes that cannot be reached. */
  readonly unreachable: readonly UnreachablePluginStats[];
  /** Connections to providers, an origin each. */
  readonly pools: readonly PoolStats[];
  /**
   * `ok`: it accepts rows; `why` not, if it does not. `queue`: what waits for its batch. `commits`: how long the store took over each
   * batch, until it was durable. `size`: absent where the store does not say it.
   */
  readonly ledger: {
    /** Whether the ledger accepts rows. */
    readonly ok: boolean;
    /** Why it does not. */
    readonly reason?: Opt<string>;
    /** Number of commands that wait for the next batch. */
    readonly queue: number;
    /** Time the store took to make each batch durable. */
    readonly commits: DurationHistogram;
    /** Storage that the ledger uses. Unset if the store does not report it. */
    readonly size?: Opt<StoreSize>;
  };
  /** Of a store that several gateways share. Absent: it belongs to this one, or has not said it in time. */
  readonly fleet?: Opt<FleetStats>;
  /** Certificates of the gateway's own listeners, and of the authorities that sign its clients'. Empty without TLS. */
  readonly certificates: readonly CertificateStats[];
  /** The lists of models that providers are asked for, a line for each credential. */
  readonly modelLists: readonly ModelListStats[];
  /**
   * How late the event loop was, in milliseconds, of the process where it was latest, in the last 10 to 20 seconds. It is measured
   * from the first reading on; that one says 0.
   */
  readonly loopDelayMs: { readonly mean: number; readonly p99: number; readonly max: number };
  /** Bytes, of all processes. */
  readonly memory: { readonly rss: number; readonly heapUsed: number; readonly external: number };
  /**
   * Requests that were turned away before a frontend or an `admit` hook saw them, by code, since the start: "unknown_path",
   * "host_unknown", "too_many_in_flight", "http_malformed", "tls". Observers are told nothing else of them.
   */
  readonly rejections: { readonly [code: string]: number };
  /** Records that observers were too slow for, by their path in gateway.yaml, since the start. */
  readonly droppedRecords: { readonly [observer: string]: number };
}

/**
 * Whether requests should be sent to this gateway. starting: no port is open yet. ledger_unavailable: the ledger accepts no rows, so new calls are
 * refused. draining: it is about to stop. New states are added within api 1.
 */
export type HealthState = "starting" | "ready" | "ledger_unavailable" | "draining";

/** A provider's credential in cooldown, for one model or, where `model` is absent, for all. */
export interface CooldownState {
  /**
   * credential_rejected: the provider rejected it. retry_after: the provider sent `retry-after`. open: the circuit breaker is open, for all clients or
   * for those whose requests failed; half_open: one request probes. recovering: it works, and gets little more than before it failed.
   * New states are added within api 1.
   */
  readonly state: "credential_rejected" | "retry_after" | "open" | "half_open" | "recovering";
  /** The kind of the failure. */
  readonly reason: ErrorKind;
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** Name of the credential. */
  readonly credential: string;
  /** The provider's name of the model. Unset: all models of the credential. */
  readonly model?: Opt<string>;
  /** Unix milliseconds. */
  readonly until: number;
  /**
   * Whether requests are refused until then, because the provider said that the account's limit is used up. Otherwise the cooldown
   * only orders candidates: requests are still sent where no other candidate is left.
   */
  readonly rejectsRequests?: Opt<boolean>;
  /** The keys whose requests alone are affected. Absent: the requests of all keys. */
  readonly keys?: Opt<readonly string[]>;
  /** The share of the newest calls that succeeded, 0 to 1. Of candidates in cooldown, the one with more is called first. */
  readonly score?: Opt<number>;
}

/** A middleware in another process that has ended, restarts, or does not answer. */
export interface UnreachablePluginStats {
  /** Path of the plugin in gateway.yaml: "middleware.guard". */
  readonly plugin: string;
  /** Unix milliseconds: when the first process of the gateway lost its connection. */
  readonly since: number;
  /** What happens to requests that pass through it: rejected with an error, or continued without it (`on_error: continue`). */
  readonly requests: "rejected" | "continued";
  /** Number of processes of the gateway that cannot reach it. */
  readonly processes: number;
}

/** Connections to one origin. */
export interface PoolStats {
  /** Scheme, host, and port. */
  readonly origin: string;
  /** Number of open connections. */
  readonly connected: number;
  /** Number of open connections without a request. */
  readonly free: number;
  /** Number of active requests. */
  readonly running: number;
  /** Requests that wait for a connection. */
  readonly queued: number;
}

/** Gateways that share a store: how many are in which state, and how this one stands. */
export interface FleetStats {
  /** Number of gateways that are running. */
  readonly live: number;
  /** Number of gateways that stopped in order. */
  readonly left: number;
  /** Number of gateways whose lease expired. */
  readonly dead: number;
  /** How far this gateway's clock is ahead of the store's. */
  readonly clockAheadMs?: Opt<number>;
  /** For how long this gateway has missed changes of keys or accounts. */
  readonly syncLagMs?: Opt<number>;
}

/** How long something took, since the start. `upTo`: how many took at most so long; what took longer is in `count` alone. */
export interface DurationHistogram {
  /** Number of measurements. */
  readonly count: number;
  /** Sum of all durations, in milliseconds. */
  readonly sumMs: number;
  /** Cumulative histogram: the number of measurements of at most `ms` milliseconds. */
  readonly buckets: readonly { readonly ms: number; readonly count: number }[];
}

/** A provider's live list of models, by one credential. */
export interface ModelListStats {
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** Name of the credential. */
  readonly credential: string;
  /** Unix milliseconds, when the provider last said so. Absent: never. */
  readonly lastSuccessAt?: Opt<number>;
  /** Number of failed refreshes since the last successful one. */
  readonly failures: number;
}

/** A file of certificates. */
export interface CertificateStats {
  /** The key of gateway.yaml: "listen.tls", "listen[1].tls", "listen.tls.client_certificates", "admin.tls". */
  readonly listener: string;
  /** Unix milliseconds: when the first certificate in the file expires. */
  readonly expiresAt: number;
}

/** One process. Bytes, and seconds since its start. */
export interface ProcessStats {
  /** Process ID. */
  readonly pid: number;
  /** Unix milliseconds. */
  readonly startedAt: number;
  /** CPU time since the start, in seconds. */
  readonly cpu: { readonly user: number; readonly system: number };
  /** Memory of the process, in bytes. */
  readonly memory: {
    /** Resident set size. */
    readonly rss: number;
    /** Used part of the JavaScript heap. */
    readonly heapUsed: number;
    /** Allocated size of the JavaScript heap. */
    readonly heapTotal: number;
    /** Memory of C++ objects that JavaScript objects refer to. */
    readonly external: number;
  };
  /** As in `Readings`, of this one alone. */
  readonly loopDelayMs: GatewayStats["loopDelayMs"];
  /** What collections of garbage took, by their kind, from the first reading on. */
  readonly gc: {
    readonly [kind in "minor" | "major" | "incremental" | "weakcb"]: {
      /** Number of collections. */
      readonly count: number;
      /** Total duration of the collections. */
      readonly seconds: number;
    };
  };
  /** Absent where the system does not say it. */
  readonly openFiles?: Opt<number>;
}
