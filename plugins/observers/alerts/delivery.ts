// One receiver, and how it is told: one letter after the other, each again and again for a day while the receiver does not take it.
import type { Context } from "tollgate/plugin";
import type { Alert } from "./alert.ts";
import type { Outbox, Waiting } from "./outbox.ts";
import { sentence } from "./sentence.ts";
import { signed } from "./sign.ts";

const PATIENCE_MS = 5_000;
const DAY_MS = 86_400_000;
/** Of one letter, however often it was tried. */
const LONGEST_MS = 3_600_000;
/** Of a receiver that takes nothing: how soon it is seen that it does again. */
const LONGEST_PAUSE_MS = 60_000;

export interface Receiver {
  readonly name: string;
  readonly url: string;
  readonly format: "webhook" | "slack";
  readonly secret: Buffer | undefined;
}

export interface DeliveryOptions {
  readonly outbox: Outbox;
  readonly fetch: Context["fetch"];
  readonly log: Context["log"];
  /** The first time that a letter is tried again is so much later. */
  readonly retryMs: number;
  readonly now?: () => number;
  /** Aborts when nothing is waited for any more: what waits is the next one's. */
  readonly over?: AbortSignal;
}

/** Undefined: the receiver has it. Otherwise why not. */
export async function post(
  { url, format, secret }: Receiver,
  alert: Alert,
  fetch: Context["fetch"],
  now: number,
  over?: AbortSignal,
): Promise<string | undefined> {
  const body = JSON.stringify(format === "slack" ? { text: sentence(alert) } : alert);
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "tollgate-alerts",
        ...signed(alert.id, body, secret, now),
      },
      body,
      signal: AbortSignal.any([AbortSignal.timeout(PATIENCE_MS), ...(over ? [over] : [])]),
    });
    await answer.body?.cancel();
    // A redirect is none of ours to follow, so it is a refusal too.
    return answer.ok ? undefined : `it answers ${answer.status}`;
  } catch (problem) {
    // Its words may have the address, which is a secret of many chats.
    return (problem as { code?: string }).code ?? "it cannot be reached";
  }
}

export class Delivery {
  readonly #to: Receiver;
  readonly #of: DeliveryOptions;
  readonly #now: () => number;
  #failures = 0;
  #pausedUntil = 0;
  #going: Promise<void> | undefined;

  constructor(to: Receiver, of: DeliveryOptions) {
    this.#to = to;
    this.#of = of;
    this.#now = of.now ?? Date.now;
  }

  /** All that may go now. Never rejects. */
  go(): Promise<void> {
    return (this.#going ??= this.#all().finally(() => (this.#going = undefined)));
  }

  async #all(): Promise<void> {
    const { outbox, fetch, over } = this.#of;
    while (this.#now() >= this.#pausedUntil) {
      const one = outbox.take(this.#to.name, this.#now());
      if (!one) return;
      const why = await post(this.#to, one.alert, fetch, this.#now(), over);
      if (why === undefined) await this.#taken(one);
      else await this.#refused(one, why);
    }
  }

  async #taken(one: Waiting): Promise<void> {
    if (this.#failures > 0) {
      this.#of.log.info({ to: this.#to.name }, "a receiver of alerts takes them again");
      this.#failures = 0;
    }
    await this.#over(one, true);
  }

  /** What one letter alone is refused for keeps others no longer than a moment. */
  async #refused(one: Waiting, why: string): Promise<void> {
    const { retryMs, log, outbox } = this.#of;
    const now = this.#now();
    if (this.#failures++ === 0)
      log.warn({ to: this.#to.name, why }, "a receiver of alerts does not take one");
    this.#pausedUntil = now + jittered(doubled(retryMs, this.#failures - 1, LONGEST_PAUSE_MS));
    if (now - Date.parse(one.alert.at) < DAY_MS)
      return outbox.back(one, now + jittered(doubled(retryMs, one.tries, LONGEST_MS)));
    const { id, type } = one.alert;
    log.error({ to: this.#to.name, id, type, why }, "an alert is given up after a day");
    return this.#over(one, false);
  }

  async #over(one: Waiting, sent: boolean): Promise<void> {
    await this.#of.outbox.over(one, sent).catch((error: unknown) => {
      this.#of.log.warn({ err: error }, "the queue of alerts cannot be written");
    });
  }
}

const doubled = (ms: number, times: number, most: number): number =>
  Math.min(ms * 2 ** Math.min(times, 30), most);

/** Gateways that were turned away together do not come back together. */
const jittered = (ms: number): number => ms * (0.75 + Math.random() * 0.5);
