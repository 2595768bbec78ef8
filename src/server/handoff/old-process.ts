// The previous gateway, as seen by the new process. It hands over the store. Its open calls are
// then settled through the new process, like the calls of a worker.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import { CLIENT_CREDENTIAL } from "../../model/usage.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { ObservedRequest } from "../../pipeline/generation.ts";
import type { GatewayStatus } from "../../runtime/gateway-api.ts";
import type { Services } from "../../runtime/services.ts";
import { createBatchForwarder } from "../../runtime/workers/batch-forwarder.ts";
import type { BroadcastName } from "../../runtime/workers/worker-protocol.ts";
import { trackReservations, recoveredSettle } from "../../runtime/workers/open-reservations.ts";
import { STORE_READ_METHODS } from "../../runtime/ledger/transferable-store.ts";
import { createStoreHandlers, JOB_REQUESTS } from "../../runtime/workers/remote-store.ts";
import {
  type IpcHandlers,
  type IpcChannel,
  createIpcLink,
  type IpcLink,
} from "../../runtime/workers/ipc-link.ts";
import type { HandedOverState, NewProcessCalls } from "./handoff-protocol.ts";
import type { LedgerEntry, Settle, Store } from "../../plugin/store/store.ts";

const REPLY_TIMEOUT_MS = 10_000;
const STATUS_TIMEOUT_MS = 1_000;

/** Calls to the store. */
const STORE_METHODS = ["apply", ...STORE_READ_METHODS, ...JOB_REQUESTS] as const;
/** Notifications for observers. */
const OBSERVER_MESSAGES = ["reportRequest", "reportRejection", "reportEvent", "exited"] as const;

type OldProcessChannel = IpcChannel & { disconnect?(): void };
type NewProcessServices = Pick<
  Services,
  "store" | "jobs" | "usageQueries" | "storeWriter" | "ledgerQueue" | "observerSink" | "log"
>;

export class OldProcess {
  /** Process id of the previous gateway. */
  readonly pid: number;
  readonly #channel: OldProcessChannel;
  readonly #link: IpcLink;
  readonly #handlers = Promise.withResolvers<IpcHandlers>();
  readonly #exited = Promise.withResolvers<void>();
  #handedOver: HandedOverState | undefined;
  #takenAt = 0;
  #disconnected = false;
  /** Whether the old process reported that it finished. */
  #exitedCleanly = false;

  constructor(channel: OldProcessChannel, pid: number) {
    this.pid = pid;
    this.#channel = channel;
    // Messages that arrive before they can be handled wait.
    const answer =
      (name: string) =>
      async (...args: never[]) =>
        (await this.#handlers.promise)[name]!(...args);
    this.#link = createIpcLink(
      channel,
      Object.fromEntries(
        [...STORE_METHODS, ...OBSERVER_MESSAGES].map((name) => [name, answer(name)]),
      ),
    );
    channel.once("disconnect", () => (this.#disconnected = true));
  }

  /** Takes over the store. All other parts of the new process are ready at that time. */
  async takeStore(wanted: Parameters<NewProcessCalls["takeStore"]>[0]): Promise<HandedOverState> {
    this.#handedOver = await this.#link.call<HandedOverState>("takeStore", wanted);
    this.#takenAt = wallClock();
    return this.#handedOver;
  }

  /**
   * Called when this process has opened the store and its observers. The old process then uses both
   * through this process.
   */
  async storeOpened(host: NewProcessServices): Promise<void> {
    const { store, usageQueries, observerSink, log } = host;
    const reservations = trackReservations(createBatchForwarder(host.storeWriter));
    this.#handlers.resolve({
      ...createStoreHandlers(store, usageQueries, reservations.apply, host.jobs ?? undefined),
      reportRequest: (records: readonly ObservedRequest[]) =>
        records.forEach((each) => observerSink.reportRequest(each)),
      reportRejection: (refused: readonly RejectedRequest[]) =>
        refused.forEach((each) => observerSink.reportRejection(each)),
      reportEvent: (notice: GatewayEvent) => observerSink.reportEvent(notice, this),
      exited: () => void (this.#exitedCleanly = true),
    });
    const onExit = async () => {
      observerSink.processExited(this);
      if (!this.#exitedCleanly)
        await this.#settleOrphans(host, await reservations.settleAll(wallClock()));
      else log.info({ before: this.pid }, "previous gateway process ended");
      this.#exited.resolve();
    };
    this.#channel.once("disconnect", () => void onExit());
    await this.#link.call("storeOpened");
    if (this.#disconnected) void onExit();
  }

  /** Reports that this process serves clients. */
  async serving(): Promise<void> {
    await this.#link.call("serving");
  }

  /** Resolves when the old process has ended, or after `withinMs` milliseconds. */
  async whenExited(withinMs: number): Promise<void> {
    if (this.#handedOver)
      await Promise.race([this.#exited.promise, sleep(withinMs, undefined, { ref: false })]);
  }

  /**
   * Returns the process ID and the number of open requests. Undefined if the process has ended or
   * does not respond.
   */
  async readStatus(): Promise<GatewayStatus["oldProcess"]> {
    if (this.#disconnected) return undefined;
    const silent = sleep(STATUS_TIMEOUT_MS, undefined, { ref: false });
    const inFlight = await Promise.race([
      this.#link.call<number>("inFlight").catch(() => undefined),
      silent,
    ]);
    return inFlight === undefined ? undefined : { pid: this.pid, inFlight };
  }

  /**
   * Sends a change that all processes must apply. If the old process does not confirm the change,
   * it is disconnected, because it could continue with outdated data.
   */
  async call(name: BroadcastName, ...args: readonly unknown[]): Promise<void> {
    if (this.#disconnected || !this.#handedOver) return;
    const timedOut = sleep(REPLY_TIMEOUT_MS, "late", { ref: false });
    const called = this.#link.call(name, ...args).catch(() => "late");
    if ((await Promise.race([called, timedOut])) === "late" && !this.#disconnected)
      this.#channel.disconnect?.();
  }

  async #settleOrphans(
    { store, ledgerQueue, log }: NewProcessServices,
    later: Awaited<ReturnType<ReturnType<typeof trackReservations>["settleAll"]>>,
  ): Promise<void> {
    const { instanceId, oldestOpenCallAt } = this.#handedOver!;
    // A shared store recovers the calls of dead instances by itself.
    if (instanceId === undefined) return;
    const open = await listOrphanedCalls(store, {
      since: oldestOpenCallAt,
      until: this.#takenAt,
      now: wallClock(),
    }).catch((error: unknown) => {
      log.error({ err: error }, "open calls of previous process unreadable");
      return [];
    });
    const calls = new Map([...open, ...later].map((call) => [call.attempt, call]));
    log.error(
      { before: this.pid, calls: calls.size },
      "previous process ended early, open calls settled as estimated",
    );
    for (const call of calls.values())
      ledgerQueue.settle(call).catch((error: unknown) => {
        log.error({ err: error, attempt: call.attempt }, "call settlement failed");
      });
  }
}

// Finds calls that a gateway had open when it released the store and did not settle before it
// ended.

const PAGE = 1_000;

/**
 * Returns the settlements that recovery would write. `since` and `until`: range of the calls' start
 * times.
 */
async function listOrphanedCalls(
  store: Pick<Store, "listEntries">,
  { since, until, now }: { readonly since: number; readonly until: number; readonly now: number },
): Promise<readonly (Settle & { at: number })[]> {
  const open = new Map<string, LedgerEntry>();
  let after: string | undefined;
  do {
    const page = await store.listEntries({ from: since }, { limit: PAGE, ...(after && { after }) });
    for (const entry of page.items)
      if (entry.kind === "reserve" && entry.at <= until) open.set(entry.attempt, entry);
      else if (entry.kind === "settle") open.delete(entry.attempt);
    after = page.next;
  } while (after !== undefined);
  return [...open.values()].map((entry) =>
    recoveredSettle(
      entry.attempt,
      {
        isExternal: entry.target.credential === CLIENT_CREDENTIAL,
        holdNano: entry.holdNano ?? null,
        usage: {},
        costNano: null,
      },
      Math.max(now, entry.at),
    ),
  );
}
