// What is told: one event, of one subject, under an id that is the same however often it is told.
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

/** The end of a failure goes wherever its beginning goes. */
export const RECOVERY_OF: { readonly [E in AlertEvent]?: AlertEvent } = {
  "provider.cooldown_ended": "provider.cooldown_started",
  "credential.recovered": "credential.rejected",
  "ledger.recovered": "ledger.down",
  "reload.recovered": "reload.failed",
};

/** The page of docs/runbook that says what to do. */
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

/** What a rule's `where` may look at. */
export const FILTER_FIELDS = ["account", "key", "provider", "model", "credential", "code"] as const;

export type FilterValues = { readonly [F in (typeof FILTER_FIELDS)[number]]?: string | undefined };

/** As a receiver gets it. Nothing in it is a prompt, an answer or a secret. */
export interface Alert {
  readonly id: string;
  readonly type: AlertEvent | "alerts.test";
  /** ISO 8601. */
  readonly at: string;
  readonly gateway: string;
  /** What it is about: "key:k1", "account:acme", "provider:openai". Those of one subject arrive in their order. */
  readonly subject: string;
  /** A page of the documentation: "runbook/ledger-unavailable.md". */
  readonly runbook?: string;
  readonly data: JsonObject;
}

/** Something that has happened, before a rule says where it goes. */
export interface AlertSource {
  readonly type: AlertEvent;
  /** Unix milliseconds. */
  readonly at: number;
  readonly subject: string;
  /** What makes it one and the same: told once, and no second time. */
  readonly dedupKey: readonly (string | number)[];
  readonly filterValues: FilterValues;
  readonly percent?: number;
  readonly data: JsonObject;
}

/** Names come from operators and providers; a receiver's line is no longer than this. */
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

/** A receiver that has seen an id has seen the alert. */
export const alertId = (
  gateway: string,
  type: string,
  once: readonly (string | number)[],
): string =>
  `msg_${createHash("sha256")
    .update(JSON.stringify([gateway, type, ...once]))
    .digest("hex")
    .slice(0, 32)}`;
