// One worker as the primary sees it: a process, what it may ask, what it has open, and its end.
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { ObservedRequest } from "../../pipeline/generation.ts";
import type { StatsSource } from "../health/stats-collector.ts";
import type { LiveSource } from "../requests/in-flight-requests.ts";
import type {
  IdempotencyClaim,
  IdempotencyOutcome,
  IdempotencyRegistry,
} from "../../pipeline/exchange/idempotency.ts";
import type { ObserverSink } from "../observers/observer-hub.ts";
import { reassignPendingConnections } from "./reassign-connections.ts";
import { trackReservations, type OpenReservations } from "./open-reservations.ts";
import { createIpcLink, type IpcChannel } from "./ipc-link.ts";
import { createStoreHandlers } from "./remote-store.ts";
import type { WorkerCommands } from "./worker-protocol.ts";

/** A reading is of now, or it is the last one. */
const STATS_TIMEOUT_MS = 1_000;

type WorkerReply<N extends keyof WorkerCommands> = Awaited<ReturnType<WorkerCommands[N]>>;

export interface WorkerHandle {
  /** Of this place among the workers; the process that takes over has it too. */
  readonly slot: number;
  readonly pid: number;
  readonly startedAt: number;
  readonly reservations: OpenReservations;
  /** Asks, and ends a worker that does not answer in time: it might go on with what is not wanted any more. */
  call<N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<WorkerReply<N>>;
  /** Asks what may stay unanswered: then, or when it ends, it is undefined. */
  tryCall<N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<WorkerReply<N> | undefined>;
  /** Its readings. */
  readonly statsSource: StatsSource & LiveSource;
  /** Without an answer, also before it serves. */
  notify<N extends "updateModelLists" | "setLedgerAvailability">(
    name: N,
    ...args: Parameters<WorkerCommands[N]>
  ): void;
  kill(): void;
  /** How many connections are on their way to it. Those that wait for a worker do so while each has one. */
  pendingConnections(): number;
  /** Resolves, with how it ended, when it has and everything that it had sent is here. */
  readonly exited: Promise<string>;
}

/** What the primary does for a worker. */
interface WorkerHandleOptions {
  store: Store;
  usageQueries: Pick<Store, "listEntries" | "sumEntries">;
  apply: Store["apply"];
  /** It says that something is wrong with it: it goes on with what it has, and wants nothing new. */
  onUnhealthy: () => void;
  /** No row of it gets through to the store. */
  onStoreFailure: (why: string) => void;
  /** It does not answer, and is ended. */
  onTimeout: (asked: string, withinMs: number) => void;
  /** What it has to tell observers. */
  observerSink: Pick<
    ObserverSink,
    "reportRequest" | "reportRejection" | "reportEvent" | "processExited"
  >;
  /** Requests with an Idempotency-Key, of all processes. */
  idempotency: IdempotencyRegistry;
  /** It asks on behalf of a plugin what that plugin's others know. */
  pluginPeers: (id: string, question: unknown, near?: boolean) => Promise<unknown>;
  /** The same, for what all processes are like. */
  stats: () => Promise<unknown>;
  /** Whether another one takes connections. */
  hasOtherWorkers: () => boolean;
}

export function spawnWorker(place: number, options: WorkerHandleOptions): WorkerHandle {
  const forked = cluster.fork();
  const { process: child } = forked;
  // A connection cannot be handed to a worker that has just died; its end is told by itself.
  forked.on("error", () => {});
  const reservations = trackReservations(options.apply);
  const link = createIpcLink(child as IpcChannel, {
    ...createStoreHandlers(options.store, options.usageQueries, reservations.apply),
    reportUnhealthy: options.onUnhealthy,
    reportStoreFailure: options.onStoreFailure,
    askPeers: options.pluginPeers,
    readStats: options.stats,
    claim: (claim: IdempotencyClaim) => options.idempotency.claim(claim, child),
    completeClaim: (claim: IdempotencyClaim, outcome?: IdempotencyOutcome) =>
      options.idempotency.complete(claim, outcome),
    reportRequest: (heard: readonly ObservedRequest[]) =>
      heard.forEach((each) => options.observerSink.reportRequest(each, place)),
    reportRejection: (refusals: readonly RejectedRequest[]) =>
      refusals.forEach((each) => options.observerSink.reportRejection(each)),
    reportEvent: (notice: GatewayEvent) => options.observerSink.reportEvent(notice, child),
  });
  const wonder: WorkerHandle["tryCall"] = <N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ) =>
    Promise.race([
      link.call<WorkerReply<N>>(name, ...args).catch(() => undefined),
      sleep(withinMs, undefined, { ref: false }),
    ]);
  const exited = whenExited(child);
  void exited.then(() => {
    options.observerSink.processExited(child);
    options.idempotency.ownerExited(child);
  });
  return {
    slot: place,
    pid: child.pid!,
    startedAt: performance.now(),
    reservations,
    async call<N extends keyof WorkerCommands>(
      name: N,
      withinMs: number,
      ...args: Parameters<WorkerCommands[N]>
    ): Promise<WorkerReply<N>> {
      const timer = setTimeout(() => {
        options.onTimeout(name, withinMs);
        child.kill("SIGKILL");
      }, withinMs);
      try {
        return await link.call<WorkerReply<N>>(name, ...args);
      } catch (error) {
        if (child.connected) throw error;
        throw new Error(`A worker has ended (${await exited}).`, { cause: error });
      } finally {
        clearTimeout(timer);
      }
    },
    tryCall: wonder,
    statsSource: {
      readStats: () => wonder("readStats", STATS_TIMEOUT_MS),
      readLiveRequests: () => wonder("listInFlight", STATS_TIMEOUT_MS),
    },
    notify: link.notify,
    kill: () => void child.kill("SIGKILL"),
    pendingConnections: reassignPendingConnections(child, options.hasOtherWorkers),
    exited,
  };
}

const whenExited = async (child: ChildProcess): Promise<string> => {
  const disconnected = new Promise<void>((resolve) => child.once("disconnect", resolve));
  const how = await new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    if (child.pid === undefined) child.once("error", (error) => resolve(error.message));
  });
  if (child.connected) await disconnected;
  return how;
};
