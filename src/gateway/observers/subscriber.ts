// One observer, with what waits for it: told one thing at a time, and no more is kept for it than there is room for.
import { wallClock } from "../../lib/wall-clock.ts";
import type { Log } from "../../lib/log.ts";
import type { Conduct } from "../../walk/conduct.ts";
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
  /** How each of its hooks behaves. The host's own have none. */
  readonly conduct?: (hook: ObserverHook) => Conduct;
}

const TELLS = ["told", "seen", "turnedAway", "billed"] as const;
type ObserverHook = (typeof TELLS)[number];

export type Clients = NonNullable<Observer["clients"]>;

export const EVERY_MS = 200;
export const BATCH = 256;
/** They are told as soon as so many wait: a record that outlives a collection is copied by it, and few are kept so short. */
const SOON = 32;
const MOST = 10_000;
const END_MS = 5_000;
/** An observer that takes longer over what it was told is not waited for. */
const TELL_MS = 30_000;
/** Until it is looked again whether one that is not asked may be told something. */
const AGAIN_MS = 1_000;

export class Subscriber {
  readonly #of: MountedObserver;
  readonly #log: Log;
  readonly #counts: Map<string, number>;
  #records: RequestRecord[] = [];
  #refusals: TurnedAway[] = [];
  #lines: LedgerLine[] = [];
  #notices: { readonly notice: Notice; readonly told?: (() => void) | undefined }[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<void> | undefined;
  readonly #conducts = new Map<ObserverHook, Conduct>();

  constructor(of: MountedObserver, log: Log, counts: Map<string, number>) {
    this.#of = of;
    this.#log = log;
    this.#counts = counts;
    for (const hook of TELLS)
      if (of.conduct && of.observer[hook]) this.#conducts.set(hook, of.conduct(hook));
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
    if (waiting >= SOON) this.#tell();
    else this.#timer ??= setTimeout(() => this.#tell(), EVERY_MS).unref();
  }

  #drop(): void {
    this.#dropped++;
    this.#counts.set(this.#of.id, this.#counts.get(this.#of.id)! + 1);
  }

  told(notice: Notice, told?: () => void): boolean {
    if (this.#notices.length >= MOST) return false;
    if (!this.#of.observer.told) told?.();
    else {
      this.#notices.push({ notice, told });
      this.#tell();
    }
    return true;
  }

  /** Resolves when it was told, whatever it made of it; false: there is no room for it. */
  heard(notice: Notice): Promise<boolean> {
    return new Promise((resolve) => {
      if (!this.told(notice, () => resolve(true))) resolve(false);
    });
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
    await this.#safely("end", () => this.#of.observer.end?.());
  }

  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#telling ??= this.#all().finally(() => {
      this.#telling = undefined;
      const due = (hook: ObserverHook, least: number) =>
        this.#waiting(hook) >= least && !this.#conducts.get(hook)?.state;
      if (due("told", 1) || TELLS.some((hook) => due(hook, SOON))) this.#tell();
      else if (TELLS.some((hook) => this.#waiting(hook) > 0))
        this.#timer ??= setTimeout(() => this.#tell(), AGAIN_MS).unref();
    });
  }

  #waiting(hook: ObserverHook): number {
    if (hook === "told") return this.#notices.length;
    if (hook === "seen") return this.#records.length;
    return hook === "billed" ? this.#lines.length : this.#refusals.length;
  }

  /** Whether there is something for it that it may be told now. What fails again and again is kept for it, as far as there is room. */
  #may(hook: ObserverHook): boolean {
    if (this.#waiting(hook) === 0) return false;
    const conduct = this.#conducts.get(hook);
    return !conduct || conduct.well || conduct.enter();
  }

  /** One thing at a time, until nothing is left. */
  async #all(): Promise<void> {
    // Not in the turn of the request that was over.
    await new Promise(setImmediate);
    const { observer } = this.#of;
    for (;;) {
      if (this.#may("told")) {
        const { notice, told } = this.#notices.shift()!;
        await this.#safely("told", () => observer.told!(notice));
        told?.();
        continue;
      }
      if (this.#may("seen")) {
        const batch = this.#records.splice(0, BATCH);
        await this.#safely("seen", () => observer.seen!(batch));
      } else if (this.#may("turnedAway")) {
        const batch = this.#refusals.splice(0, BATCH);
        await this.#safely("turnedAway", () => observer.turnedAway!(batch));
      } else if (this.#may("billed")) {
        const lines = this.#lines.splice(0, BATCH);
        await this.#safely("billed", () => observer.billed!(lines));
      } else return;
      this.#tellDropped();
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
    if (this.#of.observer.told) {
      const notice = { type: "dropped", records, at: wallClock() } as const;
      this.#notices.push({ notice });
    }
  }

  async #safely(hook: ObserverHook | "end", tell: () => unknown): Promise<void> {
    const conduct = hook === "end" ? undefined : this.#conducts.get(hook);
    let late: NodeJS.Timeout | undefined;
    const over = new Promise<"late">((resolve) => {
      late = setTimeout(() => resolve("late"), TELL_MS);
    });
    try {
      if ((await Promise.race([Promise.resolve(tell()), over])) === "late") {
        this.#log.error({ plugin: this.#of.id, hook }, "an observer took too long");
        conduct?.failed("slow", {});
      } else if (conduct && !conduct.well) conduct.went();
    } catch (err) {
      this.#log.error({ plugin: this.#of.id, hook, err }, "an observer failed");
      conduct?.failed("threw", {});
    } finally {
      clearTimeout(late);
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
