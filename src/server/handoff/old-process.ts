// The gateway before, from the side of the one that takes its place: it hands over the store, and from then on it is a guest that
// settles here what it still has open, like a worker.
import { setTimeout as sleep } from "node:timers/promises";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { RejectedRequest } from "../../plugin/observer.ts";
import type { ObservedRequest } from "../../pipeline/generation.ts";
import type { GatewayStatus } from "../../runtime/gateway-api.ts";
import type { Services } from "../../runtime/services.ts";
import { createBatchForwarder } from "../../runtime/workers/batch-forwarder.ts";
import type { BroadcastName } from "../../runtime/workers/worker-protocol.ts";
import { trackReservations } from "../../runtime/workers/open-reservations.ts";
import { STORE_READ_METHODS } from "../../runtime/ledger/store-read-methods.ts";
import { createStoreHandlers } from "../../runtime/workers/remote-store.ts";
import {
  type IpcHandlers,
  type IpcChannel,
  createIpcLink,
  type IpcLink,
} from "../../runtime/workers/ipc-link.ts";
import { listOrphanedCalls } from "./orphans.ts";
import type { HandedOverState, NewProcessCalls } from "./handoff-protocol.ts";

const REPLY_TIMEOUT_MS = 10_000;
const STATUS_TIMEOUT_MS = 1_000;

/** The store's questions. */
const STORE_METHODS = ["apply", ...STORE_READ_METHODS] as const;
/** What observers are told. */
const OBSERVER_MESSAGES = ["reportRequest", "reportRejection", "reportEvent", "exited"] as const;

type OldProcessChannel = IpcChannel & { disconnect?(): void };
type NewProcessServices = Pick<
  Services,
  "store" | "usageQueries" | "storeWriter" | "ledgerQueue" | "observerSink" | "log"
>;

export class OldProcess {
  /** Its process. */
  readonly pid: number;
  readonly #channel: OldProcessChannel;
  readonly #link: IpcLink;
  readonly #handlers = Promise.withResolvers<IpcHandlers>();
  readonly #exited = Promise.withResolvers<void>();
  #handedOver: HandedOverState | undefined;
  #takenAt = 0;
  #disconnected = false;
  /** It has said itself that nothing of it is left. */
  #exitedCleanly = false;

  constructor(channel: OldProcessChannel, pid: number) {
    this.pid = pid;
    this.#channel = channel;
    // What is said before it can be answered waits.
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

  /** Everything but the store is in order. */
  async takeStore(wanted: Parameters<NewProcessCalls["takeStore"]>[0]): Promise<HandedOverState> {
    this.#handedOver = await this.#link.call<HandedOverState>("takeStore", wanted);
    this.#takenAt = wallClock();
    return this.#handedOver;
  }

  /** The store is open here, and observers are there: from now on it is a guest. */
  async storeOpened(host: NewProcessServices): Promise<void> {
    const { store, usageQueries, observerSink, log } = host;
    const reservations = trackReservations(createBatchForwarder(host.storeWriter));
    this.#handlers.resolve({
      ...createStoreHandlers(store, usageQueries, reservations.apply),
      reportRequest: (heard: readonly ObservedRequest[]) =>
        heard.forEach((each) => observerSink.reportRequest(each)),
      reportRejection: (refused: readonly RejectedRequest[]) =>
        refused.forEach((each) => observerSink.reportRejection(each)),
      reportEvent: (notice: GatewayEvent) => observerSink.reportEvent(notice, this),
      exited: () => void (this.#exitedCleanly = true),
    });
    const onExit = async () => {
      observerSink.processExited(this);
      if (!this.#exitedCleanly)
        await this.#settleOrphans(host, await reservations.settleAll(wallClock()));
      else log.info({ before: this.pid }, "the gateway before has ended");
      this.#exited.resolve();
    };
    this.#channel.once("disconnect", () => void onExit());
    await this.#link.call("storeOpened");
    if (this.#disconnected) void onExit();
  }

  /** Clients are served here. */
  async serving(): Promise<void> {
    await this.#link.call("serving");
  }

  /** Resolves when nothing is left of it, and at the latest then. */
  async whenExited(withinMs: number): Promise<void> {
    if (this.#handedOver)
      await Promise.race([this.#exited.promise, sleep(withinMs, undefined, { ref: false })]);
  }

  /** Itself, and what it has under way; undefined: it is gone, or says nothing. */
  async readStatus(): Promise<GatewayStatus["oldProcess"]> {
    if (this.#disconnected) return undefined;
    const silent = sleep(STATUS_TIMEOUT_MS, undefined, { ref: false });
    const inFlight = await Promise.race([
      this.#link.call<number>("inFlight").catch(() => undefined),
      silent,
    ]);
    return inFlight === undefined ? undefined : { pid: this.pid, inFlight };
  }

  /** What all processes must know. One that does not say that it does might go on with what is not so any more: it hears nothing from here. */
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
    // A store that both have open knows by itself of the dead.
    if (instanceId === undefined) return;
    const open = await listOrphanedCalls(store, {
      since: oldestOpenCallAt,
      until: this.#takenAt,
      now: wallClock(),
    }).catch((error: unknown) => {
      log.error({ err: error }, "what the gateway before had open cannot be read");
      return [];
    });
    const calls = new Map([...open, ...later].map((call) => [call.attempt, call]));
    log.error(
      { before: this.pid, calls: calls.size },
      "the gateway before ended before its requests; what it had open is settled as estimated",
    );
    for (const call of calls.values())
      ledgerQueue.settle(call).catch((error: unknown) => {
        log.error({ err: error, attempt: call.attempt }, "a call could not be settled");
      });
  }
}
