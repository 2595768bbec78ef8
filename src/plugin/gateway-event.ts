// Events that the gateway reports to observers about itself.
import type { JobOrigin } from "./store/job-kind.ts";
import type { ErrorKind } from "../model/error.ts";
import type { JsonObject, Opt } from "../model/values.ts";
import type { ThresholdReached } from "./store/limit.ts";

/** A hook in quarantine: it failed repeatedly and is not called for some time. Plain data. */
export interface QuarantinedHook {
  /** Path of the plugin in gateway.yaml, such as "middleware.guard". */
  readonly plugin: string;
  /** Name of the hook, such as "rewrite", "onRequests", or "handle". */
  readonly hook: string;
  /**
   * Kind of the last failure. `threw`: an error other than a fault from `fail()`. `timeout`: the
   * hook exceeded its maximum run time. `invalid`: the hook returned an unusable value.
   */
  readonly reason: "threw" | "timeout" | "invalid";
  /**
   * End of the quarantine, in Unix milliseconds. When it has ended, one request probes the hook.
   */
  readonly until: number;
}

/**
 * An event that the gateway reports about itself. New types can be added within API version 1, so
 * ignore unknown types.
 */
export type GatewayEvent = Readonly<{ at: number }> &
  (
    | Readonly<{
        /**
         * A reload has ended. It was triggered by a command, a signal, or a changed file. If the
         * file is changed back to the running config after a rejected config, this is also reported
         * with `ok: true`. Repetitions of the same rejection are not reported.
         */
        type: "reloaded";
        /** Trigger of the reload: a changed file, a signal, or a command. */
        trigger: "file" | "signal" | "command";
        /** Whether the config was accepted. If false, the previous generation stays in use. */
        ok: boolean;
        /** Number of the config generation that is in use now. */
        generation: number;
        /**
         * Reason for the rejection: the first error with file, line, and column, and the number of
         * further errors. Secrets are masked.
         */
        reason?: Opt<string>;
      }>
    | Readonly<{
        /**
         * A signal or a command requested a reload. This event is reported before any file is read,
         * even if nothing has changed. Observers that keep a file open should reopen it, so that
         * log files can be rotated.
         */
        type: "reload_requested";
        /** Trigger of the reload. */
        trigger: "signal" | "command";
      }>
    | Readonly<{
        /**
         * A provider's credential was put in cooldown after a failure, for one model or for all.
         * Until the cooldown ends, the credential is tried last.
         */
        type: "cooldown_started";
        /** Name of the provider in gateway.yaml. */
        provider: string;
        /** Name of the credential. */
        credential: string;
        /** The provider's name of the model. `null`: all models of the credential. */
        model: string | null;
        /** Kind of failure. */
        reason: ErrorKind;
        /** End of the cooldown, in Unix milliseconds. */
        until: number;
      }>
    | Readonly<{
        /**
         * A target that was in cooldown responded successfully. The first successful response after
         * the failure is reported. Each process tracks cooldowns separately, so several workers can
         * each report the start and end of a cooldown.
         */
        type: "cooldown_ended";
        /** Name of the provider in gateway.yaml. */
        provider: string;
        /** Name of the credential. */
        credential: string;
        /** The provider's name of the model. `null`: all models of the credential. */
        model: string | null;
      }>
    | (Readonly<{
        /**
         * The usage of a limit by day, week, month, or in total exceeded 50, 80, 95, or 100% of the
         * limit.
         *
         * The event is reported once per window, across all processes and restarts. It is not
         * repeated if a correction lowers the usage and the usage rises again. A raised limit has
         * new thresholds. If the process is killed at that time, the event can be reported twice
         * with the same window, limit, and percentage. If the store does not record thresholds, the
         * event can be lost.
         */
        type: "budget_threshold_reached";
      }> &
        Readonly<ThresholdReached>)
    | Readonly<{
        /** A key was created, moved, changed, rotated, or revoked while the gateway was running. */
        type: "key";
        /** Type of the change. */
        change: "created" | "moved" | "updated" | "rotated" | "revoked";
        /** ID of the key. The name is not reported, because it may identify a person. */
        key: string;
      }>
    | Readonly<{
        /**
         * An account of the store was created, changed, moved, or closed while the gateway was
         * running.
         */
        type: "account";
        /** Type of the change. */
        change: "created" | "moved" | "updated" | "closed";
        /** ID of the account. The name is not reported. */
        account: string;
      }>
    | Readonly<{
        /**
         * The ledger became unavailable or available again. It is reported once for all processes.
         * While the ledger is unavailable, new calls are rejected.
         */
        type: "ledger";
        /** Whether the ledger accepts rows. */
        ok: boolean;
      }>
    | Readonly<{
        /** A worker process exited unexpectedly. A new process replaces it. */
        type: "worker_exited";
        /** Number of the worker, from 1. */
        worker: number;
        /** Process ID of the worker that ended. */
        pid: number;
        /** Reason why the worker exited, such as "SIGKILL" or "exit code 1". */
        exitReason: string;
        /** Number of open calls of the worker, which were settled as estimated. */
        openCalls: number;
      }>
    | (Readonly<{
        /**
         * A hook failed 5 times in a row and is not called for some time. See
         * `docs/plugins/failures.md` for the effect on each kind of plugin. This event is reported
         * once until the quarantine ends. Each process tracks hooks separately, as it does for
         * cooldowns.
         */
        type: "quarantined";
        /** Number of consecutive failures. */
        failures: number;
      }> &
        QuarantinedHook)
    | Readonly<{
        /** A hook that was in quarantine succeeded again. */
        type: "released";
        /** Path of the plugin in gateway.yaml, such as "middleware.guard". */
        plugin: string;
        /** Name of the hook. */
        hook: string;
      }>
    | Readonly<{
        /**
         * A budget in US dollars will be exhausted within 7 days, before it resets, if the spend
         * per day stays as it was on the last 14 complete days. It is reported once per window of
         * the budget.
         */
        type: "budget_exhausts";
        /** Holder of the budget, such as "key:k1" or "account:acme/research". */
        scope: string;
        /** The limit as text, such as "usd=100/month". */
        limit: string;
        /** Amounts in US dollars, as decimals. */
        usedUsd: string;
        /** Maximum of the budget. */
        maxUsd: string;
        /** Mean spend per day. */
        perDayUsd: string;
        /** Time at which the budget will be exhausted, in Unix milliseconds. */
        exhaustsAt: number;
        /** Time at which the budget resets, in Unix milliseconds. Unset for a total budget. */
        resetsAt?: Opt<number>;
      }>
    | Readonly<{
        /**
         * A job ended, such as a batch. It is reported once, by the gateway that ended it. If the
         * process is killed at that time, the event can be lost.
         */
        type: "job_ended";
        /** Kind of the job, such as `batch`. */
        kind: string;
        /** ID of the job, as clients see it. */
        job: string;
        /** How the job ended. */
        status: "completed" | "failed" | "expired" | "canceled";
        /** ID of the key that created the job. */
        key: string;
        /** The key's account when the job was created. */
        account?: Opt<string>;
        /** Time at which the job was created, in Unix milliseconds. */
        createdAt: number;
        /** Model name, as the client wrote it. */
        model?: Opt<string>;
        /** Names of the providers in gateway.yaml that ran the job. */
        providers?: Opt<readonly string[]>;
        /** Cost in US dollars, as a decimal. Unset if unknown. */
        costUsd?: Opt<string>;
        /** The request that created the job, with its trace. */
        origin?: Opt<JobOrigin>;
      }>
    | Readonly<{
        /** A plugin reported an event with `ctx.reportEvent`. */
        type: "plugin_event";
        /** Path of the plugin in gateway.yaml, such as "observers.reconcile". */
        plugin: string;
        /** Name that the plugin gave the event, such as "bill_differs". */
        name: string;
        /** Details of the event. */
        data: JsonObject;
      }>
    | Readonly<{
        /** This observer was too slow, so records for it were dropped. */
        type: "records_dropped";
        /** Number of records that were dropped since the last such event. */
        records: number;
      }>
  );
