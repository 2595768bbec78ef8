// Live stats of the gateway, for plugins that show them.
import type { ErrorKind } from "../model/error.ts";
import type { Opt } from "../model/values.ts";
import type { StoreSize } from "./store/ledger-maintenance.ts";

/**
 * Live stats of all processes of the gateway together, as plain data. The host queries each process
 * and sums the results. For a process that does not respond within 1 s, the last known values are
 * used.
 *
 * Counters (`rejections`, `droppedRecords`) never decrease, because the counts of a process that
 * exited remain part of the sum.
 */
export interface GatewayStats {
  /** Time at which the stats were collected, in Unix milliseconds. */
  readonly at: number;
  /** Version of Tollgate. */
  readonly version: string;
  /**
   * Number of the current config generation, and the time at which it was put in use, in Unix
   * milliseconds.
   */
  readonly generation: { readonly number: number; readonly at: number };
  /** Health of the gateway, as `/readyz` reports it in every process. */
  readonly state: HealthState;
  /** Number of processes of the gateway, and number of processes that responded in time. */
  readonly processes: { readonly expected: number; readonly responded: number };
  /** Last known stats of each process. The primary process is the first. */
  readonly perProcess: readonly ProcessStats[];
  /** Number of active client requests. */
  readonly inFlight: number;
  /**
   * Active requests by frontend, under the frontend's name in gateway.yaml. Every mounted frontend
   * is listed, also with 0. A middleware that serves routes is listed under its path. Health checks
   * and requests without a matching route are not counted.
   */
  readonly inFlightByFrontend: { readonly [frontend: string]: number };
  /** Open WebSockets by frontend. A frontend without an open WebSocket is not listed. */
  readonly webSocketsByFrontend: { readonly [frontend: string]: number };
  /** Targets in cooldown, up to 1,000: those with the longest remaining cooldown. */
  readonly cooldowns: readonly CooldownState[];
  /** Middleware in other processes that cannot be reached. */
  readonly unreachable: readonly UnreachablePluginStats[];
  /**
   * Open jobs by kind, of all gateways on the store. Unset if no frontend runs jobs, or if the store
   * did not respond in time.
   */
  readonly jobs?: Opt<readonly JobStats[]>;
  /** Connections to providers, one entry for each origin. */
  readonly pools: readonly PoolStats[];
  /** State of the ledger. */
  readonly ledger: {
    /** Whether the ledger accepts rows. */
    readonly ok: boolean;
    /** Reason why new calls are rejected. */
    readonly reason?: Opt<string>;
    /** Number of commands that wait for the next batch. */
    readonly queue: number;
    /** Time the store took to make each batch durable. */
    readonly commits: DurationHistogram;
    /** Storage that the ledger uses. Unset if the store does not report it. */
    readonly size?: Opt<StoreSize>;
  };
  /**
   * Gateways that share the store. Unset if the store belongs to this gateway alone, or did not
   * report it in time.
   */
  readonly fleet?: Opt<FleetStats>;
  /**
   * Certificates of the gateway's own listeners, and of the authorities that sign client
   * certificates. Empty without TLS.
   */
  readonly certificates: readonly CertificateStats[];
  /** Model lists that the gateway requests from providers, one entry for each credential. */
  readonly modelLists: readonly ModelListStats[];
  /**
   * Delay of the event loop in the last 10 to 20 s, in milliseconds, from the process with the
   * longest delay. Measurement starts with the first reading, which reports 0.
   */
  readonly loopDelayMs: { readonly mean: number; readonly p99: number; readonly max: number };
  /** Memory of all processes, in bytes. */
  readonly memory: { readonly rss: number; readonly heapUsed: number; readonly external: number };
  /**
   * Requests that were rejected before routing, so that no frontend or `admit` hook received them,
   * by code, since the start: "unknown_path", "host_unknown", "too_many_in_flight",
   * "http_malformed", "tls". `onRequests` does not report them.
   */
  readonly rejections: { readonly [code: string]: number };
  /**
   * Records that were dropped because an observer was too slow, by the observer's path in
   * gateway.yaml, since the start.
   */
  readonly droppedRecords: { readonly [observer: string]: number };
}

/**
 * Whether requests should be sent to this gateway. New states can be added within API version 1.
 *
 * - `starting`: no port is open yet.
 * - `ready`: the gateway serves requests.
 * - `ledger_unavailable`: the ledger accepts no rows, so new calls are rejected.
 * - `draining`: the gateway is about to stop.
 */
export type HealthState = "starting" | "ready" | "ledger_unavailable" | "draining";

/** A provider's credential in cooldown, for one model or, if `model` is unset, for all models. */
export interface CooldownState {
  /**
   * State of the credential. New states can be added within API version 1.
   *
   * - `credential_rejected`: the provider rejected the credential.
   * - `retry_after`: the provider sent `retry-after`.
   * - `open`: the circuit breaker is open, either for all clients or only for clients whose
   *   requests failed.
   * - `half_open`: one request probes the credential.
   * - `recovering`: calls succeed, and the target gets little more traffic than before the failure.
   */
  readonly state: "credential_rejected" | "retry_after" | "open" | "half_open" | "recovering";
  /** Kind of the failure that caused the cooldown. */
  readonly reason: ErrorKind;
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** Name of the credential. */
  readonly credential: string;
  /** The provider's name of the model. Unset: all models of the credential. */
  readonly model?: Opt<string>;
  /** End of the cooldown, in Unix milliseconds. */
  readonly until: number;
  /**
   * Whether all requests are rejected until the cooldown ends, because the provider reported that
   * the account's limit is used up. If not, the cooldown only affects the order of candidates:
   * requests are still sent if no other candidate is left.
   */
  readonly rejectsRequests?: Opt<boolean>;
  /** Keys whose requests are affected. If unset, the requests of all keys are affected. */
  readonly keys?: Opt<readonly string[]>;
  /**
   * Share of the newest calls that succeeded, 0 to 1. The candidate in cooldown with the highest
   * share is called first.
   */
  readonly score?: Opt<number>;
}

/** Open jobs of one kind. */
export interface JobStats {
  /** Kind of the jobs, such as `batch`. */
  readonly kind: string;
  /** Number of open jobs. */
  readonly open: number;
  /** Time at which the oldest open job was created, in Unix milliseconds. Unset if none is open. */
  readonly oldestAt?: Opt<number>;
}

/** A middleware in another process that exited, is restarting, or does not respond. */
export interface UnreachablePluginStats {
  /** Path of the plugin in gateway.yaml: "middleware.guard". */
  readonly plugin: string;
  /** Time at which the first process of the gateway lost its connection, in Unix milliseconds. */
  readonly since: number;
  /**
   * Effect on requests that use the middleware: rejected with an error, or continued without it
   * (`on_error: continue`).
   */
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

/** Number of gateways that share a store, by state, and the state of this gateway. */
export interface FleetStats {
  /** Number of gateways that are running. */
  readonly live: number;
  /** Number of gateways that stopped in order. */
  readonly left: number;
  /** Number of gateways whose lease expired. */
  readonly dead: number;
  /** Number of milliseconds by which this gateway's clock is ahead of the store's clock. */
  readonly clockAheadMs?: Opt<number>;
  /** Time for which this gateway has been missing changes of keys or accounts, in milliseconds. */
  readonly syncLagMs?: Opt<number>;
}

/** Histogram of a duration since the start. */
export interface DurationHistogram {
  /** Number of measurements. */
  readonly count: number;
  /** Sum of all durations, in milliseconds. */
  readonly sumMs: number;
  /**
   * Number of measurements of at most `ms` milliseconds, cumulative. Longer measurements are only
   * in `count`.
   */
  readonly buckets: readonly { readonly ms: number; readonly count: number }[];
}

/** The model list that a provider reports for one credential. */
export interface ModelListStats {
  /** Name of the provider in gateway.yaml. */
  readonly provider: string;
  /** Name of the credential. */
  readonly credential: string;
  /** Time of the last successful refresh, in Unix milliseconds. Unset if there was none. */
  readonly lastSuccessAt?: Opt<number>;
  /** Number of failed refreshes since the last successful one. */
  readonly failures: number;
}

/** A certificate file. */
export interface CertificateStats {
  /**
   * Key in gateway.yaml: "listen.tls", "listen[1].tls", "listen.tls.client_certificates", or
   * "admin.tls".
   */
  readonly listener: string;
  /** Time at which the first certificate in the file expires, in Unix milliseconds. */
  readonly expiresAt: number;
}

/** Stats of one process. */
export interface ProcessStats {
  /** Process ID. */
  readonly pid: number;
  /** Time at which the process started, in Unix milliseconds. */
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
  /** Delay of the event loop of this process, as in `GatewayStats`. */
  readonly loopDelayMs: GatewayStats["loopDelayMs"];
  /** Garbage collections by type, counted from the first reading on. */
  readonly gc: {
    readonly [kind in "minor" | "major" | "incremental" | "weakcb"]: {
      /** Number of collections. */
      readonly count: number;
      /** Total duration of the collections, in seconds. */
      readonly seconds: number;
    };
  };
  /** Number of open file descriptors. Unset if the operating system does not report it. */
  readonly openFiles?: Opt<number>;
}
