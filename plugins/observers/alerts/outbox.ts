// What waits for its receivers, in the order in which it happened. It outlives a reload, and a start: an alert that is in it is on the
// disk. One letter of a subject is under way to a receiver at a time, so those of a subject arrive in their order.
import type { Alert } from "./alert.ts";
import { OutboxFile, type OutboxState, type QueuedAlert } from "./outbox-file.ts";

/** Ids of what was told before. */
const MAX_REMEMBERED_IDS = 10_000;

export interface PendingDelivery extends QueuedAlert {
  /** How often it was tried. */
  attempts: number;
  /** Not before, in Unix milliseconds. */
  nextAttemptAt: number;
  isInFlight: boolean;
}

export interface OutboxCounts {
  sent: number;
  /** A day old, or there was no room. */
  lost: number;
}

export class Outbox {
  readonly #file: OutboxFile;
  readonly #sentIds: Set<string>;
  readonly #pendingList: PendingDelivery[];
  readonly counts: OutboxCounts = { sent: 0, lost: 0 };

  constructor(path: string) {
    this.#file = new OutboxFile(path);
    const { sentIds, queued } = this.#file.load(MAX_REMEMBERED_IDS);
    this.#sentIds = new Set(sentIds);
    this.#pendingList = queued.map(toPending);
  }

  get pending(): readonly PendingDelivery[] {
    return this.#pendingList;
  }

  /** False: it was told before. Resolves when it is on the disk; rejects when that cannot be, and then it waits in memory alone. */
  async add(alert: Alert, receivers: readonly string[], most: number): Promise<boolean> {
    if (this.#sentIds.has(alert.id)) return false;
    this.#remember(alert.id);
    const letters = receivers.map((to) => ({ receiver: to, alert }));
    const room = Math.max(0, most - this.#pendingList.length);
    this.counts.lost += Math.max(0, letters.length - room);
    const taken = letters.slice(0, room);
    this.#pendingList.push(...taken.map(toPending));
    await this.#file.append(
      [{ sent: alert.id }, ...taken.map((queued) => ({ queued }))],
      this.#state,
    );
    return true;
  }

  /** The next that may go to a receiver: no older one of its subject waits for it. Undefined: none now. */
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

  /** It was not taken: later again. */
  retryLater(one: PendingDelivery, next: number): void {
    one.isInFlight = false;
    one.attempts++;
    one.nextAttemptAt = next;
  }

  /** It is over: its receiver has it, or it is given up. */
  async finish(one: PendingDelivery, sent: boolean): Promise<void> {
    const at = this.#pendingList.indexOf(one);
    if (at >= 0) this.#pendingList.splice(at, 1);
    if (sent) this.counts.sent++;
    else this.counts.lost++;
    await this.#file.append([{ done: { receiver: one.receiver, id: one.alert.id } }], this.#state);
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
