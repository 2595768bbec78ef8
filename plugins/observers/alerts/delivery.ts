// Delivers alerts to one receiver, one after the other. Each alert is retried for up to one day.
import { createWebhookHeaders } from "tollgate/plugin";
import type { Context, Json, PluginCommand } from "tollgate/plugin";
import type { Alert } from "./alert.ts";
import type { Outbox, PendingDelivery } from "./outbox.ts";

const REQUEST_TIMEOUT_MS = 5_000;
const DAY_MS = 86_400_000;
/** Maximum backoff of one alert, in milliseconds. */
const MAX_RETRY_MS = 3_600_000;
/** Maximum pause of a failing receiver, and so the longest time until its recovery is noticed. */
const MAX_RECEIVER_PAUSE_MS = 60_000;

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
  /** Delay before the first retry of an alert, in milliseconds. */
  readonly retryMs: number;
  readonly now?: () => number;
  /** Aborts when deliveries must stop. The next config generation delivers the pending alerts. */
  readonly abortSignal?: AbortSignal;
}

/**
 * Sends an alert. Returns undefined if the receiver accepted it, and otherwise the reason for the
 * failure.
 */
export async function sendAlert(
  { url, format, secret }: Receiver,
  alert: Alert,
  fetch: Context["fetch"],
  now: number,
  over?: AbortSignal,
): Promise<string | undefined> {
  const body = JSON.stringify(format === "slack" ? { text: formatChatMessage(alert) } : alert);
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "tollgate-alerts",
        ...createWebhookHeaders(alert.id, body, secret, now),
      },
      body,
      signal: AbortSignal.any([AbortSignal.timeout(REQUEST_TIMEOUT_MS), ...(over ? [over] : [])]),
    });
    await answer.body?.cancel();
    // Redirects are not followed and count as failures.
    return answer.ok ? undefined : `the receiver returned status ${answer.status}`;
  } catch (problem) {
    // The error message may contain the URL, which is a secret for many chat services.
    return (problem as { code?: string }).code ?? "the receiver is unreachable";
  }
}

export class Delivery {
  readonly #receiver: Receiver;
  readonly #options: DeliveryOptions;
  readonly #now: () => number;
  #failures = 0;
  #pausedUntil = 0;
  #running: Promise<void> | undefined;

  constructor(to: Receiver, of: DeliveryOptions) {
    this.#receiver = to;
    this.#options = of;
    this.#now = of.now ?? Date.now;
  }

  /** Delivers all alerts that are due. Never rejects. */
  deliverDue(): Promise<void> {
    return (this.#running ??= this.#deliverAll().finally(() => (this.#running = undefined)));
  }

  async #deliverAll(): Promise<void> {
    const { outbox, fetch, abortSignal } = this.#options;
    while (this.#now() >= this.#pausedUntil) {
      const one = outbox.takeNext(this.#receiver.name, this.#now());
      if (!one) return;
      const reason = await sendAlert(this.#receiver, one.alert, fetch, this.#now(), abortSignal);
      if (reason === undefined) await this.#onAccepted(one);
      else await this.#onRejected(one, reason);
    }
  }

  async #onAccepted(one: PendingDelivery): Promise<void> {
    if (this.#failures > 0) {
      this.#options.log.info({ receiver: this.#receiver.name }, "alert receiver recovered");
      this.#failures = 0;
    }
    await this.#finish(one, true);
  }

  /** Schedules a retry. A rejected alert delays other alerts only briefly. */
  async #onRejected(one: PendingDelivery, reason: string): Promise<void> {
    const { retryMs, log, outbox } = this.#options;
    const now = this.#now();
    if (this.#failures++ === 0)
      log.warn({ receiver: this.#receiver.name, reason }, "alert delivery failed, will retry");
    this.#pausedUntil =
      now + withJitter(backoff(retryMs, this.#failures - 1, MAX_RECEIVER_PAUSE_MS));
    if (now - Date.parse(one.alert.at) < DAY_MS)
      return outbox.retryLater(one, now + withJitter(backoff(retryMs, one.attempts, MAX_RETRY_MS)));
    const { id, type } = one.alert;
    log.error(
      { receiver: this.#receiver.name, id, type, reason },
      "alert dropped after 1 day of retries",
    );
    return this.#finish(one, false);
  }

  async #finish(one: PendingDelivery, sent: boolean): Promise<void> {
    await this.#options.outbox.finish(one, sent).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, "alert queue not writable");
    });
  }
}

const backoff = (ms: number, times: number, most: number): number =>
  Math.min(ms * 2 ** Math.min(times, 30), most);

/** Adds jitter, so that gateways that failed together do not retry together. */
const withJitter = (ms: number): number => ms * (0.75 + Math.random() * 0.5);

// Formats an alert as one sentence for a chat.

const MESSAGES: { readonly [T in Alert["type"]]: (d: Record<string, string>) => string } = {
  "budget.threshold_reached": (d) =>
    `has used ${d["percent"]}% of ${d["limit"]}: ${d["used"]} so far`,
  "key.rejected": (d) => `requests are rejected: ${d["code"]}`,
  "provider.cooldown_started": (d) =>
    `is failing (${d["errorKind"]}) and is in cooldown until ${d["until"]}`,
  "credential.rejected": (d) => `rejected the credential ${d["credential"]} (${d["errorKind"]})`,
  "ledger.down": () => "does not accept writes, so new calls are rejected",
  "ledger.recovered": () => "accepts writes again",
  "reload.failed": (d) => `failed, and the previous config stays in use: ${d["reason"] ?? ""}`,
  "reload.recovered": (d) => `succeeded, config generation ${d["generation"]}`,
  "provider.cooldown_ended": () => "responds again",
  "credential.recovered": (d) => `accepts the credential ${d["credential"]} again`,
  "certificate.expires": (d) => `expires on ${d["date"]}`,
  "calls.unpriced": () => "is called but has no known price",
  "policy.expires": (d) => `has a data policy that must be reviewed again by ${d["date"]}`,
  "model.retires": (d) => `will be retired on ${d["date"]}`,
  "spend.unusual": (d) => `${d["usd"]} USD in this hour; the usual spend is ${d["usualUsd"]} USD`,
  "budget.exhausts": (d) =>
    `will use up ${d["limit"]} on ${d["exhaustsAt"]}: ${d["usedUsd"]} USD so far, ${d["perDayUsd"]} USD per day`,
  "bill.differs": (d) =>
    `billed ${d["differenceUsd"]} USD more than the ledger on ${d["day"]}. ${d["causes"]}`,
  "spend.digest": (d) =>
    `${d["usd"]} USD for ${d["calls"]} calls in the ${d["every"]} that began ${d["from"]}; ${d["beforeUsd"]} USD in the period before. ${d["models"]}`,
  "alerts.test": () => "this is a test",
};

/**
 * Formats the message. Slack's three control characters are escaped, so that a name cannot become a
 * link or a mention.
 */
export function formatChatMessage({ type, gateway, subject, runbook, data }: Alert): string {
  const message = MESSAGES[type](data as Record<string, string>);
  const see = runbook === undefined ? "" : ` (docs/${runbook})`;
  return escapeSlack(`[${gateway}] ${type} · ${subject}: ${message}${see}`);
}

const escapeSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// The command that sends a test alert to each receiver and reports the receiver's response.

export const createTestCommand = (
  receivers: readonly Receiver[],
  gateway: string,
  fetch: Context["fetch"],
): PluginCommand => ({
  summary: "Send a test alert and show how each receiver responds",
  input: {
    type: "object",
    additionalProperties: false,
    properties: {
      receiver: { type: "string", description: "Receiver name (default: all receivers)" },
    },
  },
  role: "operator",
  writes: true,
  async run({ receiver: only }) {
    const selected = receivers.filter(({ name }) => only === undefined || name === only);
    return Promise.all(
      selected.map(async (receiver): Promise<Json> => {
        const began = performance.now();
        const reason = await sendAlert(receiver, createTestAlert(gateway), fetch, Date.now());
        const ms = Math.round(performance.now() - began);
        return { receiver: receiver.name, ok: reason === undefined, ...(reason && { reason }), ms };
      }),
    );
  },
});

const createTestAlert = (gateway: string): Alert => ({
  id: `msg_${crypto.randomUUID()}`,
  type: "alerts.test",
  at: new Date().toISOString(),
  gateway,
  subject: "gateway",
  data: {},
});
