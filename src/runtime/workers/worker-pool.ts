// Manages the workers in the primary: starts them together, keeps them on the same generation, and
// replaces workers that die. Open calls of a dead worker are settled immediately. May import: the
// gateway layer and below. It is independent of requests.
import cluster from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { childProcessFlags } from "../../lib/disable-debugger.ts";
import { problem } from "../../config/problems.ts";
import type { LocatedProblem, GatewayConfig } from "../../config/gateway-config.ts";
import type { ProblemLocator } from "../plugin-host/plugin-setup.ts";
import { type BoundAddress, reserveAddress } from "../http/listen-targets.ts";
import type { WorkerStatus } from "../gateway-api.ts";
import type { StatsSource } from "../health/stats-collector.ts";
import type { LiveSource } from "../requests/in-flight-requests.ts";
import type { LiveSocketSource } from "../sockets/live-sockets.ts";
import { createBatchForwarder } from "./batch-forwarder.ts";
import {
  settleOpenReservations,
  reportWorkerExit,
  spawnWorker,
  type WorkerHandle,
} from "./worker-handle.ts";
import type { BroadcastName, WorkerCommands, WorkerGeneration } from "./worker-protocol.ts";
import { afterPendingReads } from "../http/connection-counter.ts";
import type { Services } from "../services.ts";

// Dependencies of the worker pool.
interface WorkerPoolOptions {
  readonly size: number;
  /** Program that a worker runs. */
  readonly program: string;
  readonly services: Services;
  readonly listen: GatewayConfig["listen"];
  /** Descriptors that were already open when the gateway started, for the first addresses. */
  readonly inheritedDescriptors: readonly number[];
  /** Stops accepting connections at an address in this process. */
  readonly stopAccepting: (place: BoundAddress) => void;
  /** Returns the time that open requests may take during a shutdown, in milliseconds. */
  readonly shutdownTimeoutMs: () => number;
  /** Called when no worker stays up. */
  readonly onFailed: (error: Error) => void;
  /** Called when a worker has ended. */
  readonly onWorkerExit: (source: StatsSource) => void;
}

// Returns the problems of the first worker that has any problems. All workers have the same
// problems.
async function firstProblems(
  responses: readonly Promise<readonly LocatedProblem[]>[],
): Promise<readonly LocatedProblem[]> {
  // Waits until all workers have responded, so that no worker is still building an unused
  // generation.
  await Promise.allSettled(responses);
  const all = await Promise.all(responses);
  return all.find((problems) => problems.some((p) => p.severity === "error")) ?? [];
}

// Drains the accept queue before all workers end. When the last worker ends, Node's cluster module
// closes accepted connections that no worker has received. The primary therefore stops accepting
// first, and distributes the accepted connections.
/**
 * How long pending connections are awaited, in milliseconds. A worker that has not taken its
 * connection at the end of this time will not take it.
 */
const TIMEOUT_MS = 5_000;
const POLL_MS = 5;
/**
 * Waits until all accepted connections are distributed. While a connection waits for a worker, one
 * connection is being sent to each worker.
 * @param stopAccepting Stops accepting connections.
 */
async function drainAcceptQueue(
  workers: Iterable<Pick<WorkerHandle, "pendingConnections">>,
  stopAccepting: () => void,
): Promise<void> {
  await new Promise<void>(afterPendingReads);
  stopAccepting();
  const deadline = performance.now() + TIMEOUT_MS;
  while (
    [...workers].some((member) => member.pendingConnections() > 0) &&
    performance.now() < deadline
  )
    await sleep(POLL_MS);
}

/** This allows for slow plugins. The timeout of a single plugin's setup is shorter. */
const PREPARE_TIMEOUT_MS = 60_000;
const REPLY_TIMEOUT_MS = 10_000;
/** Time that a worker has to end after its open requests have finished, in milliseconds. */
const EXIT_TIMEOUT_MS = 15_000;
const BACKOFF_MS = { first: 100, last: 10_000 };
/** Uptime after which a worker counts as started successfully, in milliseconds. */
const HEALTHY_AFTER_MS = 10_000;
/** Failed starts in a row, with no other worker running, after which the gateway exits. */
const MAX_FAILURES = 6;
/**
 * Attempts to open a port. Another program may take a free port between its selection and its
 * opening.
 */
const MAX_PORT_ATTEMPTS = 5;

export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #forwardBatch: ReturnType<typeof createBatchForwarder>;
  readonly #serving = new Set<WorkerHandle>();
  readonly #workers = new Set<WorkerHandle>();
  /**
   * Ended workers whose open calls are not settled yet. They are awaited before the ledger closes.
   */
  readonly #pendingExits = new Set<Promise<void>>();
  /** Workers that are ending and already have a replacement. */
  readonly #retired = new WeakSet<WorkerHandle>();
  readonly #unsubscribeLists: () => void;
  readonly #unsubscribePrices: () => void;
  #generation: WorkerGeneration;
  /** Addresses of the open ports. */
  addresses: readonly BoundAddress[] = [];
  #failures = 0;
  #opened = false;
  #announced = false;
  #ending = false;

  constructor(options: WorkerPoolOptions, order: WorkerGeneration) {
    this.#options = options;
    this.#generation = order;
    this.#forwardBatch = createBatchForwarder(options.services.storeWriter);
    this.#unsubscribeLists = options.services.modelLists.onRefresh((provider) => {
      for (const member of this.#workers)
        member.notify("updateModelLists", provider, options.services.modelLists.of(provider));
    });
    const { priceOverlay } = options.services;
    let sent = priceOverlay.book;
    this.#unsubscribePrices = priceOverlay.onChange(() => {
      // The workers notice by themselves that a price of their book begins.
      if (priceOverlay.book === sent) return;
      sent = priceOverlay.book;
      for (const member of this.#workers) member.notify("updatePrices", sent);
    });
    cluster.setupPrimary({
      exec: options.program,
      args: process.argv.slice(2),
      execArgv: childProcessFlags(),
      serialization: "advanced",
    });
  }

  urls: readonly string[] = [];
  get url(): string {
    return this.urls[0] ?? "";
  }

  /** Returns the number of open calls of all workers. */
  inFlight(): number {
    return [...this.#workers].reduce((sum, { reservations }) => sum + reservations.size, 0);
  }

  /** Starts all workers. If one of the workers fails, ends all workers and returns the problems. */
  async open(): Promise<readonly LocatedProblem[]> {
    const workers = Array.from({ length: this.#options.size }, (_, i) => this.#spawnWorker(i + 1));
    try {
      const problems = await firstProblems(
        workers.map((member) => this.#prepare(member, this.#generation)),
      );
      if (problems.length > 0) await this.destroy();
      else await this.#openPort(workers);
      return problems;
    } catch (error) {
      await this.destroy();
      throw error;
    }
  }

  /** Prepares a generation in all workers, and commits it only when all are ready. */
  async changeGeneration(
    order: WorkerGeneration,
    locate: ProblemLocator,
  ): Promise<readonly LocatedProblem[]> {
    const workers = [...this.#serving];
    const problems = await firstProblems(
      workers.map((member) => this.#prepare(member, order)),
    ).catch((error: Error) => [locate("workers", problem.workerFailed(error.message))]);
    if (problems.length > 0) {
      await this.#forEach(workers, (member) => member.call("abandonGeneration", REPLY_TIMEOUT_MS));
      return problems;
    }
    this.#generation = order;
    // A worker that cannot commit is killed. A worker that joined after the prepare step was
    // started with this generation.
    const joined = [...this.#serving].filter((member) => !workers.includes(member));
    const commit = (member: WorkerHandle) =>
      member.call("commitGeneration", REPLY_TIMEOUT_MS, this.addresses);
    await Promise.all([
      this.#forEach(workers, (member) => commit(member).catch(member.kill)),
      this.#forEach(joined, (member) => this.#bringUpToDate(member).catch(member.kill)),
    ]);
    return [];
  }

  /**
   * Queries a plugin's instances in all processes except the querying one, which may be the
   * primary. Returns the first answer.
   */
  askPlugins(id: string, question: unknown, asking?: WorkerHandle): Promise<unknown> {
    const others = [...this.#serving].filter((member) => member !== asking);
    const known = others.map(async (member) => {
      const answer = await member.tryCall("askPlugin", REPLY_TIMEOUT_MS, id, question);
      return answer ?? Promise.reject(new Error("The worker has no answer."));
    });
    return Promise.any(known).catch(() => undefined);
  }

  /** Returns the stats sources of all workers, including those that are starting or ending. */
  statsSources(): readonly (StatsSource & LiveSource & LiveSocketSource)[] {
    return [...this.#workers].map(({ statsSource }) => statsSource);
  }

  /** Closes a WebSocket for an operator. Returns whether a worker had it. */
  async closeSocket(id: string): Promise<boolean> {
    const replies = await Promise.all(
      [...this.#workers].map((each) => each.tryCall("closeSocket", REPLY_TIMEOUT_MS, id)),
    );
    return replies.includes(true);
  }

  /** Resolves when every process has received the message. */
  call = <N extends BroadcastName>(
    name: N,
    ...args: Parameters<WorkerCommands[N]>
  ): Promise<unknown> =>
    this.#forEach([...this.#workers], (member) => member.call(name, REPLY_TIMEOUT_MS, ...args));

  async status(): Promise<WorkerStatus[]> {
    const statuses: WorkerStatus[] = [];
    await this.#forEach([...this.#serving], async (member) => {
      statuses[member.slot] = await member.call("readStatus", REPLY_TIMEOUT_MS);
    });
    return statuses.filter(Boolean);
  }

  /** Announces the shutdown. Returns whether any worker had received a request for `/readyz`. */
  async announceClose(): Promise<boolean> {
    this.#announced = true;
    const replies = await Promise.all(
      [...this.#workers].map((each) => each.tryCall("announceShutdown", REPLY_TIMEOUT_MS)),
    );
    return replies.includes(true);
  }

  closeForHandoff = (drainMs: number): Promise<number> => this.close(drainMs, true);
  async close(drainMs: number, succeeded = false): Promise<number> {
    this.#ending = true;
    await drainAcceptQueue(this.#workers, () =>
      this.addresses.forEach(this.#options.stopAccepting),
    );
    let cut = 0;
    await this.#forEach([...this.#workers], async (member) => {
      const stopped = member.call("stop", drainMs + EXIT_TIMEOUT_MS, drainMs, succeeded);
      // The worker may have failed to write all its rows. Its open calls are settled here.
      cut += await stopped.catch(() => (member.kill(), 0));
      const killTimer = setTimeout(member.kill, EXIT_TIMEOUT_MS);
      await member.exited;
      clearTimeout(killTimer);
    });
    this.#unsubscribeLists();
    this.#unsubscribePrices();
    await Promise.all(this.#pendingExits);
    return cut;
  }

  async destroy(): Promise<void> {
    this.#ending = true;
    this.#unsubscribeLists();
    this.#unsubscribePrices();
    for (const member of this.#workers) member.kill();
    await Promise.all(this.#pendingExits);
  }

  /** Runs work on each worker. Workers that die in the meantime are handled separately. */
  async #forEach(
    workers: readonly WorkerHandle[],
    work: (member: WorkerHandle) => Promise<unknown>,
  ) {
    await Promise.allSettled(workers.map(work));
  }

  #spawnWorker(place: number): WorkerHandle {
    const { services } = this.#options;
    const member = spawnWorker(place, {
      ...services,
      apply: this.#forwardBatch,
      onUnhealthy: () => this.#retireWorker(member),
      onStoreFailure: (why) => services.ledgerQueue.suspectFailure(why),
      onTimeout: (command, withinMs) =>
        services.log.error(
          { worker: place, command, withinMs },
          "worker not responding, terminated",
        ),
      pluginPeers: async (id, of, near) =>
        (await this.askPlugins(id, of, member)) ?? services.peerGateways.askFirst(id, of, near),
      hasOtherWorkers: () => [...this.#serving].some((each) => each !== member),
    });
    this.#workers.add(member);
    if (services.ledgerAvailability.outage)
      member.notify("setLedgerAvailability", services.ledgerAvailability.outage);
    for (const provider of services.modelLists.providers())
      member.notify("updateModelLists", provider, services.modelLists.of(provider));
    if (services.priceOverlay.book) member.notify("updatePrices", services.priceOverlay.book);
    const ended = member.exited.then((how) => this.#onWorkerExit(member, how));
    this.#pendingExits.add(ended);
    void ended.then(() => this.#pendingExits.delete(ended));
    return member;
  }

  async #prepare(
    worker: WorkerHandle,
    order: WorkerGeneration,
  ): Promise<readonly LocatedProblem[]> {
    return worker.call("prepareGeneration", PREPARE_TIMEOUT_MS, order);
  }

  /**
   * Opens the ports. The first worker tests whether the ports are available, and the others join.
   */
  async #openPort(workers: readonly WorkerHandle[]): Promise<void> {
    const { listen, inheritedDescriptors } = this.#options;
    for (let tries = listen.some(({ port }) => port === 0) ? MAX_PORT_ATTEMPTS : 1; ; tries--) {
      this.addresses = await Promise.all(
        listen.map((each, i) => reserveAddress(each, inheritedDescriptors[i])),
      );
      try {
        this.urls = await workers[0]!.call("commitGeneration", REPLY_TIMEOUT_MS, this.addresses);
        break;
      } catch (error) {
        if (tries <= 1) throw error;
      }
    }
    for (const member of workers.slice(1))
      await member.call("commitGeneration", REPLY_TIMEOUT_MS, this.addresses);
    // A worker that ends while the ports are opened is not replaced.
    const exited = workers.find((member) => !this.#workers.has(member));
    if (exited) throw new Error(`A worker exited (${await exited.exited}).`);
    for (const member of workers) this.#serving.add(member);
    this.#opened = true;
  }

  async #onWorkerExit(worker: WorkerHandle, how: string): Promise<void> {
    this.#serving.delete(worker);
    this.#workers.delete(worker);
    this.#options.onWorkerExit(worker.statsSource);
    if (!this.#ending && this.#opened) {
      reportWorkerExit(this.#options.services, worker, how);
      if (!this.#retired.has(worker)) void this.#replaceWorker(worker, how);
    }
    // A store that does not respond does not delay the end of a worker, because the next start
    // finds the open calls.
    await Promise.race([
      settleOpenReservations(this.#options.services, worker),
      sleep(REPLY_TIMEOUT_MS, undefined, { ref: false }),
    ]);
  }

  /** Replaces a worker. The old worker may finish its open requests. */
  #retireWorker(worker: WorkerHandle): void {
    if (this.#ending || this.#retired.has(worker)) return;
    if (!this.#serving.delete(worker)) return worker.kill();
    this.#retired.add(worker);
    this.#options.services.log.warn(
      { worker: worker.slot, pid: worker.pid },
      "worker unhealthy, draining and replacing it",
    );
    const { shutdownTimeoutMs } = this.#options;
    worker
      .call("stop", shutdownTimeoutMs() + EXIT_TIMEOUT_MS, shutdownTimeoutMs(), false)
      .catch(() => worker.kill());
    void this.#replaceWorker(worker, "an uncaught error");
  }

  async #replaceWorker({ slot, startedAt }: WorkerHandle, how: string): Promise<void> {
    this.#failures = performance.now() - startedAt > HEALTHY_AFTER_MS ? 0 : this.#failures + 1;
    if (this.#failures >= MAX_FAILURES && this.#serving.size === 0) {
      const times = `${this.#failures} times in a row`;
      return this.#options.onFailed(
        new Error(`Workers exit repeatedly: ${times} a worker exited (${how}).`),
      );
    }
    if (this.#failures > 1)
      await sleep(Math.min(BACKOFF_MS.last, BACKOFF_MS.first * 2 ** this.#failures));
    if (this.#ending) return;
    const member = this.#spawnWorker(slot);
    try {
      await this.#bringUpToDate(member);
    } catch (error) {
      // The worker cannot serve requests, even if it is still alive. The next attempt starts when
      // the worker has ended.
      this.#options.services.log.error({ worker: slot, err: error }, "worker start failed");
      member.kill();
      return;
    }
    this.#serving.add(member);
    this.#options.services.log.info({ worker: slot, pid: member.pid }, "worker replaced");
  }

  /**
   * Updates a new worker to the current generation, which may change while the worker builds it.
   */
  async #bringUpToDate(worker: WorkerHandle): Promise<void> {
    let order: WorkerGeneration;
    do {
      order = this.#generation;
      const problems = await this.#prepare(worker, order);
      if (problems.length > 0) throw new Error(problems.map(({ message }) => message).join("; "));
      await worker.call("commitGeneration", REPLY_TIMEOUT_MS, this.addresses);
    } while (order !== this.#generation);
    if (this.#announced) await worker.call("announceShutdown", REPLY_TIMEOUT_MS);
  }
}
