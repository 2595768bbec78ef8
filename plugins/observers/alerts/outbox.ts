// Alerts that are pending for their receivers, in the order of their events. Pending alerts are
// stored on disk, so they are kept across reloads and restarts. For each receiver, one alert per
// subject is sent at a time, so alerts about a subject arrive in order.
import type { Alert } from "./alert.ts";
import { OutboxFile, type OutboxState, type QueuedAlert } from "./outbox-file.ts";

/** Maximum number of IDs of accepted alerts that are kept in memory. */
const MAX_REMEMBERED_IDS = 10_000;

export interface PendingDelivery extends QueuedAlert {
  /** Number of failed delivery attempts. */
  attempts: number;
  /** Earliest time of the next attempt, in Unix milliseconds. */
  nextAttemptAt: number;
  isInFlight: boolean;
}

export interface OutboxCounts {
  sent: number;
  /** Alerts that expired after one day or did not fit into the queue. */
  lost: number;
}

export class Outbox {
  readonly #file: OutboxFile;
  readonly #sentIds: Set<string>;
  readonly #pendingList: PendingDelivery[];
  readonly counts: OutboxCounts = { sent: 0, lost: 0 };

  constructor(path: string) {
    this.#file = new OutboxFile(path, this.#state);
    const { sentIds, queued } = this.#file.load(MAX_REMEMBERED_IDS);
    this.#sentIds = new Set(sentIds);
    this.#pendingList = queued.map(toPending);
  }

  get pending(): readonly PendingDelivery[] {
    return this.#pendingList;
  }

  /**
   * Adds an alert for its receivers. Resolves with true when the alert is on disk, or with false if
   * it was added before. If writing fails, the promise rejects, and the alert is kept only in
   * memory.
   */
  async add(alert: Alert, receivers: readonly string[], most: number): Promise<boolean> {
    if (this.#sentIds.has(alert.id)) return false;
    this.#remember(alert.id);
    const letters = receivers.map((to) => ({ receiver: to, alert }));
    const room = Math.max(0, most - this.#pendingList.length);
    this.counts.lost += Math.max(0, letters.length - room);
    const taken = letters.slice(0, room);
    this.#pendingList.push(...taken.map(toPending));
    await this.#file.append([{ sent: alert.id }, ...taken.map((queued) => ({ queued }))]);
    return true;
  }

  /**
   * Returns the next due alert for a receiver, or undefined if there is none. An alert is due only
   * if no older alert about its subject is pending.
   */
  takeNext(to: string, now: number): PendingDelivery | undefined {
    const before = new Set<string>();
    for (const one of this.#pendingList) {
      if (one.receiver !== to) continue;
      const { subject } = one.alert;
      if (!before.has(subject) && !one.isInFlight && one.nextAttemptAt <= now) {
        one.isInFlight = true;
        return one;
      }
      before.add(subject);
    }
    return undefined;
  }

  /** Schedules another attempt after a failure. */
  retryLater(one: PendingDelivery, next: number): void {
    one.isInFlight = false;
    one.attempts++;
    one.nextAttemptAt = next;
  }

  /** Removes an alert that was accepted or abandoned. */
  async finish(one: PendingDelivery, sent: boolean): Promise<void> {
    const at = this.#pendingList.indexOf(one);
    if (at >= 0) this.#pendingList.splice(at, 1);
    if (sent) this.counts.sent++;
    else this.counts.lost++;
    await this.#file.append([{ done: { receiver: one.receiver, id: one.alert.id } }]);
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  readonly #state = (): OutboxState => ({ sentIds: [...this.#sentIds], queued: this.#pendingList });

  #remember(id: string): void {
    if (this.#sentIds.size >= MAX_REMEMBERED_IDS)
      this.#sentIds.delete(this.#sentIds.values().next().value!);
    this.#sentIds.add(id);
  }
}

const toPending = ({ receiver, alert }: QueuedAlert): PendingDelivery => ({
  receiver,
  alert,
  attempts: 0,
  nextAttemptAt: 0,
  isInFlight: false,
});
