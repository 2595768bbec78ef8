// One observer, with what waits for it: told one thing at a time, and no more is kept for it than there is room for. What comes
// while it is idle goes straight to it, and one that answers at once costs no promise and no timer.
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

/** What happened since the last time. */
export interface GatheredNews {
  readonly records: readonly RequestRecord[];
  readonly refusals: readonly TurnedAway[];
  readonly lines: readonly LedgerLine[];
}

const TELLS = ["told", "seen", "turnedAway", "billed"] as const;
type ObserverHook = (typeof TELLS)[number];

export type Clients = NonNullable<Observer["clients"]>;

export const BATCH = 256;
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
  /** Resolves when it has answered, or when it is its turn. */
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

  /** All at once: not in the turn of a request. */
  hear({ records, refusals, lines }: GatheredNews): void {
    const { observer, sends } = this.#of;
    const goes = sends !== "nowhere";
    if (observer.seen)
      this.#keep(this.#records, records, (one) =>
        goes && one.privacy !== "off" ? bare(one) : one,
      );
    if (observer.turnedAway) this.#keep(this.#refusals, refusals, (one) => one);
    if (observer.billed) this.#keep(this.#lines, lines, (one) => (goes ? withoutLabels(one) : one));
    if (!this.#telling) this.#tell();
  }

  #keep<T>(kept: T[], more: readonly T[], as: (one: T) => T): void {
    for (const one of more)
      if (kept.length < MOST) kept.push(as(one));
      else this.#drop();
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
      // Not in the turn of what it tells of.
      this.#telling ??= new Promise<void>(setImmediate).then(() => this.#goOn());
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
    if (!this.#telling) this.#tell();
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
    clearTimeout(this.#timer);
    await this.#safely("end", () => this.#of.observer.end?.());
  }

  #goOn(): void {
    this.#telling = undefined;
    this.#tell();
  }

  /** One thing at a time, until nothing is left or it takes its time. */
  #tell(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let hook = this.#due(); hook; hook = this.#due()) {
      const answer = this.#tellNext(hook);
      if (answer) {
        this.#telling = answer.then(() => this.#goOn());
        return;
      }
    }
    if (TELLS.some((hook) => this.#waiting(hook) > 0))
      this.#timer = setTimeout(() => this.#tell(), AGAIN_MS).unref();
  }

  #due(): ObserverHook | undefined {
    return TELLS.find((hook) => this.#may(hook));
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

  #tellNext(hook: ObserverHook): Promise<void> | undefined {
    const { observer } = this.#of;
    if (hook === "told") {
      const { notice, told } = this.#notices.shift()!;
      const answer = this.#safely("told", () => observer.told!(notice));
      if (answer) return answer.then(told);
      told?.();
      return undefined;
    }
    const answer =
      hook === "seen"
        ? this.#safely(hook, () => observer.seen!(batchOf(this.#records)))
        : hook === "billed"
          ? this.#safely(hook, () => observer.billed!(batchOf(this.#lines)))
          : this.#safely(hook, () => observer.turnedAway!(batchOf(this.#refusals)));
    if (answer) return answer.then(() => this.#tellDropped());
    this.#tellDropped();
    return undefined;
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

  /** Undefined: it is done. Never rejects. */
  #safely(hook: ObserverHook | "end", tell: () => unknown): Promise<void> | undefined {
    const conduct = hook === "end" ? undefined : this.#conducts.get(hook);
    try {
      const answer = tell();
      if (answer !== undefined) return this.#inTime(hook, conduct, answer);
      if (conduct && !conduct.well) conduct.went();
    } catch (err) {
      this.#failed(hook, conduct, err);
    }
    return undefined;
  }

  async #inTime(
    hook: ObserverHook | "end",
    conduct: Conduct | undefined,
    answer: unknown,
  ): Promise<void> {
    let late: NodeJS.Timeout | undefined;
    const over = new Promise<"late">((resolve) => {
      late = setTimeout(() => resolve("late"), TELL_MS);
    });
    try {
      if ((await Promise.race([answer, over])) === "late") {
        this.#log.error({ plugin: this.#of.id, hook }, "an observer took too long");
        conduct?.failed("slow", {});
      } else if (conduct && !conduct.well) conduct.went();
    } catch (err) {
      this.#failed(hook, conduct, err);
    } finally {
      clearTimeout(late);
    }
  }

  #failed(hook: ObserverHook | "end", conduct: Conduct | undefined, err: unknown): void {
    this.#log.error({ plugin: this.#of.id, hook, err }, "an observer failed");
    conduct?.failed("threw", {});
  }
}

/** What was gathered is one observer's own list. */
const batchOf = <T>(all: T[]): T[] => all.splice(0, BATCH);

/** For an observer that sends records elsewhere: a label, an address, and what a client wrote of itself, may be a person. */
function bare(record: RequestRecord): RequestRecord {
  const { state: _, ...trace } = record.trace;
  return { ...record, labels: {}, client: undefined, clientRequestId: undefined, trace };
}
/** A label may be a person, and this observer sends what it is told elsewhere. */
const withoutLabels = (line: LedgerLine): LedgerLine =>
  line.call && line.call.privacy !== "off" ? { ...line, call: { ...line.call, labels: {} } } : line;
