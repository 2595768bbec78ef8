// What the gateway tells, as events: notices, refused requests, bills.
import type { LedgerLine, Notice, RequestRecord } from "tollgate/plugin";
import { usd } from "../usd.ts";
import type { Happening } from "./alert.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A provider has tens of models; a list that is longer is forgotten from its beginning. */
const MOST = 10_000;

type Notices = { readonly [T in Notice["type"]]: Extract<Notice, { type: T }> };

/** Our key or our account there: no waiting mends it. */
const OURS: readonly string[] = ["upstream_auth", "upstream_quota", "attestation"];

/** What rests already: each failure makes a rest longer, and each process tells its own. */
export class Resting {
  readonly #known = new Set<string>();

  begins(notice: Notices["rests"]): boolean {
    const key = keyOf(notice);
    if (this.#known.has(key)) return false;
    if (this.#known.size >= MOST) this.#known.delete(this.#known.values().next().value!);
    this.#known.add(key);
    return true;
  }

  ends(notice: Notices["recovered"]): void {
    this.#known.delete(keyOf(notice));
  }
}

const keyOf = ({
  provider,
  credential,
  model,
}: Pick<Notices["recovered"], "provider" | "credential" | "model">): string =>
  JSON.stringify([provider, credential, model]);

/** Undefined: it is nothing to tell. Types that came later are passed over. */
export function ofNotice(notice: Notice, resting: Resting): Happening | undefined {
  switch (notice.type) {
    case "budget_crossed":
      return crossed(notice);
    case "rests":
      return resting.begins(notice) ? rests(notice) : undefined;
    case "recovered":
      resting.ends(notice);
      return undefined;
    case "ledger":
      return notice.ok ? undefined : plain("ledger.down", "ledger", notice.at);
    case "reloaded": {
      const { ok, at, why, generation } = notice;
      return ok
        ? undefined
        : { ...plain("reload.failed", "config", at), data: { why, generation } };
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
  const amount = (of: bigint) => (unit === "nano_usd" ? usd(of) : String(of));
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
      unit: unit === "nano_usd" ? "usd" : unit,
      per,
      percent,
      used: amount(used),
      max: amount(max),
      ...(per !== "total" && { resetsAt: new Date(resetsAt).toISOString() }),
    },
  };
}

/** At the first colon: a name may have more. */
function split(scope: string): readonly string[] {
  const at = scope.indexOf(":");
  return at < 0 ? [scope] : [scope.slice(0, at), scope.slice(at + 1)];
}

function rests({ at, provider, credential, model, kind, until }: Notices["rests"]): Happening {
  return {
    type: OURS.includes(kind) ? "credential.refused" : "provider.resting",
    at,
    subject: `provider:${provider}`,
    once: [provider, credential, model ?? "*", at],
    facets: {
      provider,
      credential,
      model: model === null ? undefined : `${provider}/${model}`,
      code: kind,
    },
    data: { provider, credential, model, kind, until: new Date(until).toISOString() },
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
