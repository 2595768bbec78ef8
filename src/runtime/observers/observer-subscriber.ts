// Queues the records of one observer, up to a limit, and delivers one batch or event at a time.
// Each hook has a queue, and all hooks share one loop, because an observer runs one hook at a time.
// A quarantined hook does not delay other hooks. A synchronous hook needs no promise and no timer.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { BatchLoop } from "../../lib/queue/batch-loop.ts";
import { BoundedQueue } from "../../lib/queue/bounded-queue.ts";
import { settlesWithin } from "../../lib/time/settles-within.ts";
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
  readonly records?: readonly RequestRecord[];
  readonly rejections?: readonly RejectedRequest[];
  readonly charges?: readonly ChargeRecord[];
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

interface QueuedEvent {
  readonly notice: GatewayEvent;
  readonly onDelivered?: (() => void) | undefined;
}

export class ObserverSubscriber {
  readonly #mounted: MountedObserver;
  readonly #log: Log;
  readonly #droppedCounts: Map<string, number>;
  readonly #queues = {
    onEvent: new BoundedQueue<QueuedEvent>({ maxItems: MAX_QUEUED }),
    onRequests: new BoundedQueue<RequestRecord>({ maxItems: MAX_QUEUED }),
    onRejected: new BoundedQueue<RejectedRequest>({ maxItems: MAX_QUEUED }),
    onCharges: new BoundedQueue<ChargeRecord>({ maxItems: MAX_QUEUED }),
  };
  /** Delivers after the event loop turn that caused the event. */
  readonly #loop = new BatchLoop(
    { pending: () => this.#readyHooks(), step: () => this.#callHook(this.#nextHook()!) },
    { delayMs: 0, fullAt: 1 },
  );
  #dropped = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #isEnded = false;
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

  enqueue({ records = [], rejections = [], charges = [] }: ObserverBatch): void {
    const { observer, sends } = this.#mounted;
    const goes = sends !== "nowhere";
    if (observer.onRequests)
      this.#append(this.#queues.onRequests, records, (one) =>
        goes && one.privacy !== "off" ? withoutPersonalData(one) : one,
      );
    if (observer.onRejected) this.#append(this.#queues.onRejected, rejections, (one) => one);
    if (observer.onCharges)
      this.#append(this.#queues.onCharges, charges, (one) =>
        goes ? chargeWithoutLabels(one) : one,
      );
    this.#wake();
  }

  #append<T>(kept: BoundedQueue<T>, more: readonly T[], as: (one: T) => T): void {
    const before = kept.dropped;
    for (const one of more) kept.push(as(one));
    const dropped = kept.dropped - before;
    if (dropped === 0) return;
    this.#dropped += dropped;
    this.#droppedCounts.set(this.#mounted.id, this.#droppedCounts.get(this.#mounted.id)! + dropped);
  }

  enqueueEvent(event: GatewayEvent, onDelivered?: () => void): boolean {
    if (this.#mounted.observer.onEvent) {
      if (!this.#queues.onEvent.push({ notice: event, onDelivered })) return false;
      this.#wake();
    } else onDelivered?.();
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
    const isFlushed = await settlesWithin(FLUSH_TIMEOUT_MS, this.#flush());
    if (!isFlushed)
      this.#log.warn(
        { plugin: this.#mounted.id, records: this.#queues.onRequests.length },
        "observer did not stop, remaining records dropped",
      );
  }

  async #flush(): Promise<void> {
    // Records that arrive during a hook call are delivered next.
    await this.#loop.drain();
    this.#isEnded = true;
    clearTimeout(this.#retryTimer);
    await this.#callSafely("flush", () => this.#mounted.observer.flush?.());
  }

  /** Starts a delivery. Records of a quarantined hook are kept until the queue is full. */
  #wake(): void {
    this.#loop.wake();
    if (this.#retryTimer || this.#isEnded) return;
    if (!OBSERVER_HOOKS.some((hook) => this.#isQuarantined(hook))) return;
    this.#retryTimer = setTimeout(() => {
      this.#retryTimer = undefined;
      this.#wake();
    }, RETRY_DELAY_MS).unref();
  }

  #isQuarantined(hook: ObserverHook): boolean {
    return this.#queues[hook].length > 0 && this.#breakers.get(hook)?.isBlocked === true;
  }

  /** Returns the number of hooks that may run now and have something to receive. */
  #readyHooks(): number {
    let ready = 0;
    for (const hook of OBSERVER_HOOKS)
      if (this.#queues[hook].length > 0 && this.#breakers.get(hook)?.isBlocked !== true) ready++;
    return ready;
  }

  #nextHook(): ObserverHook | undefined {
    return OBSERVER_HOOKS.find((hook) => {
      if (this.#queues[hook].length === 0) return false;
      const breaker = this.#breakers.get(hook);
      return !breaker || breaker.isHealthy || breaker.tryEnter();
    });
  }

  #callHook(hook: ObserverHook): Promise<void> | undefined {
    const { observer } = this.#mounted;
    if (hook === "onEvent") {
      const [{ notice, onDelivered }] = this.#queues.onEvent.take(1) as [QueuedEvent];
      const answer = this.#callSafely("onEvent", () => observer.onEvent!(notice));
      if (answer) return answer.then(onDelivered);
      onDelivered?.();
      return undefined;
    }
    const answer = this.#callSafely(hook, () => {
      if (hook === "onRequests") return observer.onRequests!(this.#queues[hook].take(MAX_BATCH));
      if (hook === "onCharges") return observer.onCharges!(this.#queues[hook].take(MAX_BATCH));
      return observer.onRejected!(this.#queues[hook].take(MAX_BATCH));
    });
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
      this.#queues.onEvent.push({ notice });
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
    try {
      if (!(await settlesWithin(HOOK_TIMEOUT_MS, Promise.resolve(answer)))) {
        this.#log.error({ plugin: this.#mounted.id, hook }, "observer timed out");
        conduct?.recordFailure("timeout", {});
      } else if (conduct && !conduct.isHealthy) conduct.recordSuccess();
    } catch (err) {
      this.#onFailure(hook, conduct, err);
    }
  }

  #onFailure(hook: ObserverHook | "flush", conduct: HookBreaker | undefined, err: unknown): void {
    this.#log.error({ plugin: this.#mounted.id, hook, err }, "observer failed");
    conduct?.recordFailure("threw", {});
    this.#wake();
  }
}

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
