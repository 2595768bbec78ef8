// Gateways that share a store, as the store tracks them.
import type { Opt } from "../../model/values.ts";
import type { ThresholdReached } from "./limit.ts";

/** The gateway process that opens a store. */
export interface StoreInstance {
  /** ID of the process, new at each start. */
  instance: string;
  /** Description of the process, for display. */
  info?: Opt<InstanceInfo>;
}

/** Description that an instance reports when it opens the store and with each heartbeat. */
export interface InstanceInfo {
  /** Version of Tollgate. */
  readonly version: string;
  /** Name of the machine. */
  readonly host: string;
  /** ID of the primary process. */
  readonly pid: number;
  /**
   * Kind of program. `command` is a command-line program that opened the store for one task.
   * Default: `gateway`.
   */
  readonly program?: Opt<"gateway" | "command">;
  /** Number of its processes that serve clients. */
  readonly workers?: Opt<number>;
  /**
   * URL at which it serves clients, as seen from its own machine. Unset while the gateway does not
   * serve clients.
   */
  readonly url?: Opt<string>;
  /**
   * Address at which other gateways of the same store reach it. Unset if other gateways cannot
   * reach it.
   */
  readonly address?: Opt<string>;
  /** Number of the config generation. It increases with each reload. */
  readonly generation?: Opt<number>;
  /** Hash of the config, the same for gateways with the same files. */
  readonly config?: Opt<string>;
}

/** State of an instance, as the store tracks it. */
export interface InstanceState {
  /** ID of the process. */
  readonly instance: string;
  /** Description that the instance reported. */
  readonly info?: Opt<InstanceInfo>;
  /**
   * Whether the instance is running. `left`: it ended cleanly. `dead`: its lease expired, and its
   * open calls were recovered.
   */
  readonly state: "live" | "left" | "dead";
  /** Time of the last heartbeat, in Unix milliseconds, by the store's clock. */
  readonly lastHeartbeatAt: number;
  /**
   * Number of milliseconds by which the instance's clock was ahead of the store's clock at that
   * heartbeat. Negative if it was behind. Unset if the store does not know.
   */
  readonly clockAheadMs?: Opt<number>;
  /**
   * Time for which the instance has been missing changes of keys or accounts, in milliseconds. 0 if
   * it has all changes. Unset if the store does not know. A revoked key may be accepted there for
   * that long.
   */
  readonly syncLagMs?: Opt<number>;
  /** Number of its calls that are not settled. */
  readonly openCalls?: Opt<number>;
}

/**
 * An event that a store reports to a gateway. New types can be added within API version 1. The host
 * ignores unknown types.
 */
export type StoreEvent =
  /** Another instance changed keys, so all cached keys are invalid. */
  | { readonly type: "keys_changed" }
  /** Another instance changed accounts. The host then reads all accounts again. */
  | { readonly type: "accounts_changed" }
  /**
   * The store cannot be reached, even after a retry. The host immediately rejects new calls,
   * including queued calls, and sends nothing to providers. Outstanding commands are sent when the
   * store responds again. The host detects this itself. The event is reported once per outage.
   * `reason` is a text for operators.
   */
  | { readonly type: "unavailable"; readonly reason: string }
  /**
   * The store cannot be reached, and this gateway continues with its budget leases.
   * `offline_ended`: the store is reachable again and received the given number of commands. During
   * that time, the store rejects individual reserves as `not_available_offline`.
   */
  | { readonly type: "offline_started"; readonly reason: string }
  | { readonly type: "offline_ended"; readonly commands: number }
  /**
   * The store received commands that an earlier process of this gateway had stored on its disk.
   * `commands` is the number of these commands.
   */
  | { readonly type: "spool_replayed"; readonly instance: string; readonly commands: number }
  /** A copy of the commands for the store cannot be written to this gateway's disk. */
  | { readonly type: "spool_failed"; readonly reason: string }
  /**
   * Thresholds were reached outside a settle result: by recovered calls of expired instances, or by
   * commands that were sent or added up later. Each threshold is reported once, and observers receive
   * it in the same way as the thresholds of settle results.
   */
  | { readonly type: "thresholds_reached"; readonly crossings: readonly ThresholdReached[] }
  /** Calls of an instance whose lease expired were settled as estimated. */
  | { readonly type: "calls_recovered"; readonly instance: string; readonly calls: number }
  /**
   * Rows that an instance wrote, in a range of `seq`, are lost. The database was restored to an
   * earlier state, and no instance had a copy.
   */
  | {
      /**
       * Rows of an instance are missing after the database was restored, and no instance has a
       * copy.
       */
      readonly type: "rows_lost";
      /** ID of the instance that wrote the rows. */
      readonly instance: string;
      /** `seq` of the first missing row. */
      readonly from: number;
      /** `seq` of the last missing row. */
      readonly to: number;
    };
