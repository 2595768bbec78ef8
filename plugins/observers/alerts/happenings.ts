// What the gateway tells, as events: notices, refused requests, bills.
import { limitText, type LedgerLine, type Notice, type RequestRecord } from "tollgate/plugin";
import { usd } from "../usd.ts";
import type { AlertEvent, Happening } from "./alert.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A provider has tens of models; a list that is longer is forgotten from its beginning. */
const MOST = 10_000;

type Notices = { readonly [T in Notice["type"]]: Extract<Notice, { type: T }> };

/** Our key or our account there: no waiting mends it. */
const OURS: readonly string[] = ["upstream_auth", "upstream_quota", "attestation"];

/**
 * Failures that were told and are not over, as the events that end them. Each failure makes a cooldown longer and each process reports its
 * own, so a second one is not told, and an end without a beginning is not told either.
 */
export class Failures {
  readonly #known = new Map<string, AlertEvent>();

  /** Whether it is news. */
  begins(key: string, end: AlertEvent): boolean {
    if (this.#known.has(key)) return false;
    if (this.#known.size >= MOST) this.#known.delete(this.#known.keys().next().value!);
    this.#known.set(key, end);
    return true;
  }

  /** The event of its end; undefined: no failure was told. */
  ends(key: string): AlertEvent | undefined {
    const end = this.#known.get(key);
    this.#known.delete(key);
    return end;
  }
}

const keyOf = ({
  provider,
  credential,
  model,
}: Pick<Notices["recovered"], "provider" | "credential" | "model">): string =>
  JSON.stringify([provider, credential, model]);

/** Undefined: it is nothing to tell. Types that came later are passed over. */
export function ofNotice(notice: Notice, failures: Failures): Happening | undefined {
  switch (notice.type) {
    case "budget_crossed":
      return crossed(notice);
    case "rests": {
      const happening = rests(notice);
      const end = happening.type === "credential.refused" ? "credential" : "provider";
      return failures.begins(keyOf(notice), `${end}.recovered`) ? happening : undefined;
    }
    case "recovered": {
      const type = failures.ends(keyOf(notice));
      return type && { ...ofTarget(notice), type };
    }
    case "ledger": {
      if (!notice.ok) failures.begins("ledger", "ledger.recovered");
      else if (!failures.ends("ledger")) return undefined;
      return plain(notice.ok ? "ledger.recovered" : "ledger.down", "ledger", notice.at);
    }
    case "reloaded": {
      const { ok, at, why, generation, reason } = notice;
      if (!ok) failures.begins("reload", "reload.recovered");
      else if (!failures.ends("reload")) return undefined;
      const type = ok ? "reload.recovered" : "reload.failed";
      const data = { why, generation, ...(reason !== undefined && { reason }) };
      return { ...plain(type, "config", at), data };
    }
    default:
      return undefined;
  }
}

const plain = (type: Happening["type"], subject: string, at: number): Happening => ({
  type,
  at,
  subject,
  once: [at],
  facets: {},
  data: {},
});

function crossed(notice: Notices["budget_crossed"]): Happening {
  const { at, scope, unit, per, percent, used, max, resetsAt } = notice;
  const [kind = "", name = ""] = split(scope);
  return {
    type: "budget.crossed",
    at,
    subject: scope,
    once: [scope, unit, per, resetsAt, String(max), percent],
    facets: {
      key: kind === "key" ? name : undefined,
      account: kind === "account" ? name : undefined,
    },
    percent,
    data: {
      scope,
      limit: limitText({ unit, max, per }),
      percent,
      used: unit === "nano_usd" ? usd(used) : String(used),
      ...(per !== "total" && { resetsAt: new Date(resetsAt).toISOString() }),
    },
  };
}

/** At the first colon: a name may have more. */
function split(scope: string): readonly string[] {
  const at = scope.indexOf(":");
  return at < 0 ? [scope] : [scope.slice(0, at), scope.slice(at + 1)];
}

function rests(notice: Notices["rests"]): Happening {
  const { kind, until } = notice;
  const { facets, data, ...of } = ofTarget(notice);
  return {
    type: OURS.includes(kind) ? "credential.refused" : "provider.resting",
    ...of,
    facets: { ...facets, code: kind },
    data: { ...data, kind, until: new Date(until).toISOString() },
  };
}

function ofTarget({ at, provider, credential, model }: Notices["rests"] | Notices["recovered"]) {
  return {
    at,
    subject: `provider:${provider}`,
    once: [provider, credential, model ?? "*", at],
    facets: { provider, credential, model: model === null ? undefined : `${provider}/${model}` },
    data: { provider, credential, model },
  };
}

/** A key that is refused, for each reason once an hour. A client without a key is no key. */
export function ofRecord(record: RequestRecord): Happening | undefined {
  const { at, key, account, outcome, fault, status } = record;
  if (outcome !== "refused" || key === undefined || !fault) return undefined;
  const code = fault.code ?? fault.kind;
  return {
    type: "key.refused",
    at,
    subject: `key:${key}`,
    once: [key, code, Math.floor(at / HOUR_MS)],
    facets: { key, account, code },
    data: { key, account: account ?? null, code, status },
  };
}

/** A model without a price, once a day. */
export function ofLine({ at, call, costNano, state, attempt }: LedgerLine): Happening | undefined {
  if (costNano !== null || state !== "unpriced" || !call) return undefined;
  const { provider, model: name } = call.target;
  const model = `${provider}/${name}`;
  return {
    type: "calls.unpriced",
    at,
    subject: `model:${model}`,
    once: [model, Math.floor(at / DAY_MS)],
    facets: { provider, model, key: call.key, account: call.account ?? undefined },
    data: { provider, model, call: attempt },
  };
}
