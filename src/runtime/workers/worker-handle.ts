// Represents a worker in the primary: its process, its requests, its open calls, and its exit.
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { Store } from "../../plugin/store/store.ts";
import type {
  ObservedRequest,
  IdempotencyClaim,
  IdempotencyOutcome,
  IdempotencyRegistry,
} from "../../pipeline/generation.ts";
import type { StatsSource } from "../health/stats-collector.ts";
import type { LiveSource } from "../requests/in-flight-requests.ts";
import type { LiveSocketSource } from "../sockets/live-sockets.ts";
import type { ObserverSink } from "../observers/observer-hub.ts";
import { trackReservations, type OpenReservations } from "./open-reservations.ts";
import { createIpcLink, type IpcChannel } from "./ipc-link.ts";
import { createStoreHandlers } from "./remote-store.ts";
import type { WorkerCommands } from "./worker-protocol.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Services } from "../services.ts";

/** Timeout of a stats query, in milliseconds. If it expires, the last stats are used. */
const STATS_TIMEOUT_MS = 1_000;

type WorkerReply<N extends keyof WorkerCommands> = Awaited<ReturnType<WorkerCommands[N]>>;

export interface WorkerHandle {
  /** Index of the worker. The process that replaces it has the same index. */
  readonly slot: number;
  readonly pid: number;
  readonly startedAt: number;
  readonly reservations: OpenReservations;
  /**
   * Calls the worker, and kills it if it does not respond in time, because its state could then be
   * outdated.
   */
  call<N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<WorkerReply<N>>;
  /** Calls the worker. Resolves with undefined if it does not respond in time or ends. */
  tryCall<N extends keyof WorkerCommands>(
    name: N,
    withinMs: number,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<WorkerReply<N> | undefined>;
  /** Source of the worker's live stats and open requests. */
  readonly statsSource: StatsSource & LiveSource & LiveSocketSource;
  /** Sends a message that has no response, even before the worker serves requests. */
  notify<N extends "updateModelLists" | "updatePrices" | "setLedgerAvailability">(
    name: N,
    ...args: Parameters<WorkerCommands[N]>
  ): void;
  kill(): void;
  /**
   * Returns the number of connections that are being sent to the worker. While connections wait for
   * a worker, one connection is being sent to each worker.
   */
  pendingConnections(): number;
  /**
   * Resolves with the exit reason when the worker has ended and everything that it sent was
   * received.
   */
  readonly exited: Promise<string>;
}

/** Services that the primary provides to a worker. */
interface WorkerHandleOptions {
  store: Store;
  usageQueries: Pick<Store, "listEntries" | "sumEntries">;
  /** Records of jobs, which the store keeps. Undefined if it keeps none. */
  jobs?: Services["jobs"];
  apply: Store["apply"];
  /**
   * Called when the worker reports a problem. The worker finishes its open requests and needs a
   * replacement.
   */
  onUnhealthy: () => void;
  /** Called when the store receives none of the worker's rows. */
  onStoreFailure: (why: string) => void;
  /** Called when the worker did not respond in time and is killed. */
  onTimeout: (command: string, withinMs: number) => void;
  /** Receives the worker's records and events for observers. */
  observerSink: Pick<
    ObserverSink,
    "reportRequest" | "reportRejection" | "reportEvent" | "processExited"
  >;
  /** Registry of idempotency keys of all processes. */
  idempotency: IdempotencyRegistry;
  /** Queries other instances of a plugin on the worker's behalf. */
  pluginPeers: (id: string, question: unknown, near?: boolean) => Promise<unknown>;
  /** Returns the live stats of all processes on the worker's behalf. */
  stats: () => Promise<unknown>;
  /** Whether another worker accepts connections. */
  hasOtherWorkers: () => boolean;
}

export function spawnWorker(place: number, options: WorkerHandleOptions): WorkerHandle {
  const forked = cluster.fork();
  const { process: child } = forked;
  // Sending a connection to a worker that has just died fails. The exit is reported separately.
  forked.on("error", () => {});
  const reservations = trackReservations(options.apply);
  const link = createIpcLink(child as IpcChannel, {
    ...createStoreHandlers(
      options.store,
      options.usageQueries,
      reservations.apply,
      options.jobs ?? undefined,
    ),
    reportUnhealthy: options.onUnhealthy,
    reportStoreFailure: options.onStoreFailure,
    askPeers: options.pluginPeers,
    readStats: options.stats,
    claim: (claim: IdempotencyClaim) => options.idempotency.claim(claim, child),
    completeClaim: (claim: IdempotencyClaim, outcome?: IdempotencyOutcome) =>
      options.idempotency.complete(claim, outcome),
    reportRequest: (records: readonly ObservedRequest[]) =>
      records.forEach((each) => options.observerSink.reportRequest(each, place)),
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
        throw new Error(`A worker exited (${await exited}).`, { cause: error });
      } finally {
        clearTimeout(timer);
      }
    },
    tryCall: wonder,
    statsSource: {
      readStats: () => wonder("readStats", STATS_TIMEOUT_MS),
      readLiveRequests: () => wonder("listInFlight", STATS_TIMEOUT_MS),
      readLiveSockets: () => wonder("listSockets", STATS_TIMEOUT_MS),
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

// Handles connections that were being sent to a worker that ended. Node's cluster module waits
// forever for the worker to acknowledge such a connection, and so does the client. A child with a
// pending handle also never emits "disconnect", so all code that waits for it hangs. This module
// solves both problems. The acknowledgment precedes any read, so no data is lost if another worker
// receives the connection.

/**
 * Marks internal messages of the cluster module. The messages are undocumented, so messages in
 * another format are forwarded unchanged.
 */
const CLUSTER_COMMAND = "NODE_CLUSTER";

interface ClusterMessage {
  readonly cmd?: string;
  readonly act?: string;
  readonly seq?: number;
  readonly ack?: number;
}

interface PendingConnection {
  readonly seq: number;
  readonly connection: { close(): void };
}

/**
 * Returns a function with the number of connections on their way.
 * @param hasOtherWorkers Whether another worker accepts connections. If none does, the connection
 *   is closed.
 */
export function reassignPendingConnections(
  child: ChildProcess,
  hasOtherWorkers: () => boolean,
): () => number {
  /** Pending connections. There is at most one connection per port. */
  let pending: readonly PendingConnection[] = [];
  let isDisconnected = false;
  const send = child.send.bind(child) as (...args: unknown[]) => boolean;
  child.send = ((
    message: ClusterMessage,
    connection?: PendingConnection["connection"],
    ...more: unknown[]
  ) => {
    const { cmd, act, seq } = message;
    if (connection && cmd === CLUSTER_COMMAND && act === "newconn" && seq !== undefined)
      pending = [...pending, { seq, connection }];
    return send(message, connection, ...more);
  }) as ChildProcess["send"];
  child.on("internalMessage", ({ cmd, ack }: ClusterMessage) => {
    if (cmd === CLUSTER_COMMAND && ack !== undefined)
      pending = pending.filter(({ seq }) => seq !== ack);
  });
  // Runs after the cluster module's own handler, so no more messages are sent to this worker.
  child.once("disconnect", () => {
    isDisconnected = true;
    const orphaned = pending;
    pending = [];
    for (const { seq, connection } of orphaned)
      // A worker that is about to end sends this message.
      if (hasOtherWorkers())
        child.emit("internalMessage", { cmd: CLUSTER_COMMAND, ack: seq, accepted: false });
      else connection.close();
  });
  // The child has ended, and everything that it sent was read.
  child.once("close", () => {
    if (!isDisconnected) child.emit("disconnect");
  });
  return () => pending.length;
}

// Handles the end of a worker: logs it, and settles its open calls.

export function reportWorkerExit(
  { log, observerSink }: Services,
  { slot, pid, reservations }: WorkerHandle,
  how: string,
): void {
  const of = { worker: slot, pid, exitReason: how, openCalls: reservations.size };
  log.error(of, "worker exited, its open calls settled as estimated");
  observerSink.reportEvent({ type: "worker_exited", at: wallClock(), ...of });
}

/** Settles the open calls in the same way as recovery, from the known facts of each call. */
export async function settleOpenReservations(
  { ledgerQueue, log }: Services,
  { reservations }: WorkerHandle,
): Promise<void> {
  for (const call of await reservations.settleAll(wallClock()))
    ledgerQueue.settle(call).catch((error: unknown) => {
      log.error({ err: error, attempt: call.attempt }, "call settlement failed");
    });
}
