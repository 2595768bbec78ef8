// What waits for its receivers, in the order in which it happened. It outlives a reload, and a start: an alert that is in it is on the
// disk. One letter of a subject is under way to a receiver at a time, so those of a subject arrive in their order.
import type { Alert } from "./alert.ts";
import { JournalFile, type Kept, type Letter } from "./journal.ts";

/** Ids of what was told before. */
const REMEMBERED = 10_000;

export interface Waiting extends Letter {
  /** How often it was tried. */
  tries: number;
  /** Not before, in Unix milliseconds. */
  next: number;
  underWay: boolean;
}

export interface OutboxCounts {
  sent: number;
  /** A day old, or there was no room. */
  lost: number;
}

export class Outbox {
  readonly #journal: JournalFile;
  readonly #seen: Set<string>;
  readonly #waiting: Waiting[];
  readonly counts: OutboxCounts = { sent: 0, lost: 0 };

  constructor(path: string) {
    this.#journal = new JournalFile(path);
    const { seen, letters } = this.#journal.load(REMEMBERED);
    this.#seen = new Set(seen);
    this.#waiting = letters.map(waiting);
  }

  get waiting(): readonly Waiting[] {
    return this.#waiting;
  }

  /** False: it was told before. Resolves when it is on the disk; rejects when that cannot be, and then it waits in memory alone. */
  async add(alert: Alert, receivers: readonly string[], most: number): Promise<boolean> {
    if (this.#seen.has(alert.id)) return false;
    this.#remember(alert.id);
    const letters = receivers.map((to) => ({ to, alert }));
    const room = Math.max(0, most - this.#waiting.length);
    this.counts.lost += Math.max(0, letters.length - room);
    const taken = letters.slice(0, room);
    this.#waiting.push(...taken.map(waiting));
    await this.#journal.add([{ seen: alert.id }, ...taken.map((add) => ({ add }))], this.#kept);
    return true;
  }

  /** The next that may go to a receiver: no older one of its subject waits for it. Undefined: none now. */
  take(to: string, now: number): Waiting | undefined {
    const before = new Set<string>();
    for (const one of this.#waiting) {
      if (one.to !== to) continue;
      const { subject } = one.alert;
      if (!before.has(subject) && !one.underWay && one.next <= now) {
        one.underWay = true;
        return one;
      }
      before.add(subject);
    }
    return undefined;
  }

  /** It was not taken: later again. */
  back(one: Waiting, next: number): void {
    one.underWay = false;
    one.tries++;
    one.next = next;
  }

  /** It is over: its receiver has it, or it is given up. */
  async over(one: Waiting, sent: boolean): Promise<void> {
    const at = this.#waiting.indexOf(one);
    if (at >= 0) this.#waiting.splice(at, 1);
    if (sent) this.counts.sent++;
    else this.counts.lost++;
    await this.#journal.add([{ over: { to: one.to, id: one.alert.id } }], this.#kept);
  }

  close(): Promise<void> {
    return this.#journal.close();
  }

  readonly #kept = (): Kept => ({ seen: [...this.#seen], letters: this.#waiting });

  #remember(id: string): void {
    if (this.#seen.size >= REMEMBERED) this.#seen.delete(this.#seen.values().next().value!);
    this.#seen.add(id);
  }
}

const waiting = ({ to, alert }: Letter): Waiting => ({
  to,
  alert,
  tries: 0,
  next: 0,
  underWay: false,
});
