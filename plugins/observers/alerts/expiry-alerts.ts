// Alerts for dates that are known in advance: expiring evidence about a provider's data policy,
// retiring models, and expiring certificates.
import type { ListedModel, GatewayStats } from "tollgate/plugin";
import type { AlertSource } from "./alert.ts";

const DAY_MS = 86_400_000;
/** Numbers of days before a date. One reminder is sent at each of them. */
const DAYS_BEFORE = [1, 7, 30] as const;

/** Returns the reminder that is due, or undefined if the date is far off or more than 1 day ago. */
function reminderStage(date: string | number, now: number): number | undefined {
  const days = (new Date(date).getTime() - now) / DAY_MS;
  return days < -1 ? undefined : DAYS_BEFORE.find((stage) => days <= stage);
}

export function* expiryAlerts(models: readonly ListedModel[], now: number): Generator<AlertSource> {
  for (const { id, provider, retires, policy } of models) {
    const retiring = retires ? reminderStage(retires, now) : undefined;
    if (retiring !== undefined)
      yield {
        type: "model.retires",
        at: now,
        subject: `model:${id}`,
        dedupKey: [id, retires!, retiring],
        filterValues: { provider, model: id },
        data: { model: id, provider, date: retires! },
      };
    const expiring = policy.expires ? reminderStage(policy.expires, now) : undefined;
    // One alert is sent for all models of a provider with the same evidence.
    if (expiring !== undefined)
      yield {
        type: "policy.expires",
        at: now,
        subject: `provider:${provider}`,
        dedupKey: [provider, policy.expires!, expiring],
        filterValues: { provider },
        data: { provider, date: policy.expires!, basis: policy.basis },
      };
  }
}

/**
 * Yields alerts for the certificates of the gateway's listeners. A renewed certificate counts as a
 * new certificate.
 */
export function* certificateAlerts(
  all: GatewayStats["certificates"],
  now: number,
): Generator<AlertSource> {
  for (const { listener, expiresAt } of all) {
    const stage = reminderStage(expiresAt, now);
    if (stage === undefined) continue;
    yield {
      type: "certificate.expires",
      at: now,
      subject: `certificate:${listener}`,
      dedupKey: [listener, expiresAt, stage],
      filterValues: {},
      data: { listener, date: new Date(expiresAt).toISOString() },
    };
  }
}
