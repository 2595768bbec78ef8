// Spend limits of people, in the format of Anthropic's Admin API, on the admin listener. A limit of a
// group or of the organization is the default of each person, and is not shared.
import {
  fail,
  type Context,
  type Json,
  type Limit,
  type RequestHead,
  type Route,
  type RouteResponse,
} from "tollgate/plugin";
import type { People, PersonData } from "./people.ts";
import type { Seal, Sealed, SealedRecords } from "./sealed-records.ts";

const PERIODS = { daily: "day", weekly: "week", monthly: "month" } as const;
type Period = keyof typeof PERIODS;

/** `id` is the subject of a person or the name of a group. */
type Scope =
  | { readonly type: "user" | "rbac_group"; readonly id: string }
  | { readonly type: "organization"; readonly id?: undefined };

export interface SpendLimitData {
  readonly scope: Scope;
  /** In cents. Null: unlimited. */
  readonly amount: string | null;
  readonly period: Period;
}
type SpendLimit = Sealed<SpendLimitData>;

const NANO_PER_CENT = 10_000_000n;
const MAX_ID_LENGTH = 256;
const PATH = "/v1/organizations/spend_limits";

export interface SpendLimitsOptions {
  readonly ctx: Pick<Context, "ledger" | "reportEvent">;
  readonly records: SealedRecords<SpendLimitData>;
  readonly seal: Seal;
  readonly people: () => People;
  /** Limits of gateway.yaml. A spend limit of the same period replaces those in dollars. */
  readonly defaults: readonly Limit[];
  readonly now: () => number;
}

export class SpendLimits {
  readonly #of: SpendLimitsOptions;

  constructor(of: SpendLimitsOptions) {
    this.#of = of;
  }

  /** Returns the limits of a person. */
  async limitsOf(person: Pick<PersonData, "keyId" | "subject" | "groups">): Promise<Limit[]> {
    const found = (await this.#effective(person, await this.#all())).map(({ limit }) => limit);
    const scope = `key:${person.keyId}`;
    const covered = found.map(({ data }) => PERIODS[data.period] as string);
    return [
      ...found.flatMap(({ data }) => limitOf(data, scope)),
      ...this.#of.defaults
        .filter(({ unit, per }) => unit !== "nano_usd" || !covered.includes(per))
        .map((limit) => ({ ...limit, scope })),
    ];
  }

  routes(): readonly Route[] {
    const reads = { listener: "admin", role: "viewer" } as const;
    const writes = { listener: "admin", role: "operator" } as const;
    const one = `${PATH}/:id`;
    return [
      { ...reads, method: "GET", path: `${PATH}/effective`, handle: (x) => this.#report(x) },
      { ...reads, method: "GET", path: PATH, handle: (x) => this.#list(x) },
      { ...writes, method: "POST", path: PATH, body: "json", handle: (_, body) => this.#set(body) },
      { ...reads, method: "GET", path: one, handle: async (x) => ok(show(await this.#find(x))) },
      { ...writes, method: "DELETE", path: one, handle: (x) => this.#delete(x) },
    ];
  }

  async #all(): Promise<SpendLimit[]> {
    const all: SpendLimit[] = [];
    for await (const one of this.#of.records.list()) all.push(one);
    return all.toReversed();
  }

  /** Per period: the person's own limit, then the strictest of the groups, then the organization's. */
  async #effective(
    { subject, groups }: Pick<PersonData, "subject" | "groups">,
    all: readonly SpendLimit[],
  ): Promise<{ readonly period: Period; readonly limit: SpendLimit }[]> {
    return (Object.keys(PERIODS) as Period[]).flatMap((period) => {
      const own = all.filter(({ data }) => data.period === period);
      const limit =
        own.find(({ data: { scope } }) => scope.type === "user" && scope.id === subject) ??
        own
          .filter(({ data: { scope } }) => scope.type === "rbac_group" && groups.includes(scope.id))
          .toSorted((a, b) => compareAmounts(a.data.amount, b.data.amount))[0] ??
        own.find(({ data: { scope } }) => scope.type === "organization");
      return limit ? [{ period, limit }] : [];
    });
  }

  async #set(body: Readonly<Record<string, unknown>>): Promise<RouteResponse> {
    const data = readLimit(body);
    const { scope, period } = data;
    const id = `spl_${this.#of.seal.hide(`${scope.type} ${scope.id ?? ""} ${period}`)}`;
    for (;;) {
      const before = await this.#of.records.find(id);
      const saved = before
        ? await this.#of.records.replace(before, data)
        : await this.#of.records.create(id, { key: "spend-limits", data });
      if (!saved) continue;
      await this.#apply(saved, before?.data.amount);
      return ok(show(saved));
    }
  }

  async #delete(x: RequestHead): Promise<RouteResponse> {
    const limit = await this.#find(x);
    await this.#of.records.delete(limit.id);
    await this.#apply({ ...limit, data: { ...limit.data, amount: null } }, limit.data.amount);
    return ok({ id: limit.id, type: "spend_limit_deleted" });
  }

  /** Writes the limits of the people who have signed in. Others get theirs when they sign in. */
  async #apply({ id, data }: SpendLimit, before: string | null | undefined): Promise<void> {
    const { scope, amount, period } = data;
    for await (const person of this.#of.people().list())
      if (
        scope.type === "organization" ||
        (scope.type === "user" ? person.subject === scope.id : person.groups.includes(scope.id))
      )
        await this.#of.people().applyLimits(person);
    this.#of.ctx.reportEvent("spend_limit_changed", {
      id,
      scope: scope.type,
      period,
      amount_cents: amount,
      amount_cents_before: before ?? null,
    });
  }

  async #find({ params }: RequestHead): Promise<SpendLimit> {
    const found = await this.#of.records.find(params["id"] ?? "");
    return (
      found ??
      fail("not_found", `Spend limit "${params["id"] ?? ""}" not found.`, {
        code: "unknown_spend_limit",
      })
    );
  }

  async #list({ query }: RequestHead): Promise<RouteResponse> {
    const all = await this.#all();
    const after = query.get("after_id");
    const from = after === null ? 0 : all.findIndex(({ id }) => id === after) + 1;
    const limit = readPageSize(query);
    const data = all.slice(from, from + limit);
    return ok({
      data: data.map(show),
      has_more: all.length > from + limit,
      first_id: data[0]?.id ?? null,
      last_id: data.at(-1)?.id ?? null,
    });
  }

  /** Returns the limit and the exact spend of each person, by period. */
  async #report({ query }: RequestHead): Promise<RouteResponse> {
    const all = await this.#all();
    const users = query.getAll("user_ids[]");
    const periods = query.getAll("period[]");
    const people: PersonData[] = [];
    for await (const person of this.#of.people().list())
      if (users.length === 0 || users.includes(person.subject)) people.push(person);
    people.sort((a, b) => (a.subject < b.subject ? -1 : 1));
    const from = Number(query.get("page") ?? 0) || 0;
    const to = from + readPageSize(query);
    const rows = await Promise.all(
      people.slice(from, to).map((person) => this.#rowsOf(person, all, periods)),
    );
    return ok({ data: rows.flat(), next_page: to < people.length ? String(to) : null });
  }

  async #rowsOf(
    person: PersonData,
    all: readonly SpendLimit[],
    periods: readonly string[],
  ): Promise<Json[]> {
    const { subject, email, name, keyId } = person;
    const effective = (await this.#effective(person, all)).filter(
      ({ period }) => periods.length === 0 || periods.includes(period),
    );
    const counted = effective.map(({ limit: { data } }): Limit => {
      const max = BigInt(data.amount ?? 0) * NANO_PER_CENT;
      return { scope: `key:${keyId}`, unit: "nano_usd", max, per: PERIODS[data.period] };
    });
    const used = (await this.#of.ctx.ledger.readLimits?.(counted, this.#of.now())) ?? [];
    return effective.map(({ period, limit }, i) => ({
      actor: {
        type: "user_actor",
        user_id: subject,
        name: name ?? null,
        email_address: email ?? null,
        deleted: false,
      },
      scope: { type: "user", user_id: subject },
      source: showScope(limit.data.scope),
      spend_limit_id: limit.id,
      amount: limit.data.amount,
      currency: "USD",
      period,
      period_to_date_spend: cents(BigInt(used[i]?.used ?? 0)),
      groups: person.groups,
    }));
  }
}

/** A limit of zero rejects all requests, even to models that cost nothing. */
function limitOf({ amount, period }: SpendLimitData, scope: string): Limit[] {
  if (amount === null) return [];
  const [max, per] = [BigInt(amount) * NANO_PER_CENT, PERIODS[period]];
  return [
    max === 0n ? { scope, unit: "requests", max: 0, per } : { scope, unit: "nano_usd", max, per },
  ];
}

/** An amount of null is unlimited. */
const compareAmounts = (a: string | null, b: string | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : BigInt(a) < BigInt(b) ? -1 : 1;

/** Formats nano-dollars as cents, exactly: "12050.5". */
function cents(nano: bigint): string {
  const part = `${nano % NANO_PER_CENT}`.padStart(7, "0").replace(/0+$/, "");
  return `${nano / NANO_PER_CENT}${part === "" ? "" : `.${part}`}`;
}

function showScope({ type, id }: Scope): { readonly [name: string]: Json } {
  if (type === "organization") return { type };
  return type === "user" ? { type, user_id: id } : { type, rbac_group_id: id };
}

const show = ({ id, createdAt, data }: SpendLimit): { readonly [name: string]: Json } => ({
  type: "spend_limit",
  id,
  scope: showScope(data.scope),
  amount: data.amount,
  currency: "USD",
  period: data.period,
  is_enabled: true,
  created_at: new Date(createdAt).toISOString(),
});

const ok = (body: Json): RouteResponse => ({
  status: 200,
  body,
  headers: { "cache-control": "no-store" },
});

function readLimit(body: Readonly<Record<string, unknown>>): SpendLimitData {
  const { amount, period, currency = "USD" } = body;
  const scope = (body["scope"] ?? {}) as Readonly<Record<string, unknown>>;
  if (amount !== null && (typeof amount !== "string" || !/^\d{1,12}$/.test(amount)))
    return reject("amount", "must be a whole number of cents as text, or null for unlimited");
  if (currency !== "USD") return reject("currency", 'must be "USD"');
  if (typeof period !== "string" || !Object.hasOwn(PERIODS, period))
    return reject("period", 'must be "daily", "weekly", or "monthly"');
  return { scope: readScope(scope), amount, period: period as Period };
}

function readScope(scope: Readonly<Record<string, unknown>>): Scope {
  const { type } = scope;
  if (type === "organization") return { type };
  if (type !== "user" && type !== "rbac_group")
    return reject("scope.type", 'must be "user", "rbac_group", or "organization"');
  const name = type === "user" ? "user_id" : "rbac_group_id";
  const id = scope[name];
  return typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH
    ? { type, id }
    : reject(`scope.${name}`, `must be a text of 1 to ${MAX_ID_LENGTH} characters`);
}

function readPageSize(query: URLSearchParams): number {
  const size = Number(query.get("limit") ?? 20);
  return Number.isInteger(size) && size >= 1 && size <= 1_000
    ? size
    : reject("limit", "must be a whole number from 1 to 1000");
}

const reject = (param: string, why: string): never =>
  fail("invalid", `\`${param}\` ${why}.`, { code: "invalid_value", param });
