// An alert: one event about one subject. Its ID is the same every time the alert is sent.
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
  "budget.exhausts",
  "bill.differs",
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
  "budget.exhausts": "runaway-key",
  "bill.differs": "billing",
};

/** Fields that a rule's `where` can match. */
export const FILTER_FIELDS = ["account", "key", "provider", "model", "credential", "code"] as const;

export type FilterValues = { readonly [F in (typeof FILTER_FIELDS)[number]]?: string | undefined };

/**
 * An alert in the form in which a receiver gets it. It contains no prompts, responses, or secrets.
 */
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

/** Returns the alert's ID. Receivers use it to discard duplicates. */
export const alertId = (
  gateway: string,
  type: string,
  once: readonly (string | number)[],
): string =>
  `msg_${createHash("sha256")
    .update(JSON.stringify([gateway, type, ...once]))
    .digest("hex")
    .slice(0, 32)}`;

// Rules that select the receivers of an alert, as the operator configured them.

/** A rule as configured. If a property is unset, it matches everything. */
export interface AlertRule {
  readonly on?: readonly AlertEvent[] | undefined;
  readonly where?: AlertFilter | undefined;
  readonly to?: readonly string[] | undefined;
}

type AlertFilter = {
  readonly [F in (typeof FILTER_FIELDS)[number]]?: readonly string[] | undefined;
} & { readonly percent?: readonly number[] | undefined };

/** Returns the receivers of an event without duplicates. */
export function findReceivers(
  rules: readonly AlertRule[],
  all: readonly string[],
  happening: AlertSource,
): readonly string[] {
  const found = new Set<string>();
  for (const { on = ALERT_EVENTS, where = {}, to = all } of rules)
    if (includesEvent(on, happening.type) && matchesFilter(where, happening))
      for (const name of to) found.add(name);
  return [...found];
}

/** Whether a rule includes the event type. A recovery belongs to its failure. */
export const includesEvent = (on: readonly AlertEvent[], type: AlertEvent): boolean =>
  on.includes(type) || on.includes(RECOVERY_OF[type] ?? type);

/** Whether an alert meets all conditions. A field that the alert lacks matches no pattern. */
function matchesFilter(where: AlertFilter, { filterValues, percent }: AlertSource): boolean {
  if (where.percent && (percent === undefined || !where.percent.includes(percent))) return false;
  return FILTER_FIELDS.every((facet) => {
    const wanted = where[facet];
    if (!wanted) return true;
    const value = filterValues[facet];
    if (value === undefined) return false;
    // A pattern for an account also matches all accounts nested under it.
    const values = facet === "account" ? value.split("/") : [value];
    return wanted.some((pattern) => values.some((each) => matchesPattern(pattern, each)));
  });
}

/** Whether a text matches a pattern, in which each `*` stands for any text. */
function matchesPattern(pattern: string, text: string): boolean {
  const [head = "", ...pieces] = pattern.split("*");
  const tail = pieces.pop();
  if (tail === undefined) return head === text;
  const end = text.length - tail.length;
  if (end < head.length || !text.startsWith(head) || !text.endsWith(tail)) return false;
  let at = head.length;
  for (const piece of pieces) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
