// What observers are told, in the process that has them. Each has a queue of its own with a bound, and is told one thing at a
// time; nothing waits for it but its own end. Money does not pass here: the ledger has its own way.
import type { Log } from "../../lib/log.ts";
import type {
  LedgerLine,
  Notice,
  Observer,
  ObserverDef,
  RequestRecord,
  TurnedAway,
} from "../../plugin/observer.ts";
import type { StoreCommand, Verdict } from "../../plugin/store.ts";
import { ReservedCalls } from "./reserved-calls.ts";

/** Where records and notices go in a process: to its observers, or to the process that has them. */
export interface Observing {
  seen(record: RequestRecord): void;
  turnedAway(refusal: TurnedAway): void;
  /** `from`: the process that says so, when it is another one. */
  told(notice: Notice, from?: object): void;
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

export interface MountedObserver {
  /** "observers.metrics" */
  readonly id: string;
  readonly observer: Observer;
  readonly sends: ObserverDef["sends"];
}

export const EVERY_MS = 200;
export const BATCH = 256;
const MOST = 10_000;
const END_MS = 5_000;

export class Audience implements Observing {
  readonly #log: Log;
  /** The host's own: of all generations. */
  readonly #own: readonly Subscriber[];
  #candidates: readonly Subscriber[];
  /** Processes whose ledger takes no rows. */
  readonly #down = new Set<object>();
  /** Counts go on over a reload. */
  readonly #dropped = new Map<string, number>();
  readonly #all = new Map<MountedObserver, Subscriber>();
  /** Undefined: none of them asks for bills, so nothing is kept of a call. */
  #calls: ReservedCalls | undefined;

  constructor(log: Log, own: readonly MountedObserver[] = []) {
    this.#log = log;
    this.#own = own.map((each) => new Subscriber(each, log, new Map()));
    this.#candidates = this.#own;
  }

  turnedAway(refusal: TurnedAway): void {
    for (const candidate of this.#candidates) candidate.turnedAway(refusal);
  }

  seen(record: RequestRecord): void {
    for (const candidate of this.#candidates) candidate.seen(record);
  }

  told(notice: Notice, from: object = this): void {
    if (notice.type === "ledger" && !this.#isNews(notice.ok, from)) return;
    for (const candidate of this.#candidates) candidate.told(notice);
  }

  landed(batch: readonly StoreCommand[], verdicts: readonly Verdict[]): void {
    if (!this.#calls) return;
    const lines = this.#calls.lines(batch, verdicts);
    if (lines.length === 0) return;
    for (const candidate of this.#candidates) candidate.billed(lines);
  }

  gone(from: object): void {
    if (this.#down.has(from)) this.told({ type: "ledger", at: Date.now(), ok: true }, from);
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
    const asked = observers.some(({ observer }) => observer.billed !== undefined);
    this.#calls = asked ? (this.#calls ?? new ReservedCalls()) : undefined;
    const mine = observers.map((mounted) => {
      const candidate = new Subscriber(mounted, this.#log, this.#dropped);
      this.#all.set(mounted, candidate);
      return candidate;
    });
    this.#candidates = [...this.#own, ...mine];
  }

  /** The host's own get what is left. */
  async close(): Promise<void> {
    await Promise.all(this.#own.map((each) => each.end()));
  }

  async end(observers: readonly MountedObserver[]): Promise<void> {
    await Promise.all(
      observers.map(async (mounted) => {
        await this.#all.get(mounted)?.end();
        this.#all.delete(mounted);
      }),
    );
  }
}

/** One observer, with what waits for it. */
class Subscriber {
  readonly #of: MountedObserver;
  readonly #log: Log;
  readonly #counts: Map<string, number>;
  #records: RequestRecord[] = [];
  #refusals: TurnedAway[] = [];
  #lines: LedgerLine[] = [];
  #notices: Notice[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<void> | undefined;

  constructor(of: MountedObserver, log: Log, counts: Map<string, number>) {
    this.#of = of;
    this.#log = log;
    this.#counts = counts;
    if (!counts.has(of.id)) counts.set(of.id, 0);
  }

  seen(record: RequestRecord): void {
    const { observer, sends } = this.#of;
    if (!observer.seen) return;
    if (this.#records.length >= MOST) return this.#drop();
    this.#records.push(sends !== "nowhere" && record.privacy !== "off" ? bare(record) : record);
    this.#soon(this.#records.length);
  }

  turnedAway(refusal: TurnedAway): void {
    if (!this.#of.observer.turnedAway) return;
    if (this.#refusals.length >= MOST) return this.#drop();
    this.#refusals.push(refusal);
    this.#soon(this.#refusals.length);
  }

  billed(lines: readonly LedgerLine[]): void {
    const { observer, sends } = this.#of;
    if (!observer.billed) return;
    for (const line of lines) {
      if (this.#lines.length >= MOST) this.#drop();
      else this.#lines.push(sends === "nowhere" ? line : withoutLabels(line));
    }
    this.#soon(this.#lines.length);
  }

  #soon(waiting: number): void {
    if (waiting >= BATCH) this.#tell();
    else this.#timer ??= setTimeout(() => this.#tell(), EVERY_MS).unref();
  }

  #drop(): void {
    this.#dropped++;
    this.#counts.set(this.#of.id, this.#counts.get(this.#of.id)! + 1);
  }

  told(notice: Notice): void {
    if (!this.#of.observer.told) return;
    if (this.#notices.length < MOST) this.#notices.push(notice);
    this.#tell();
  }

  async end(): Promise<void> {
    this.#tell();
    let late: NodeJS.Timeout | undefined;
    const over = new Promise<"late">((resolve) => {
      late = setTimeout(() => resolve("late"), END_MS);
    });
    if ((await Promise.race([this.#last(), over])) === "late")
      this.#log.warn(
        { plugin: this.#of.id, records: this.#records.length },
        "an observer does not end; what is left for it is given up",
      );
    clearTimeout(late);
  }

  async #last(): Promise<void> {
    // What comes while it is told something is told in turn.
    while (this.#telling) await this.#telling;
    await this.#safely(() => this.#of.observer.end?.());
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#telling ??= this.#all().finally(() => {
      this.#telling = undefined;
      const waiting = [this.#records, this.#refusals, this.#lines].map(({ length }) => length);
      if (this.#notices.length > 0 || Math.max(...waiting) >= BATCH) this.#tell();
    });
  }

  /** One thing at a time, until nothing is left. */
  async #all(): Promise<void> {
    // Not in the turn of the request that was over.
    await new Promise(setImmediate);
    const { observer } = this.#of;
    for (;;) {
      const notice = this.#notices.shift();
      if (notice) await this.#safely(() => observer.told!(notice));
      else if (this.#records.length > 0) {
        const batch = this.#records.splice(0, BATCH);
        await this.#safely(() => observer.seen!(batch));
        this.#tellDropped();
      } else if (this.#refusals.length > 0) {
        const batch = this.#refusals.splice(0, BATCH);
        await this.#safely(() => observer.turnedAway!(batch));
        this.#tellDropped();
      } else if (this.#lines.length > 0) {
        const lines = this.#lines.splice(0, BATCH);
        await this.#safely(() => observer.billed!(lines));
        this.#tellDropped();
      } else return;
    }
  }

  #tellDropped(): void {
    const records = this.#dropped;
    if (records === 0) return;
    this.#dropped = 0;
    this.#log.warn(
      { plugin: this.#of.id, records },
      "an observer is too slow: records were not kept for it",
    );
    if (this.#of.observer.told) this.#notices.push({ type: "dropped", records, at: Date.now() });
  }

  async #safely(tell: () => unknown): Promise<void> {
    try {
      await tell();
    } catch (err) {
      this.#log.error({ plugin: this.#of.id, err }, "an observer failed");
    }
  }
}

/** For an observer that sends records elsewhere: a label, and what a client's tracing wrote, may be a person. */
function bare(record: RequestRecord): RequestRecord {
  const { state: _, ...trace } = record.trace;
  return { ...record, labels: {}, trace };
}
/** A label may be a person, and this observer sends what it is told elsewhere. */
const withoutLabels = (line: LedgerLine): LedgerLine =>
  line.call && line.call.privacy !== "off" ? { ...line, call: { ...line.call, labels: {} } } : line;
