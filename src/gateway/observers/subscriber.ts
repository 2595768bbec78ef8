// One observer, with what waits for it: told one thing at a time, and no more is kept for it than there is room for.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Notice } from "../../plugin/notice.ts";
import type {
  LedgerLine,
  Observer,
  ObserverDef,
  RequestRecord,
  TurnedAway,
} from "../../plugin/observer.ts";

export interface MountedObserver {
  /** "observers.metrics" */
  readonly id: string;
  readonly observer: Observer;
  readonly sends: ObserverDef["sends"];
}

export type Clients = NonNullable<Observer["clients"]>;

export const EVERY_MS = 200;
export const BATCH = 256;
const MOST = 10_000;
const END_MS = 5_000;

export class Subscriber {
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

  get clients(): Clients {
    return this.#of.observer.clients ?? "none";
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
    if (this.#of.observer.told) this.#notices.push({ type: "dropped", records, at: wallClock() });
  }

  async #safely(tell: () => unknown): Promise<void> {
    try {
      await tell();
    } catch (err) {
      this.#log.error({ plugin: this.#of.id, err }, "an observer failed");
    }
  }
}

/** For an observer that sends records elsewhere: a label, an address, and what a client wrote of itself, may be a person. */
function bare(record: RequestRecord): RequestRecord {
  const { state: _, ...trace } = record.trace;
  return { ...record, labels: {}, client: undefined, clientRequestId: undefined, trace };
}
/** A label may be a person, and this observer sends what it is told elsewhere. */
const withoutLabels = (line: LedgerLine): LedgerLine =>
  line.call && line.call.privacy !== "off" ? { ...line, call: { ...line.call, labels: {} } } : line;
