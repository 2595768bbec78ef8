// Queues the records of one observer, up to a limit, and delivers one batch or event at a time.
// While the observer is idle, records go to it directly. A synchronous hook costs no promise and no
// timer.
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Log } from "../../lib/log/log.ts";
import type { HookBreaker } from "../../pipeline/hooks/hook-breaker.ts";
import type { GatewayEvent } from "../../plugin/gateway-event.ts";
import type {
  ChargeRecord,
  Observer,
  ObserverDef,
  RequestRecord,
  RejectedRequest,
} from "../../plugin/observer.ts";

export interface MountedObserver {
  /** Path in gateway.yaml: "observers.metrics". */
  readonly id: string;
  readonly observer: Observer;
  readonly sends: ObserverDef["sends"];
  /** Returns the breaker of a hook. Unset for the gateway's own observers. */
  readonly breakerOf?: (hook: ObserverHook) => HookBreaker;
}

/** Records since the last flush. */
export interface ObserverBatch {
  readonly records: readonly RequestRecord[];
  readonly rejections: readonly RejectedRequest[];
  readonly charges: readonly ChargeRecord[];
}

const OBSERVER_HOOKS = ["onEvent", "onRequests", "onRejected", "onCharges"] as const;
type ObserverHook = (typeof OBSERVER_HOOKS)[number];

export type ClientAddressDetail = NonNullable<Observer["clientAddress"]>;

export const MAX_BATCH = 256;
const MAX_QUEUED = 10_000;
const FLUSH_TIMEOUT_MS = 5_000;
/** How long a hook call is awaited, in milliseconds. */
const HOOK_TIMEOUT_MS = 30_000;
/** Delay before a quarantined hook is checked again, in milliseconds. */
const RETRY_DELAY_MS = 1_000;

export class ObserverSubscriber {
  readonly #mounted: MountedObserver;
  readonly #log: Log;
  readonly #droppedCounts: Map<string, number>;
  #records: RequestRecord[] = [];
  #rejections: RejectedRequest[] = [];
  #charges: ChargeRecord[] = [];
  #events: { readonly notice: GatewayEvent; readonly told?: (() => void) | undefined }[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  /** Resolves when the observer has finished, or when its turn begins. */
  #running: Promise<void> | undefined;
  readonly #breakers = new Map<ObserverHook, HookBreaker>();

  constructor(of: MountedObserver, log: Log, counts: Map<string, number>) {
    this.#mounted = of;
    this.#log = log;
    this.#droppedCounts = counts;
    for (const hook of OBSERVER_HOOKS)
      if (of.breakerOf && of.observer[hook]) this.#breakers.set(hook, of.breakerOf(hook));
    if (!counts.has(of.id)) counts.set(of.id, 0);
  }

  get clientAddressDetail(): ClientAddressDetail {
    return this.#mounted.observer.clientAddress ?? "none";
  }

  /** Queues a batch and delivers it. Called outside the event loop turn of a request. */
  enqueue({ records, rejections, charges }: ObserverBatch): void {
    const { observer, sends } = this.#mounted;
    const goes = sends !== "nowhere";
    if (observer.onRequests)
      this.#append(this.#records, records, (one) =>
        goes && one.privacy !== "off" ? withoutPersonalData(one) : one,
      );
    if (observer.onRejected) this.#append(this.#rejections, rejections, (one) => one);
    if (observer.onCharges)
      this.#append(this.#charges, charges, (one) => (goes ? chargeWithoutLabels(one) : one));
    if (!this.#running) this.#deliverNext();
  }

  #append<T>(kept: T[], more: readonly T[], as: (one: T) => T): void {
    for (const one of more)
      if (kept.length < MAX_QUEUED) kept.push(as(one));
      else this.#dropOldest();
  }

  #dropOldest(): void {
    this.#dropped++;
    this.#droppedCounts.set(this.#mounted.id, this.#droppedCounts.get(this.#mounted.id)! + 1);
  }

  enqueueEvent(event: GatewayEvent, told?: () => void): boolean {
    if (this.#events.length >= MAX_QUEUED) return false;
    if (!this.#mounted.observer.onEvent) told?.();
    else {
      this.#events.push({ notice: event, told });
      // Delivered after the event loop turn that caused the event.
      this.#running ??= new Promise<void>(setImmediate).then(() => this.#resume());
    }
    return true;
  }

  /**
   * Resolves when the event was delivered, even if the hook failed. Resolves with false if the
   * queue is full.
   */
  deliverEvent(event: GatewayEvent): Promise<boolean> {
    return new Promise((resolve) => {
      if (!this.enqueueEvent(event, () => resolve(true))) resolve(false);
    });
  }

  async end(): Promise<void> {
    if (!this.#running) this.#deliverNext();
    let late: NodeJS.Timeout | undefined;
    const over = new Promise<"late">((resolve) => {
      late = setTimeout(() => resolve("late"), FLUSH_TIMEOUT_MS);
    });
    if ((await Promise.race([this.#flush(), over])) === "late")
      this.#log.warn(
        { plugin: this.#mounted.id, records: this.#records.length },
        "observer did not stop, remaining records dropped",
      );
    clearTimeout(late);
  }

  async #flush(): Promise<void> {
    // Records that arrive during a hook call are delivered next.
    while (this.#running) await this.#running;
    clearTimeout(this.#timer);
    await this.#callSafely("flush", () => this.#mounted.observer.flush?.());
  }

  #resume(): void {
    this.#running = undefined;
    this.#deliverNext();
  }

  /** Delivers until the queue is empty or a hook is asynchronous. */
  #deliverNext(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (let hook = this.#nextHook(); hook; hook = this.#nextHook()) {
      const answer = this.#callHook(hook);
      if (answer) {
        this.#running = answer.then(() => this.#resume());
        return;
      }
    }
    if (OBSERVER_HOOKS.some((hook) => this.#queuedFor(hook) > 0))
      this.#timer = setTimeout(() => this.#deliverNext(), RETRY_DELAY_MS).unref();
  }

  #nextHook(): ObserverHook | undefined {
    return OBSERVER_HOOKS.find((hook) => this.#canDeliver(hook));
  }

  #queuedFor(hook: ObserverHook): number {
    if (hook === "onEvent") return this.#events.length;
    if (hook === "onRequests") return this.#records.length;
    return hook === "onCharges" ? this.#charges.length : this.#rejections.length;
  }

  /**
   * Whether something is queued for a hook that may run now. Records of a quarantined hook are kept
   * while there is room.
   */
  #canDeliver(hook: ObserverHook): boolean {
    if (this.#queuedFor(hook) === 0) return false;
    const conduct = this.#breakers.get(hook);
    return !conduct || conduct.isHealthy || conduct.tryEnter();
  }

  #callHook(hook: ObserverHook): Promise<void> | undefined {
    const { observer } = this.#mounted;
    if (hook === "onEvent") {
      const { notice, told } = this.#events.shift()!;
      const answer = this.#callSafely("onEvent", () => observer.onEvent!(notice));
      if (answer) return answer.then(told);
      told?.();
      return undefined;
    }
    const answer =
      hook === "onRequests"
        ? this.#callSafely(hook, () => observer.onRequests!(takeBatch(this.#records)))
        : hook === "onCharges"
          ? this.#callSafely(hook, () => observer.onCharges!(takeBatch(this.#charges)))
          : this.#callSafely(hook, () => observer.onRejected!(takeBatch(this.#rejections)));
    if (answer) return answer.then(() => this.#reportDropped());
    this.#reportDropped();
    return undefined;
  }

  #reportDropped(): void {
    const records = this.#dropped;
    if (records === 0) return;
    this.#dropped = 0;
    this.#log.warn({ plugin: this.#mounted.id, records }, "observer too slow, records dropped");
    if (this.#mounted.observer.onEvent) {
      const notice = { type: "records_dropped", records, at: wallClock() } as const;
      this.#events.push({ notice });
    }
  }

  /** Calls a hook. Never rejects. Returns undefined if the hook has finished. */
  #callSafely(hook: ObserverHook | "flush", run: () => unknown): Promise<void> | undefined {
    const conduct = hook === "flush" ? undefined : this.#breakers.get(hook);
    try {
      const answer = run();
      if (answer !== undefined) return this.#awaitWithTimeout(hook, conduct, answer);
      if (conduct && !conduct.isHealthy) conduct.recordSuccess();
    } catch (err) {
      this.#onFailure(hook, conduct, err);
    }
    return undefined;
  }

  async #awaitWithTimeout(
    hook: ObserverHook | "flush",
    conduct: HookBreaker | undefined,
    answer: unknown,
  ): Promise<void> {
    let late: NodeJS.Timeout | undefined;
    const over = new Promise<"late">((resolve) => {
      late = setTimeout(() => resolve("late"), HOOK_TIMEOUT_MS);
    });
    try {
      if ((await Promise.race([answer, over])) === "late") {
        this.#log.error({ plugin: this.#mounted.id, hook }, "observer timed out");
        conduct?.recordFailure("timeout", {});
      } else if (conduct && !conduct.isHealthy) conduct.recordSuccess();
    } catch (err) {
      this.#onFailure(hook, conduct, err);
    } finally {
      clearTimeout(late);
    }
  }

  #onFailure(hook: ObserverHook | "flush", conduct: HookBreaker | undefined, err: unknown): void {
    this.#log.error({ plugin: this.#mounted.id, hook, err }, "observer failed");
    conduct?.recordFailure("threw", {});
  }
}

/** Takes a batch. The array belongs to the observer. */
const takeBatch = <T>(all: T[]): T[] => all.splice(0, MAX_BATCH);

/**
 * Removes personal data from a record for an observer that sends records elsewhere. Labels,
 * addresses, and client-written IDs may identify a person.
 */
function withoutPersonalData(record: RequestRecord): RequestRecord {
  const { state: _, ...trace } = record.trace;
  return { ...record, labels: {}, client: undefined, clientRequestId: undefined, trace };
}
/**
 * Removes the labels of a charge for an observer that sends records elsewhere, because a label may
 * identify a person.
 */
const chargeWithoutLabels = (line: ChargeRecord): ChargeRecord =>
  line.call && line.call.privacy !== "off" ? { ...line, call: { ...line.call, labels: {} } } : line;
