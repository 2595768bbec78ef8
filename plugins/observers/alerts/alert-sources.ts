// Derives alerts from gateway events, rejected requests, and billing records.
import {
  formatLimit,
  parseMemberScope,
  type ChargeRecord,
  type GatewayEvent,
  type JsonObject,
  type RequestRecord,
} from "tollgate/plugin";
import { formatUsd } from "../usd.ts";
import type { AlertEvent, AlertSource } from "./alert.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/**
 * Maximum number of ongoing failures to track. The oldest is dropped first. A provider has tens of
 * models, so the limit is rarely reached.
 */
const MAX_FAILURES = 10_000;

type EventsByType = { readonly [T in GatewayEvent["type"]]: Extract<GatewayEvent, { type: T }> };

/**
 * Errors caused by the gateway's own key or account at the provider. Waiting does not resolve them.
 */
const ACCOUNT_FAULTS: readonly string[] = ["upstream_auth", "upstream_quota", "attestation"];

/**
 * Failures that were reported and have not ended, each with the event type of its recovery. Each
 * further failure extends a cooldown, and each process reports its own cooldowns. A repeated
 * failure is therefore not reported, and neither is a recovery without a reported failure.
 */
export class OngoingFailures {
  readonly #recoveryEvents = new Map<string, AlertEvent>();

  /** Returns whether the failure is new. */
  begin(key: string, end: AlertEvent): boolean {
    if (this.#recoveryEvents.has(key)) return false;
    if (this.#recoveryEvents.size >= MAX_FAILURES)
      this.#recoveryEvents.delete(this.#recoveryEvents.keys().next().value!);
    this.#recoveryEvents.set(key, end);
    return true;
  }

  /** Returns the event type of the recovery, or undefined if no failure was reported. */
  end(key: string): AlertEvent | undefined {
    const end = this.#recoveryEvents.get(key);
    this.#recoveryEvents.delete(key);
    return end;
  }
}

const targetKey = ({
  provider,
  credential,
  model,
}: Pick<EventsByType["cooldown_ended"], "provider" | "credential" | "model">): string =>
  JSON.stringify([provider, credential, model]);

/**
 * Returns the alert for a gateway event, or undefined if the event causes none. Unknown event types
 * are ignored.
 */
export function fromEvent(
  notice: GatewayEvent,
  failures: OngoingFailures,
): AlertSource | undefined {
  switch (notice.type) {
    case "budget_threshold_reached":
      return fromThreshold(notice);
    case "cooldown_started": {
      const happening = fromCooldown(notice);
      const end =
        happening.type === "credential.rejected"
          ? "credential.recovered"
          : "provider.cooldown_ended";
      return failures.begin(targetKey(notice), end) ? happening : undefined;
    }
    case "cooldown_ended": {
      const type = failures.end(targetKey(notice));
      return type && { ...describeTarget(notice), type };
    }
    case "ledger": {
      if (!notice.ok) failures.begin("ledger", "ledger.recovered");
      else if (!failures.end("ledger")) return undefined;
      return createSource(notice.ok ? "ledger.recovered" : "ledger.down", "ledger", notice.at);
    }
    case "reloaded": {
      const { ok, at, trigger, generation, reason } = notice;
      if (!ok) failures.begin("reload", "reload.recovered");
      else if (!failures.end("reload")) return undefined;
      const type = ok ? "reload.recovered" : "reload.failed";
      const data = { trigger, generation, ...(reason !== undefined && { reason }) };
      return { ...createSource(type, "config", at), data };
    }
    case "budget_exhausts":
      return fromForecast(notice);
    case "plugin_event":
      return notice.name === "bill_differs" ? fromBill(notice) : undefined;
    default:
      return undefined;
  }
}

const createSource = (type: AlertSource["type"], subject: string, at: number): AlertSource => ({
  type,
  at,
  subject,
  dedupKey: [at],
  filterValues: {},
  data: {},
});

function fromThreshold(notice: EventsByType["budget_threshold_reached"]): AlertSource {
  const { at, unit, per, percent, used, max, resetsAt } = notice;
  const member = parseMemberScope(notice.scope);
  const scope = member ? `scope:${member.group.replace(/\.[^.]*$/, "")}` : notice.scope;
  const [kind = "", name = ""] = splitScope(scope);
  // A window in total of a member starts again after its idle time, so two windows never end within
  // one idle time.
  const window = member && per === "total" ? Math.floor(resetsAt / member.idleMs) : resetsAt;
  return {
    type: "budget.threshold_reached",
    at,
    subject: scope,
    dedupKey: [notice.scope, unit, per, window, String(max), percent],
    filterValues: {
      key: kind === "key" ? name : undefined,
      account: kind === "account" ? name : undefined,
    },
    percent,
    data: {
      scope,
      limit: formatLimit({ unit, max, per }),
      percent,
      used: unit === "nano_usd" ? formatUsd(used) : String(used),
      ...(per !== "total" && { resetsAt: new Date(resetsAt).toISOString() }),
    },
  };
}

function fromForecast(notice: EventsByType["budget_exhausts"]): AlertSource {
  const { type: _, at, scope, limit, exhaustsAt, resetsAt, ...amounts } = notice;
  const [kind = "", name = ""] = splitScope(scope);
  return {
    type: "budget.exhausts",
    at,
    subject: scope,
    dedupKey: [scope, limit, resetsAt ?? "total"],
    filterValues: {
      key: kind === "key" ? name : undefined,
      account: kind === "account" ? name : undefined,
    },
    data: {
      scope,
      limit,
      ...amounts,
      exhaustsAt: new Date(exhaustsAt).toISOString(),
      ...(resetsAt !== undefined && { resetsAt: new Date(resetsAt).toISOString() }),
    },
  };
}

/** Returns the alert for a bill that the observer `reconcile` compared. */
function fromBill({ at, data }: EventsByType["plugin_event"]): AlertSource {
  const { provider, day, differenceUsd, causes } = data;
  return {
    type: "bill.differs",
    at,
    subject: `provider:${String(provider)}`,
    dedupKey: [String(provider), String(day)],
    filterValues: { provider: String(provider) },
    data: {
      provider: String(provider),
      day: String(day),
      differenceUsd: String(differenceUsd),
      causes: Object.entries((causes ?? {}) as JsonObject)
        .map(([cause, usd]) => `${cause} ${String(usd)}`)
        .join(", "),
    },
  };
}

/** Splits at the first colon, because names may contain colons. */
function splitScope(scope: string): readonly string[] {
  const at = scope.indexOf(":");
  return at < 0 ? [scope] : [scope.slice(0, at), scope.slice(at + 1)];
}

function fromCooldown(notice: EventsByType["cooldown_started"]): AlertSource {
  const { reason, until } = notice;
  const { filterValues, data, ...of } = describeTarget(notice);
  return {
    type: ACCOUNT_FAULTS.includes(reason) ? "credential.rejected" : "provider.cooldown_started",
    ...of,
    filterValues: { ...filterValues, code: reason },
    data: { ...data, errorKind: reason, until: new Date(until).toISOString() },
  };
}

function describeTarget({
  at,
  provider,
  credential,
  model,
}: EventsByType["cooldown_started"] | EventsByType["cooldown_ended"]) {
  return {
    at,
    subject: `provider:${provider}`,
    dedupKey: [provider, credential, model ?? "*", at],
    filterValues: {
      provider,
      credential,
      model: model === null ? undefined : `${provider}/${model}`,
    },
    data: { provider, credential, model },
  };
}

/**
 * Returns an alert for a rejected API key, at most one per reason and hour. A request without a key
 * causes no alert.
 */
export function fromRequest(record: RequestRecord): AlertSource | undefined {
  const { at, key, account, outcome, fault, status } = record;
  if (outcome !== "refused" || key === undefined || !fault) return undefined;
  const code = fault.code ?? fault.kind;
  return {
    type: "key.rejected",
    at,
    subject: `key:${key}`,
    dedupKey: [key, code, Math.floor(at / HOUR_MS)],
    filterValues: { key, account, code },
    data: { key, account: account ?? null, code, status },
  };
}

/** Returns an alert for a model without a price, at most one per day. */
export function fromCharge({
  at,
  call,
  costNano,
  state,
  attempt,
}: ChargeRecord): AlertSource | undefined {
  if (costNano !== null || state !== "unpriced" || !call) return undefined;
  const { provider, model: name } = call.target;
  const model = `${provider}/${name}`;
  return {
    type: "calls.unpriced",
    at,
    subject: `model:${model}`,
    dedupKey: [model, Math.floor(at / DAY_MS)],
    filterValues: { provider, model, key: call.key, account: call.account ?? undefined },
    data: { provider, model, call: attempt },
  };
}
