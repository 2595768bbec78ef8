// Collects the amounts that one call takes from limits of its key, limits of its accounts, and
// charge hooks. All amounts are taken in one atomic step, together with the call's ledger row. If a
// limit rejects the call, the client's error contains the limit, its value, the remaining amount,
// the reset time, and the size of a request that would have fitted. If an account hides its limits,
// the error contains only the retry time.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { type HoldRequest, maxOutputForBudget } from "../../money/estimate.ts";
import { priceHash } from "../../money/price.ts";
import type { Price } from "../../model/facts.ts";
import type { Limit, LimitState } from "../../plugin/store/limit.ts";
import type { JobReserve } from "../../plugin/store/job.ts";
import type { Reserve, CommandResult } from "../../plugin/store/store.ts";
import type { HostCall } from "../exchange/call.ts";
import { isPaidByClient } from "../exchange/client-credential.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import type { Stamped } from "../generation.ts";
import { formatPolicy } from "../privacy/zero-retention.ts";
import { formatUsd } from "../../money/decimal.ts";
import { createFault } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { HIDDEN_LIMIT_MESSAGE, type ResolvedAccount } from "../accounts/accounts.ts";
import { chargeScopes } from "../scopes/scope-charges.ts";
import { scopeNameOf, withScopeName } from "../scopes/scope-table.ts";
import { attributeFault } from "../faults/fault-source.ts";

export interface Charges {
  readonly limits: readonly Limit[];
  readonly labels: Reserve["labels"];
  readonly budgetMode: HoldRequest["budgetMode"] | undefined;
}

export function collectCharges(call: HostCall): Charges {
  const x = call.exchange;
  const { frontend, billing } = x.state;
  const limits = ownLimits(x, call.n);
  const labels: Record<string, string | undefined> = { ...billing.labels, ...x.identity!.labels };
  let mode: HoldRequest["budgetMode"] | undefined;
  for (const hook of frontend.hooks.lists.charge) {
    const charge = hook.appliesTo(x.model, call.provider) ? hook.run(call) : undefined;
    if (!charge) continue;
    if (charge.limits) limits.push(...charge.limits);
    for (const name in charge.labels) labels[name] = charge.labels[name];
    if (charge.hold) mode = stricterMode(mode ?? "soft", charge.hold);
  }
  if (!x.state.gen.scopes.isEmpty)
    for (const hold of chargeScopes(call, limits, labels))
      mode = stricterMode(mode ?? "soft", hold);
  // The client pays the provider, so no budget of money is used and none denies the call.
  if (isPaidByClient(call.candidate))
    return { limits: limits.filter(({ unit }) => unit !== "nano_usd"), labels, budgetMode: "soft" };
  return { limits, labels, budgetMode: mode };
}

/**
 * Returns the limits of the key and its accounts. A second attempt belongs to the same request, so
 * request limits do not count it again.
 */
function ownLimits({ identity, state }: HostExchange, n: number): Limit[] {
  const limits = [...(identity!.limits ?? []), ...(state.admission.account?.limits ?? [])];
  return n === 1 ? limits : limits.filter(({ unit }) => unit !== "requests");
}

/**
 * Units for operations that generate nothing. They count as one request and use no tokens and no
 * money.
 */
const REQUEST_UNITS: readonly Limit["unit"][] = ["requests", "concurrent"];

/** Reserves a row for an operation that generates nothing. */
export function reserveUnbilled(call: HostCall): Promise<void> {
  const { limits, labels } = collectCharges(call);
  const claims = limits
    .filter(({ unit }) => REQUEST_UNITS.includes(unit))
    .map((limit) => ({ ...limit, take: 1n }));
  return reserveRow(call, { at: wallClock(), labels, claims, holdNano: 0n, price: undefined });
}

const MODE_ORDER = ["soft", "expected", "hard"] as const;
const stricterMode = (
  a: HoldRequest["budgetMode"],
  b: HoldRequest["budgetMode"],
): HoldRequest["budgetMode"] => (MODE_ORDER.indexOf(b) > MODE_ORDER.indexOf(a) ? b : a);

export interface ReserveInputs {
  readonly at: number;
  readonly labels: Reserve["labels"];
  readonly claims: Reserve["claims"];
  readonly holdNano: bigint | null;
  readonly price: Price | undefined;
  /** The job whose line the call is. */
  readonly job?: JobReserve;
  /** Keyed hash of the arguments, for a call that is not a model's. */
  readonly argumentsHash?: string | undefined;
}

/**
 * Resolves when the row is durable and all amounts are taken. `ask`: used to calculate the size of
 * a request that would have fitted into the budget.
 */
export async function reserveRow(
  call: HostCall,
  of: ReserveInputs,
  ask?: HoldRequest,
): Promise<void> {
  const x = call.exchange;
  const { gen, admission, billing } = x.state;
  const command: Stamped<Reserve> = {
    do: "reserve",
    at: of.at,
    attempt: call.attemptId,
    request: x.id,
    number: call.n,
    key: x.identity!.id,
    target: {
      provider: call.provider,
      model: call.model,
      protocol: call.protocol,
      credential: call.credential,
    },
    privacy: x.privacy,
    labels: of.labels,
    account: admission.account?.path,
    claims: of.claims,
    holdNano: of.holdNano,
    price: of.price ? priceHash(of.price) : null,
    clientRequest: {
      model: x.model,
      frontend: x.frontend,
      // A frontend without a protocol makes its calls itself, in the protocol of the call.
      protocol: x.protocol === "" ? (call.protocol ?? "") : x.protocol,
      mode: call.mode,
      stream: x.stream,
      ...(x.privacy !== "off" && { policyBasis: formatPolicy(call.policy) }),
      ...(of.argumentsHash !== undefined && { argumentsHash: of.argumentsHash }),
    },
    ...(of.job && { job: of.job }),
  };
  billing.ledgerLabels = of.labels;
  const verdict = await gen.ledger.reserve(command, of.price);
  if (!verdict.ok) {
    const denied = withScopeName(verdict.denied);
    const denial = createDenial(x, verdict, of.claims, ask);
    // If a limit rejects a hedge, the hedge is not started, and the client is not informed.
    if (!call.isHedge) {
      billing.limitStates = [denied];
      billing.denyingLimits = denyingOf(x, [verdict.denied]);
      billing.denial = denial;
      if (!verdict.isFull) offerDowngrade(x, denied);
    }
    throw denial;
  }
  admission.permit.releaseSlots();
  if (!verdict.limits) return;
  const enforced = enforcedOf(x, verdict.limits, of.claims);
  billing.denyingLimits = denyingOf(x, enforced);
  billing.limitStates = hasMembers(of.claims) ? enforced.map(withScopeName) : enforced;
}

/** Returns the amount that a call would have taken from a limit. */
const takenFrom = (claims: Reserve["claims"], { scope, unit }: LimitState): bigint =>
  claims.find((claim) => claim.unit === unit && claim.scope === scope)?.take ?? 0n;

/**
 * Returns the limits that can deny a call. Limits that are used up but deny no calls are named in a
 * response header.
 */
function enforcedOf(
  x: HostExchange,
  limits: readonly LimitState[],
  claims: Reserve["claims"],
): readonly LimitState[] {
  if (!claims.some(({ countsOnly }) => countsOnly)) return limits;
  const usedUp = new Set<string>();
  const enforced: LimitState[] = [];
  for (const limit of limits)
    if (!isOnlyCounted(limit, claims)) enforced.push(limit);
    else if (limit.remaining <= 0) usedUp.add(scopeNameOf(limit.scope)!);
  if (usedUp.size > 0) x.setResponseHeader("x-tollgate-scope", [...usedUp].join(", "));
  return enforced;
}

const hasMembers = (claims: Reserve["claims"]): boolean =>
  claims.some(({ maxMembers }) => maxMembers !== undefined);

/**
 * Returns the limits that deny the client's requests when they are used up. If a scope has a
 * downgrade, another model serves these requests, until the limits of the downgrade are used up.
 */
function denyingOf(
  { state: { gen, billing } }: HostExchange,
  limits: readonly LimitState[],
): readonly LimitState[] {
  if (!gen.scopes.hasDowngrades) return limits;
  return limits.filter(({ scope }) => {
    const config = gen.scopes.find(scopeNameOf(scope));
    return !config?.downgrade || billing.downgrade?.scope === config.name;
  });
}

const isOnlyCounted = ({ scope, unit, per }: LimitState, claims: Reserve["claims"]): boolean =>
  claims.every(
    (claim) =>
      claim.countsOnly || claim.scope !== scope || claim.unit !== unit || claim.per !== per,
  );

/** Records the model that can serve a request whose scope has a limit that is used up. */
function offerDowngrade(x: HostExchange, { scope }: LimitState): void {
  const { gen, billing } = x.state;
  const config = gen.scopes.find(scopeNameOf(scope));
  if (config?.downgrade && !billing.downgrade)
    billing.downgradeOffer = { scope: config.name, model: config.downgrade.model };
}

function createFullGroupError(x: HostExchange, { scope }: LimitState, retryAfterMs: number): Error {
  const name = scopeNameOf(scope) ?? scope;
  const max = x.state.gen.scopes.find(name)?.maxMembers;
  return attributeFault(
    createFault(
      "rate_limited",
      `The scope "${name}" has its maximum of ${max} members. Use a value that is already in use, or retry when a member has become idle. The operator can raise scopes.${name}.max_members.`,
      { code: "too_many_scope_members", retryAfterMs },
    ),
    "gateway",
  );
}

/** The error for a limit of a scope. */
export const SCOPE_EXHAUSTED = { code: "scope_exhausted" } as const;
const ERROR_CODES = { money: "insufficient_quota", other: "rate_limit_exceeded" } as const;

/** Creates the error of the limit that denied a reservation. */
export function createDenial(
  x: HostExchange,
  denial: Extract<CommandResult, { ok: false }>,
  claims: Reserve["claims"],
  ask?: HoldRequest,
): Error {
  const denied = withScopeName(denial.denied);
  if (denial.isFull) return createFullGroupError(x, denied, denial.retryAfterMs);
  const wanted = takenFrom(claims, denial.denied);
  return createLimitError({ ...denial, denied }, x.state.admission.account, ask, wanted);
}

function createLimitError(
  { denied, retryAfterMs }: Extract<CommandResult, { ok: false }>,
  branch: ResolvedAccount | undefined,
  ask: HoldRequest | undefined,
  wanted: bigint,
): Error {
  const { per, unit, scope } = denied;
  const resets = new Date(denied.resetsAt).toISOString();
  const isBudget = unit === "nano_usd";
  const resetText = neverResets(denied) ? "is never reset" : `resets at ${resets}`;
  if (branch?.hiddenScopes.has(scope)) {
    const when = !isBudget || neverResets(denied) || per === "open" ? "" : `; it ${resetText}`;
    return createRejection(isBudget, `${HIDDEN_LIMIT_MESSAGE}${when}.`, retryAfterMs);
  }
  return createRejection(
    isBudget,
    isBudget ? budgetMessage(denied, resetText, ask, wanted) : rateLimitMessage(denied),
    retryAfterMs,
    detailsOf(denied, resets),
    scopeNameOf(scope) === undefined ? undefined : SCOPE_EXHAUSTED.code,
  );
}

/** Latest time that a Date can represent. Limits that never reset have it as their reset time. */
const NEVER_MS = 8.64e15;
const neverResets = ({ per, resetsAt }: LimitState): boolean =>
  per === "total" && resetsAt >= NEVER_MS;

function createRejection(
  isBudget: boolean,
  message: string,
  retryAfterMs: number,
  details?: JsonObject,
  code: string = isBudget ? ERROR_CODES.money : ERROR_CODES.other,
): Error {
  if (isBudget) return createFault("quota", message, { code, details });
  // The gateway itself rejects the request, before any provider is called. The fault therefore
  // names no provider.
  return attributeFault(
    createFault("rate_limited", message, { code, retryAfterMs, details }),
    "gateway",
  );
}

const detailsOf = (
  { scope, unit, per, max, remaining }: LimitState,
  resets: string,
): JsonObject => ({
  limit: { scope, unit, per, max: String(max), left: String(remaining), resets_at: resets },
});

/**
 * Returns the message for a rate limit. The retry time is sent separately. With a sliding window,
 * it is earlier than the end of the window.
 */
function rateLimitMessage({ unit, per, max, remaining, scope }: LimitState): string {
  if (unit === "concurrent") return `More than ${max} concurrent requests (${scope}).`;
  const span = per === "total" ? "in total" : `a ${per}`;
  return `The limit of ${max} ${unit} ${span} (${scope}) is reached: ${remaining} left.`;
}

function budgetMessage(
  { per, max, remaining, scope }: LimitState,
  resetText: string,
  ask: HoldRequest | undefined,
  wanted: bigint,
): string {
  const span = per === "total" ? "in total" : `a ${per}`;
  const fits = ask ? maxOutputForBudget(BigInt(remaining), ask) : 0;
  return (
    `The budget of ${formatUsd(BigInt(max))} ${span} (${scope}) has ${formatUsd(BigInt(remaining))} left; ` +
    `this request would reserve ${formatUsd(wanted)}.${fits > 0 ? ` With max_tokens: ${fits} the request would fit.` : ""} It ${resetText}.`
  );
}
