// Delivers records and events to the observers, in the process that runs them. Records are
// collected for a short time, once for all observers. Each observer then has its own bounded queue
// and receives one batch or event at a time. Only the shutdown of an observer waits for its
// deliveries. Billing does not depend on this queue, because the ledger has a separate one.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Log } from "../../lib/log/log.ts";
import { BatchQueue } from "../../lib/queue/batch-queue.ts";
import { networkPrefixOf } from "../../lib/net/network-prefix.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type { ChargeRecord, RejectedRequest } from "../../plugin/observer.ts";
import type { StoreCommand, CommandResult } from "../../plugin/store/store.ts";
import type { ObservedRequest } from "../../pipeline/generation.ts";
import { EventLog } from "./event-log.ts";
import { ReservedCalls } from "./reserved-calls.ts";
import {
  type ClientAddressDetail,
  type MountedObserver,
  ObserverSubscriber,
} from "./observer-subscriber.ts";

/**
 * Receives the records and events of a process, and passes them to its observers or to the process
 * that runs the observers.
 */
export interface ObserverSink {
  /**
   * Reports a finished request. `worker`: index of the process that served the request, if that is
   * another process. The observers own the record after this call.
   */
  reportRequest(record: ObservedRequest, worker?: number): void;
  reportRejection(refusal: RejectedRequest): void;
  /** Reports an event. `from`: the process that reports the event, if that is another process. */
  reportEvent(notice: GatewayEvent, from?: object): void;
  /**
   * Resolves when all observers have received the event. Resolves with false if the queue of an
   * observer was full.
   */
  deliverEvent(notice: GatewayEvent): Promise<boolean>;
  /** Called when a batch of any process is durable. */
  reportCommit(batch: readonly StoreCommand[], verdicts: readonly CommandResult[]): void;
  /** Called when a process has ended, so that its own failures are cleared. */
  processExited(from: object): void;
  /**
   * Returns the number of dropped records by observer. Records are dropped if the observer is too
   * slow.
   */
  droppedCounts(): Readonly<Record<string, number>>;
  /**
   * Replaces the observers. Records that are queued for previous observers are still delivered to
   * them.
   */
  attach(observers: readonly MountedObserver[]): void;
  /**
   * Resolves when these observers have received their queued records, or when their time limit has
   * passed.
   */
  detach(observers: readonly MountedObserver[]): Promise<void>;
}

export const FLUSH_INTERVAL_MS = 200;
/**
 * Number of records that causes an immediate flush. A record that outlives a garbage collection is
 * copied by it, so few are kept that long.
 */
const FLUSH_AT = 64;

/** Returns the part of the client's address that an observer receives. */
function shownClientAddress(
  address: string | undefined,
  clients: ClientAddressDetail,
): string | undefined {
  if (address === undefined || clients === "none") return undefined;
  return clients === "full" ? address : networkPrefixOf(address);
}

const collect = <T>(deliver: (batch: T[]) => void): BatchQueue<T> =>
  new BatchQueue({ delayMs: FLUSH_INTERVAL_MS, fullAt: FLUSH_AT, deliver });

export class ObserverHub implements ObserverSink {
  readonly #log: Log;
  readonly #eventLog: EventLog;
  /** The gateway's own subscribers. They receive records of all generations. */
  readonly #hostSubscribers: readonly ObserverSubscriber[];
  #subscribers: readonly ObserverSubscriber[] = [];
  /** Subscribers by the part of the client's address that they receive. */
  #subscribersByAddressDetail: ReadonlyMap<ClientAddressDetail, readonly ObserverSubscriber[]> =
    new Map();
  /** Processes whose ledger accepts no rows. */
  readonly #processesWithLedgerDown = new Set<object>();
  /** Dropped records by observer. The counts survive a reload. */
  readonly #dropped = new Map<string, number>();
  readonly #subscriberOf = new Map<MountedObserver, ObserverSubscriber>();
  /** Set while another process has the observers. */
  #remoteSink: ObserverSink | undefined;
  /** Undefined if no observer requests charges. Reserved calls are then not stored. */
  #reservedCalls: ReservedCalls | undefined;
  readonly #records = collect<ObservedRequest>((all) => this.#passRecords(all));
  readonly #rejections = collect<RejectedRequest>((rejections) => {
    for (const candidate of this.#subscribers) candidate.enqueue({ rejections });
  });
  readonly #charges = collect<ChargeRecord>((charges) => {
    for (const candidate of this.#subscribers) candidate.enqueue({ charges });
  });

  constructor(log: Log, own: readonly MountedObserver[] = []) {
    this.#log = log;
    this.#eventLog = new EventLog(log);
    this.#hostSubscribers = own.map((each) => new ObserverSubscriber(each, log, new Map()));
    this.#setSubscribers(this.#hostSubscribers);
  }

  #setSubscribers(candidates: readonly ObserverSubscriber[]): void {
    this.#subscribers = candidates;
    this.#subscribersByAddressDetail = Map.groupBy(
      candidates,
      ({ clientAddressDetail }) => clientAddressDetail,
    );
  }

  /** Redirects everything to another process. `undefined`: the observers are in this process. */
  redirectTo(elsewhere: ObserverSink | undefined): void {
    this.#remoteSink = elsewhere;
  }

  reportRejection(refusal: RejectedRequest): void {
    if (this.#remoteSink) return this.#remoteSink.reportRejection(refusal);
    this.#rejections.push(refusal);
  }

  reportRequest(record: ObservedRequest, worker = 0): void {
    if (this.#remoteSink) return this.#remoteSink.reportRequest(record);
    record.worker = worker;
    this.#records.push(record);
  }

  /** Passes everything that was collected to the subscribers. */
  #flush(): void {
    for (const queue of [this.#records, this.#rejections, this.#charges]) void queue.drain();
  }

  #passRecords(all: ObservedRequest[]): void {
    const addresses = all.map(({ client }) => client);
    let records: ObservedRequest[] | undefined;
    for (const [clients, candidates] of this.#subscribersByAddressDetail) {
      // Subscribers with the same address detail share one copy of the records.
      records = records ? records.map((one) => ({ ...one })) : all;
      for (let i = 0; i < records.length; i++)
        records[i]!.client = shownClientAddress(addresses[i], clients);
      for (const candidate of candidates) candidate.enqueue({ records });
    }
  }

  reportEvent(event: GatewayEvent, from: object = this): void {
    if (this.#remoteSink) return this.#remoteSink.reportEvent(event);
    if (event.type === "ledger" && !this.#isLedgerChange(event.ok, from)) return;
    this.#eventLog.log(event);
    for (const candidate of this.#subscribers) candidate.enqueueEvent(event);
  }

  async deliverEvent(event: GatewayEvent): Promise<boolean> {
    // The other process also receives the store's results, and delivers the event itself.
    if (this.#remoteSink) return false;
    this.#eventLog.log(event);
    const all = await Promise.all(
      this.#subscribers.map((candidate) => candidate.deliverEvent(event)),
    );
    return !all.includes(false);
  }

  reportCommit(batch: readonly StoreCommand[], results: readonly CommandResult[]): void {
    if (!this.#reservedCalls || this.#remoteSink) return;
    this.#reservedCalls.add(this.#charges, batch, results);
  }

  processExited(from: object): void {
    if (this.#processesWithLedgerDown.has(from))
      this.reportEvent({ type: "ledger", at: wallClock(), ok: true }, from);
  }

  /**
   * Whether a ledger event changes the overall state. Each process detects ledger failures
   * independently. The ledger counts as failing while at least one process reports it.
   */
  #isLedgerChange(ok: boolean, from: object): boolean {
    const before = this.#processesWithLedgerDown.size;
    if (ok) this.#processesWithLedgerDown.delete(from);
    else this.#processesWithLedgerDown.add(from);
    return (before === 0) !== (this.#processesWithLedgerDown.size === 0);
  }

  droppedCounts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#dropped);
  }

  attach(observers: readonly MountedObserver[]): void {
    this.#flush();
    const wantsCharges = observers.some(({ observer }) => observer.onCharges !== undefined);
    this.#reservedCalls = wantsCharges ? (this.#reservedCalls ?? new ReservedCalls()) : undefined;
    const subscribers = observers.map((mounted) => {
      const candidate = new ObserverSubscriber(mounted, this.#log, this.#dropped);
      this.#subscriberOf.set(mounted, candidate);
      return candidate;
    });
    this.#setSubscribers([...this.#hostSubscribers, ...subscribers]);
  }

  /** Delivers the remaining records to the gateway's own subscribers. */
  async close(): Promise<void> {
    this.#flush();
    await Promise.all(this.#hostSubscribers.map((each) => each.end()));
  }

  async detach(observers: readonly MountedObserver[]): Promise<void> {
    this.#flush();
    await Promise.all(
      observers.map(async (mounted) => {
        await this.#subscriberOf.get(mounted)?.end();
        this.#subscriberOf.delete(mounted);
      }),
    );
  }
}
