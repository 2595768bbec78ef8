// What the gateway tells observers of itself.
import type { ErrorKind } from "../model/error.ts";
import type { Opt } from "../model/values.ts";
import type { ThresholdReached } from "./store/limit.ts";

/** A hook that is not asked for a while, because it failed again and again. Plain data. */
export interface QuarantinedHook {
  /** As gateway.yaml mounts it: "middleware.guard". */
  readonly plugin: string;
  /** "rewrite", "onRequests", "handle" */
  readonly hook: string;
  /** Its last failure. threw: what is no refusal. timeout: it took longer than it may. invalid: what it gave cannot be used. */
  readonly reason: "threw" | "timeout" | "invalid";
  /** Unix milliseconds. After it one request goes to see. */
  readonly until: number;
}

/** Something that the gateway tells of itself. New types are added within api 1: what is not known is passed over. */
export type GatewayEvent = Readonly<{ at: number }> &
  (
    | Readonly<{
        /**
         * A reload, by command or after a change of a file. Told with `ok: true` also when the file says again what runs, after a
         * refusal; the same refusal is told once.
         */
        type: "reloaded";
        /** What triggered the reload: a changed file, a signal, or a command. */
        trigger: "file" | "signal" | "command";
        /** False: the config was refused, and the generation before goes on. */
        ok: boolean;
        /** The one that answers now. */
        generation: number;
        /** Of a refusal: its first error with file, line, and column, and how many more there are. Secrets are masked. */
        reason?: Opt<string>;
      }>
    | Readonly<{
        /**
         * A signal or a command asks for a reload. Told before a file is read, and whether or not anything has changed: what keeps
         * a file open opens it anew, so that an old one may be put away.
         */
        type: "reload_requested";
        /** What triggered the reload. */
        trigger: "signal" | "command";
      }>
    | Readonly<{
        /** After a failure a provider's credential, for one model or for all, is tried last for a while. */
        type: "cooldown_started";
        /** Name of the provider in gateway.yaml. */
        provider: string;
        /** Name of the credential. */
        credential: string;
        /** null: all of its models. */
        model: string | null;
        /** Kind of failure. */
        reason: ErrorKind;
        /** Unix milliseconds. */
        until: number;
      }>
    | Readonly<{
        /**
         * What has rested answers again: told once, by the first answer after the failure. Each process has its own view of
         * what rests, so with several workers a rest and its end may be told by each.
         */
        type: "cooldown_ended";
        /** Name of the provider in gateway.yaml. */
        provider: string;
        /** Name of the credential. */
        credential: string;
        /** null: it was all of its models. */
        model: string | null;
      }>
    | (Readonly<{
        /**
         * What a limit has counted went over 50, 80, 95 or 100 per cent of it, by day, week, month or in total. Once in a
         * window, over all processes and restarts, also where a correction takes it down and it goes over again; a limit that is raised
         * has parts of its own. A kill in that moment may have it told twice, with the same window, limit and percentage, or, with a
         * store that does not keep crossings, not at all.
         */
        type: "budget_threshold_reached";
      }> &
        Readonly<ThresholdReached>)
    | Readonly<{
        /** A key was made, changed, given a new secret, or ended, while the gateway ran. */
        type: "key";
        /** What happened to the key. */
        change: "created" | "moved" | "updated" | "rotated" | "revoked";
        /** Its id; no name, for that may be a person. */
        key: string;
      }>
    | Readonly<{
        /** An account of the store was made, changed, moved or ended, while the gateway ran. */
        type: "account";
        /** What happened to the account. */
        change: "created" | "moved" | "updated" | "closed";
        /** Its id; no name. */
        account: string;
      }>
    | Readonly<{
        /** Once for all processes. False: the ledger takes no rows, and new calls are refused. True: it takes them again. */
        type: "ledger";
        /** Whether the ledger accepts rows. */
        ok: boolean;
      }>
    | Readonly<{
        /** A worker process has ended by itself; another one takes its place. */
        type: "worker_exited";
        /** Place of the worker, from 1. */
        worker: number;
        /** Process ID of the worker that ended. */
        pid: number;
        /** "SIGKILL", "exit code 1". */
        exitReason: string;
        /** Calls that it had open, settled as estimated. */
        openCalls: number;
      }>
    | (Readonly<{
        /**
         * A hook of a plugin has failed five times in a row, and is not asked for a while: `docs/plugins/failures.md` says what that
         * means for each kind. Told once until it is released; each process has its own view, as of what rests.
         */
        type: "quarantined";
        /** In a row, before. */
        failures: number;
      }> &
        QuarantinedHook)
    | Readonly<{
        /** A hook that was in quarantine has done its work again. */
        type: "released";
        /** "middleware.guard" */
        plugin: string;
        /** Name of the hook. */
        hook: string;
      }>
    | Readonly<{
        /** This observer was too slow: so many records were not kept for it since the last such notice. */
        type: "records_dropped";
        /** Number of records that were dropped. */
        records: number;
      }>
  );
