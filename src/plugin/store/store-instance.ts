// Gateways that share a store, as the store knows them.
import type { Opt } from "../../model/values.ts";
import type { ThresholdReached } from "./limit.ts";

/** What opens a store: one gateway process. */
export interface StoreInstance {
  /** ID of the process, new at each start. */
  instance: string;
  /** Where it runs; for people. */
  info?: Opt<InstanceInfo>;
}

/** What an instance says of itself when it opens the store, and with each sign of life. */
export interface InstanceInfo {
  /** Version of Tollgate. */
  readonly version: string;
  /** Name of the machine. */
  readonly host: string;
  /** ID of the primary process. */
  readonly pid: number;
  /** command: a program of the command line that has opened the store for one task. Absent: it is a gateway. */
  readonly program?: Opt<"gateway" | "command">;
  /** How many processes of it answer clients. */
  readonly workers?: Opt<number>;
  /** Where it answers clients, as one on its machine says it. Absent: it does not answer yet. */
  readonly url?: Opt<string>;
  /** Where other gateways on its store reach it. Absent: nowhere. */
  readonly address?: Opt<string>;
  /** Number of the config generation. It increases with each reload. */
  readonly generation?: Opt<number>;
  /** Hash of the config, the same for gateways with the same files. */
  readonly config?: Opt<string>;
}

/** An instance, as the store knows it. */
export interface InstanceState {
  /** ID of the process. */
  readonly instance: string;
  /** What the instance reported about itself. */
  readonly info?: Opt<InstanceInfo>;
  /** left: it ended in good order. dead: its lease was over, and what it had open is recovered. */
  readonly state: "live" | "left" | "dead";
  /** When a sign of life came last, in Unix milliseconds, by the store's clock. */
  readonly lastHeartbeatAt: number;
  /** How far its clock was ahead of the store's at that sign of life, in milliseconds; below 0: behind. Absent: the store does not know. */
  readonly clockAheadMs?: Opt<number>;
  /**
   * For how long there have been changes of keys or accounts that it does not know of; 0: it knows of all. Absent: the store does not
   * know. A key that was revoked may be good there for so long.
   */
  readonly syncLagMs?: Opt<number>;
  /** Calls that it has begun and that nothing has settled. */
  readonly openCalls?: Opt<number>;
}

/** What a store tells a gateway. New types are added within api 1: one that the host does not know is passed over. */
export type StoreEvent =
  /** Another instance has changed keys: nothing that is remembered of any key counts any more. */
  | { readonly type: "keys_changed" }
  /** Another instance has changed accounts: the host asks for all of them again. */
  | { readonly type: "accounts_changed" }
  /**
   * The store cannot be reached, and has been asked again. The host refuses every new call at once, those that wait too, and sends
   * nothing upstream; what is owed is told when the store answers, which the host finds out by itself. Told once for each time; `reason` is
   * for people.
   */
  | { readonly type: "unavailable"; readonly reason: string }
  /**
   * The store cannot be reached, and this gateway goes on by itself with what it has set aside of budgets; `offline_ended`: it is reached again,
   * and was told so many commands that it did not know. In between it refuses single reserves as `not_available_offline`.
   */
  | { readonly type: "offline_started"; readonly reason: string }
  | { readonly type: "offline_ended"; readonly commands: number }
  /** What an earlier process of this gateway has left on its disk was told: so many commands. */
  | { readonly type: "spool_replayed"; readonly instance: string; readonly commands: number }
  /** A copy of what is told cannot be kept on this gateway's disk. */
  | { readonly type: "spool_failed"; readonly reason: string }
  /**
   * What was counted here and is no verdict of a settle crossed these: calls of the dead that were recovered, what was told later or added up
   * later. Each once, and told to the observers as those of verdicts are.
   */
  | { readonly type: "thresholds_reached"; readonly crossings: readonly ThresholdReached[] }
  /** Calls of an instance that was taken for dead were settled as estimated. */
  | { readonly type: "calls_recovered"; readonly instance: string; readonly calls: number }
  /** Rows that an instance had written are gone, from one seq to another: the database was set back, and no instance had a copy. */
  | {
      /** Rows of an instance are missing after the database was restored, and no instance has a copy. */
      readonly type: "rows_lost";
      /** ID of the instance that wrote the rows. */
      readonly instance: string;
      /** `seq` of the first missing row. */
      readonly from: number;
      /** `seq` of the last missing row. */
      readonly to: number;
    };
