// An alert: one event about one subject. Its ID is the same however often the alert is sent.
import { createHash } from "node:crypto";
import type { JsonObject } from "tollgate/plugin";

export const ALERT_EVENTS = [
  "budget.threshold_reached",
  "key.rejected",
  "provider.cooldown_started",
  "credential.rejected",
  "ledger.down",
  "reload.failed",
  "calls.unpriced",
  "certificate.expires",
  "policy.expires",
  "model.retires",
  "spend.unusual",
  "spend.digest",
  "provider.cooldown_ended",
  "credential.recovered",
  "ledger.recovered",
  "reload.recovered",
] as const;

export type AlertEvent = (typeof ALERT_EVENTS)[number];

/** Recovery events by failure event. A recovery is sent to every receiver of the failure. */
export const RECOVERY_OF: { readonly [E in AlertEvent]?: AlertEvent } = {
  "provider.cooldown_ended": "provider.cooldown_started",
  "credential.recovered": "credential.rejected",
  "ledger.recovered": "ledger.down",
  "reload.recovered": "reload.failed",
};

/** The docs/runbook page with instructions for each event. */
export const RUNBOOK_PAGES: { readonly [E in AlertEvent]?: string } = {
  "budget.threshold_reached": "runaway-key",
  "key.rejected": "runaway-key",
  "provider.cooldown_started": "provider-failing",
  "credential.rejected": "provider-failing",
  "ledger.down": "ledger-unavailable",
  "reload.failed": "reload-refused",
  "calls.unpriced": "billing",
  "certificate.expires": "certificate",
  "policy.expires": "provider-data",
  "model.retires": "provider-data",
  "spend.unusual": "runaway-key",
};

/** Fields that a rule's `where` can match. */
export const FILTER_FIELDS = ["account", "key", "provider", "model", "credential", "code"] as const;

export type FilterValues = { readonly [F in (typeof FILTER_FIELDS)[number]]?: string | undefined };

/** An alert as a receiver gets it. It contains no prompts, responses, or secrets. */
export interface Alert {
  readonly id: string;
  readonly type: AlertEvent | "alerts.test";
  /** ISO 8601 time. */
  readonly at: string;
  readonly gateway: string;
  /**
   * Subject of the alert, such as "key:k1", "account:acme", or "provider:openai". Alerts about one
   * subject arrive in order.
   */
  readonly subject: string;
  /** Path of a documentation page, such as "runbook/ledger-unavailable.md". */
  readonly runbook?: string;
  readonly data: JsonObject;
}

/** An occurrence before rules select its receivers. */
export interface AlertSource {
  readonly type: AlertEvent;
  /** Time in Unix milliseconds. */
  readonly at: number;
  readonly subject: string;
  /** Values that identify the occurrence. Occurrences with equal keys are reported once. */
  readonly dedupKey: readonly (string | number)[];
  readonly filterValues: FilterValues;
  readonly percent?: number;
  readonly data: JsonObject;
}

/**
 * Maximum text length in an alert. Operators and providers choose names, and receivers limit the
 * length of a line.
 */
const MAX_TEXT_LENGTH = 256;

export const truncate = (text: string): string =>
  text.length > MAX_TEXT_LENGTH ? text.slice(0, MAX_TEXT_LENGTH) : text;

export const createAlert = (
  { type, at, subject, dedupKey, data }: AlertSource,
  gateway: string,
): Alert => ({
  id: alertId(gateway, type, dedupKey),
  type,
  at: new Date(at).toISOString(),
  gateway,
  subject: truncate(subject),
  ...(RUNBOOK_PAGES[type] && { runbook: `runbook/${RUNBOOK_PAGES[type]}.md` }),
  data: Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      name,
      typeof value === "string" ? truncate(value) : value,
    ]),
  ),
});

/** Returns the alert's ID. Receivers use it to drop duplicates. */
export const alertId = (
  gateway: string,
  type: string,
  once: readonly (string | number)[],
): string =>
  `msg_${createHash("sha256")
    .update(JSON.stringify([gateway, type, ...once]))
    .digest("hex")
    .slice(0, 32)}`;
