// What observers are told, in the process that has them. What happens is gathered for a moment, once for all of them; then each
// has a queue of its own with a bound, and is told one thing at a time; nothing waits for it but its own end. Money does not pass
// here: the ledger has its own way.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Log } from "../../lib/log/log.ts";
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

/** Where records and notices go in a process: to its observers, or to the process that has them. */
export interface ObserverSink {
  /** `worker`: the place of the process that served it, when it is another one. What is handed over is the observers' from then on. */
  reportRequest(heard: ObservedRequest, worker?: number): void;
  reportRejection(refusal: RejectedRequest): void;
  /** `from`: the process that says so, when it is another one. */
  reportEvent(notice: GatewayEvent, from?: object): void;
  /** Resolves when all of them have been told: false where one had no room for it. */
  deliverEvent(notice: GatewayEvent): Promise<boolean>;
  /** A batch of any process is durable. */
  reportCommit(batch: readonly StoreCommand[], verdicts: readonly CommandResult[]): void;
  /** That process has ended: what was wrong with it alone is over. */
  processExited(from: object): void;
  /** Records that observers were too slow for, by observer. */
  droppedCounts(): Readonly<Record<string, number>>;
  /** From now on these observers are told. Those before them get what is left for them. */
  attach(observers: readonly MountedObserver[]): void;
  /** Resolves when these have got what is left for them, or have had their time. */
  detach(observers: readonly MountedObserver[]): Promise<void>;
}

export const FLUSH_INTERVAL_MS = 200;
/** They are told as soon as so many wait: a record that outlives a collection is copied by it, and few are kept so short. */
const FLUSH_AT = 64;

/** What an observer is told of where a client is. */
function shownClientAddress(
  address: string | undefined,
  clients: ClientAddressDetail,
): string | undefined {
  if (address === undefined || clients === "none") return undefined;
  return clients === "full" ? address : networkPrefixOf(address);
}

export class ObserverHub implements ObserverSink {
  readonly #log: Log;
  readonly #eventLog: EventLog;
  /** The host's own: of all generations. */
  readonly #hostSubscribers: readonly ObserverSubscriber[];
  #subscribers: readonly ObserverSubscriber[] = [];
  /** The same by how much of a client's address they are told. */
  #subscribersByAddressDetail: ReadonlyMap<ClientAddressDetail, readonly ObserverSubscriber[]> =
    new Map();
  /** Processes whose ledger takes no rows. */
  readonly #processesWithLedgerDown = new Set<object>();
  /** Counts go on over a reload. */
  readonly #dropped = new Map<string, number>();
  readonly #subscriberOf = new Map<MountedObserver, ObserverSubscriber>();
  /** Another process has the observers now. */
  #remoteSink: ObserverSink | undefined;
  /** Undefined: none of them asks for bills, so nothing is kept of a call. */
  #reservedCalls: ReservedCalls | undefined;
  #records: ObservedRequest[] = [];
  #rejections: RejectedRequest[] = [];
  #charges: ChargeRecord[] = [];
  #timer: NodeJS.Timeout | undefined;
  #immediate: NodeJS.Immediate | undefined;

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

  /** Undefined: they are here again. */
  redirectTo(elsewhere: ObserverSink | undefined): void {
    this.#remoteSink = elsewhere;
  }

  reportRejection(refusal: RejectedRequest): void {
    if (this.#remoteSink) return this.#remoteSink.reportRejection(refusal);
    this.#scheduleFlush(this.#rejections.push(refusal));
  }

  reportRequest(heard: ObservedRequest, worker = 0): void {
    if (this.#remoteSink) return this.#remoteSink.reportRequest(heard);
    heard.worker = worker;
    this.#scheduleFlush(this.#records.push(heard));
  }

  #scheduleFlush(waiting: number): void {
    // Not in the turn of the request that was over.
    if (waiting >= FLUSH_AT) this.#immediate ??= setImmediate(() => this.#flush());
    else if (!this.#timer)
      this.#timer = setTimeout(() => this.#flushOnTimer(), FLUSH_INTERVAL_MS).unref();
  }

  /** A timer is not taken back when they were told sooner: to set one for each telling costs more than it finds now and then. */
  #flushOnTimer(): void {
    this.#timer = undefined;
    this.#flush();
  }

  /** Each gets what was gathered. */
  #flush(): void {
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    const [all, refusals, lines] = [this.#records, this.#rejections, this.#charges];
    this.#records = [];
    this.#rejections = [];
    this.#charges = [];
    const addresses = all.map(({ client }) => client);
    let records: ObservedRequest[] | undefined;
    for (const [clients, candidates] of this.#subscribersByAddressDetail) {
      // One record does for all that are told the same.
      records = records ? records.map((one) => ({ ...one })) : all;
      for (let i = 0; i < records.length; i++)
        records[i]!.client = shownClientAddress(addresses[i], clients);
      for (const candidate of candidates)
        candidate.enqueue({ records, rejections: refusals, charges: lines });
    }
  }

  reportEvent(event: GatewayEvent, from: object = this): void {
    if (this.#remoteSink) return this.#remoteSink.reportEvent(event);
    if (event.type === "ledger" && !this.#isLedgerChange(event.ok, from)) return;
    this.#eventLog.log(event);
    for (const candidate of this.#subscribers) candidate.enqueueEvent(event);
  }

  async deliverEvent(event: GatewayEvent): Promise<boolean> {
    // Verdicts are heard there too, and told by it.
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
    if (this.#charges.length > 0) this.#scheduleFlush(this.#charges.length);
  }

  processExited(from: object): void {
    if (this.#processesWithLedgerDown.has(from))
      this.reportEvent({ type: "ledger", at: wallClock(), ok: true }, from);
  }

  /** Each process finds out by itself whether the ledger takes rows: it does not as soon as one says so, until none does. */
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

  /** The host's own get what is left. */
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
