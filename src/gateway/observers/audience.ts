// What observers are told, in the process that has them. What happens is gathered for a moment, once for all of them; then each
// has a queue of its own with a bound, and is told one thing at a time; nothing waits for it but its own end. Money does not pass
// here: the ledger has its own way.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Log } from "../../lib/log.ts";
import { networkOf } from "../../lib/network.ts";
import type { Notice } from "../../plugin/notice.ts";
import type { LedgerLine, TurnedAway } from "../../plugin/observer.ts";
import type { StoreCommand, Verdict } from "../../plugin/store.ts";
import type { HeardRequest } from "../../walk/generation.ts";
import { NoticeLog } from "./notice-log.ts";
import { ReservedCalls } from "./reserved-calls.ts";
import { type Clients, type MountedObserver, Subscriber } from "./subscriber.ts";

/** Where records and notices go in a process: to its observers, or to the process that has them. */
export interface Observing {
  /** `worker`: the place of the process that served it, when it is another one. What is handed over is the observers' from then on. */
  seen(heard: HeardRequest, worker?: number): void;
  turnedAway(refusal: TurnedAway): void;
  /** `from`: the process that says so, when it is another one. */
  told(notice: Notice, from?: object): void;
  /** Resolves when all of them have been told: false where one had no room for it. */
  heard(notice: Notice): Promise<boolean>;
  /** A batch of any process is durable. */
  landed(batch: readonly StoreCommand[], verdicts: readonly Verdict[]): void;
  /** That process has ended: what was wrong with it alone is over. */
  gone(from: object): void;
  /** Records that observers were too slow for, by observer. */
  dropped(): Readonly<Record<string, number>>;
  /** From now on these observers are told. Those before them get what is left for them. */
  mount(observers: readonly MountedObserver[]): void;
  /** Resolves when these have got what is left for them, or have had their time. */
  end(observers: readonly MountedObserver[]): Promise<void>;
}

export const EVERY_MS = 200;
/** They are told as soon as so many wait: a record that outlives a collection is copied by it, and few are kept so short. */
const SOON = 64;

/** What an observer is told of where a client is. */
function clientOf(address: string | undefined, clients: Clients): string | undefined {
  if (address === undefined || clients === "none") return undefined;
  return clients === "full" ? address : networkOf(address);
}

export class Audience implements Observing {
  readonly #log: Log;
  readonly #journal: NoticeLog;
  /** The host's own: of all generations. */
  readonly #own: readonly Subscriber[];
  #candidates: readonly Subscriber[] = [];
  /** The same by how much of a client's address they are told. */
  #apart: ReadonlyMap<Clients, readonly Subscriber[]> = new Map();
  /** Processes whose ledger takes no rows. */
  readonly #down = new Set<object>();
  /** Counts go on over a reload. */
  readonly #dropped = new Map<string, number>();
  readonly #all = new Map<MountedObserver, Subscriber>();
  /** Another process has the observers now. */
  #elsewhere: Observing | undefined;
  /** Undefined: none of them asks for bills, so nothing is kept of a call. */
  #calls: ReservedCalls | undefined;
  #records: HeardRequest[] = [];
  #refusals: TurnedAway[] = [];
  #lines: LedgerLine[] = [];
  #timer: NodeJS.Timeout | undefined;
  #turn: NodeJS.Immediate | undefined;

  constructor(log: Log, own: readonly MountedObserver[] = []) {
    this.#log = log;
    this.#journal = new NoticeLog(log);
    this.#own = own.map((each) => new Subscriber(each, log, new Map()));
    this.#tellThese(this.#own);
  }

  #tellThese(candidates: readonly Subscriber[]): void {
    this.#candidates = candidates;
    this.#apart = Map.groupBy(candidates, ({ clients }) => clients);
  }

  /** Undefined: they are here again. */
  sendTo(elsewhere: Observing | undefined): void {
    this.#elsewhere = elsewhere;
  }

  turnedAway(refusal: TurnedAway): void {
    if (this.#elsewhere) return this.#elsewhere.turnedAway(refusal);
    this.#soon(this.#refusals.push(refusal));
  }

  seen(heard: HeardRequest, worker = 0): void {
    if (this.#elsewhere) return this.#elsewhere.seen(heard);
    heard.worker = worker;
    this.#soon(this.#records.push(heard));
  }

  #soon(waiting: number): void {
    // Not in the turn of the request that was over.
    if (waiting >= SOON) this.#turn ??= setImmediate(() => this.#share());
    else if (!this.#timer) this.#timer = setTimeout(() => this.#inTime(), EVERY_MS).unref();
  }

  /** A timer is not taken back when they were told sooner: to set one for each telling costs more than it finds now and then. */
  #inTime(): void {
    this.#timer = undefined;
    this.#share();
  }

  /** Each gets what was gathered. */
  #share(): void {
    clearImmediate(this.#turn);
    this.#turn = undefined;
    const [all, refusals, lines] = [this.#records, this.#refusals, this.#lines];
    this.#records = [];
    this.#refusals = [];
    this.#lines = [];
    const addresses = all.map(({ client }) => client);
    let records: HeardRequest[] | undefined;
    for (const [clients, candidates] of this.#apart) {
      // One record does for all that are told the same.
      records = records ? records.map((one) => ({ ...one })) : all;
      for (let i = 0; i < records.length; i++) records[i]!.client = clientOf(addresses[i], clients);
      for (const candidate of candidates) candidate.hear({ records, refusals, lines });
    }
  }

  told(notice: Notice, from: object = this): void {
    if (this.#elsewhere) return this.#elsewhere.told(notice);
    if (notice.type === "ledger" && !this.#isNews(notice.ok, from)) return;
    this.#journal.told(notice);
    for (const candidate of this.#candidates) candidate.told(notice);
  }

  async heard(notice: Notice): Promise<boolean> {
    // Verdicts are heard there too, and told by it.
    if (this.#elsewhere) return false;
    this.#journal.told(notice);
    const all = await Promise.all(this.#candidates.map((candidate) => candidate.heard(notice)));
    return !all.includes(false);
  }

  landed(batch: readonly StoreCommand[], verdicts: readonly Verdict[]): void {
    if (!this.#calls || this.#elsewhere) return;
    this.#calls.add(this.#lines, batch, verdicts);
    if (this.#lines.length > 0) this.#soon(this.#lines.length);
  }

  gone(from: object): void {
    if (this.#down.has(from)) this.told({ type: "ledger", at: wallClock(), ok: true }, from);
  }

  /** Each process finds out by itself whether the ledger takes rows: it does not as soon as one says so, until none does. */
  #isNews(ok: boolean, from: object): boolean {
    const before = this.#down.size;
    if (ok) this.#down.delete(from);
    else this.#down.add(from);
    return (before === 0) !== (this.#down.size === 0);
  }

  dropped(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#dropped);
  }

  mount(observers: readonly MountedObserver[]): void {
    this.#share();
    const asked = observers.some(({ observer }) => observer.billed !== undefined);
    this.#calls = asked ? (this.#calls ?? new ReservedCalls()) : undefined;
    const mine = observers.map((mounted) => {
      const candidate = new Subscriber(mounted, this.#log, this.#dropped);
      this.#all.set(mounted, candidate);
      return candidate;
    });
    this.#tellThese([...this.#own, ...mine]);
  }

  /** The host's own get what is left. */
  async close(): Promise<void> {
    this.#share();
    await Promise.all(this.#own.map((each) => each.end()));
  }

  async end(observers: readonly MountedObserver[]): Promise<void> {
    this.#share();
    await Promise.all(
      observers.map(async (mounted) => {
        await this.#all.get(mounted)?.end();
        this.#all.delete(mounted);
      }),
    );
  }
}
