// Messages between the primary and its workers. All messages are plain data.
import type { ModelList } from "../../catalog/model-lists.ts";
import type { PriceBook } from "../../catalog/prices/price-book.ts";
import type { FileTexts } from "../../config/source/config-files.ts";
import type { ConfigOverrides } from "../../config/expand-config.ts";
import type { LocatedProblem } from "../../config/gateway-config.ts";
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { BoundAddress } from "../http/listen-targets.ts";
import type { LedgerOutage } from "../services/ledger-availability.ts";
import { type LocalStats, worseCooldown } from "../health/process-stats.ts";
import type { LiveRequest } from "../requests/in-flight-requests.ts";
import type { LiveSocket } from "../sockets/live-sockets.ts";
import type { WorkerStatus, GatewayStatus } from "../gateway-api.ts";

/**
 * A generation that the worker builds. The same config texts produce the same generation in every
 * process.
 */
export interface WorkerGeneration {
  readonly generation: number;
  /** Path of gateway.yaml. Undefined if the config that ships with the package is used. */
  readonly file: string | undefined;
  readonly configTexts: FileTexts;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly overrides: ConfigOverrides;
}

/** Commands to a worker. The commands are executed in the order in which they are sent. */
export type WorkerCommands = {
  /** Builds a generation without serving it. */
  prepareGeneration(order: WorkerGeneration): Promise<readonly LocatedProblem[]>;
  /**
   * Serves the prepared generation. The first call also opens every port. Returns their public
   * URLs.
   */
  commitGeneration(at: readonly BoundAddress[]): Promise<readonly string[]>;
  /** Discards the prepared generation. */
  abandonGeneration(): Promise<void>;
  /** Replaces a provider's live model lists. */
  updateModelLists(provider: string, lists: readonly ModelList[] | undefined): void;
  /** Replaces the prices of the price feed. */
  updatePrices(book: PriceBook | undefined): void;
  /** Clears all cached keys. */
  invalidateKeys(): void;
  /** Ends the cooldowns of a provider, or of one of its credentials. */
  resetCooldowns(provider: string, credential: string | undefined): void;
  /** Replaces the cached record of an account. */
  accountChanged(record: AccountRecord): void;
  /** Reloads all accounts. Used when the changed accounts are unknown. */
  reloadAccounts(): Promise<void>;
  /** Sets whether the ledger accepts rows, so that every process reports the same state. */
  setLedgerAvailability(trouble: LedgerOutage | undefined): void;
  /** Answers a query from the same plugin in another process. */
  askPlugin(id: string, question: unknown): unknown;
  readStatus(): WorkerStatus;
  /** Returns the live stats of this process. */
  readStats(): LocalStats;
  /** Returns the open requests of this process. */
  listInFlight(): readonly LiveRequest[];
  /** Returns the open WebSockets of this process. */
  listSockets(): readonly LiveSocket[];
  /** Closes a WebSocket for an operator. Returns false if this process has no such socket. */
  closeSocket(id: string): boolean;
  /**
   * Makes `/readyz` report the shutdown while all requests are still served. Returns whether
   * `/readyz` was queried before.
   */
  announceShutdown(): boolean;
  /**
   * Stops accepting requests, and ends when open requests are finished. Returns the number of
   * aborted requests. `succeeded`: another gateway already serves the same ports.
   */
  stop(drainMs: number, succeeded: boolean): Promise<number>;
};

/** Commands that are sent to all serving workers. */
export type BroadcastName =
  | "invalidateKeys"
  | "resetCooldowns"
  | "accountChanged"
  | "reloadAccounts"
  | "setLedgerAvailability";

// Merges the status of all processes of a gateway.

export function mergeStatus(
  primary: GatewayStatus,
  workers: readonly WorkerStatus[] | undefined,
): GatewayStatus {
  if (!workers) return primary;
  const inFlight = new Map(primary.generations.map((each) => [each.generation, each.inFlight]));
  const resting = new Map<string, GatewayStatus["cooldowns"][number]>();
  // Observers run in the primary, and other plugins in the workers.
  const all = [primary, ...workers].flatMap(({ quarantinedHooks }) => quarantinedHooks);
  const quarantined = new Map<string, GatewayStatus["quarantinedHooks"][number]>();
  for (const one of all.toSorted((a, b) => a.until - b.until))
    quarantined.set(`${one.plugin} ${one.hook}`, one);
  // Only workers serve requests, so only the outages that they report count.
  const unreachable = new Map<string, GatewayStatus["unreachablePlugins"][number]>();
  for (const one of workers.flatMap((worker) => worker.unreachablePlugins))
    if (one.since < (unreachable.get(one.plugin)?.since ?? Infinity))
      unreachable.set(one.plugin, one);
  const latencies = new Map<string, GatewayStatus["latencies"][number]>();
  const files = { ...primary.files };
  for (const worker of workers) {
    for (const { generation, inFlight: more } of worker.generations)
      inFlight.set(generation, (inFlight.get(generation) ?? 0) + more);
    for (const rest of worker.cooldowns)
      resting.set(rest.target, worseCooldown(resting.get(rest.target), rest));
    for (const latency of worker.latencies) {
      const key = `${latency.target} ${latency.stream}`;
      if (latency.calledAt > (latencies.get(key)?.calledAt ?? 0)) latencies.set(key, latency);
    }
    // All processes share one directory and count its files periodically, so the maximum of the
    // counts is used. Operation counts are per process and are added.
    files.files = Math.max(files.files, worker.files.files);
    files.bytes = Math.max(files.bytes, worker.files.bytes);
    for (const count of ["stored", "served", "rejected", "expired"] as const)
      files[count] += worker.files[count];
  }
  return {
    ...primary,
    generations: [...inFlight]
      .map(([generation, flying]) => ({ generation, inFlight: flying }))
      .sort((a, b) => b.generation - a.generation),
    cooldowns: [...resting.values()],
    quarantinedHooks: [...quarantined.values()],
    unreachablePlugins: [...unreachable.values()],
    // Each process measures its own latencies. The status contains the latencies of the process
    // that called the target last.
    latencies: [...latencies.values()],
    files,
    workers,
  };
}
