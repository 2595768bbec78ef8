// The limits and labels that scopes add to a call. The store creates the counters of a member
// together with the reservation of its first call.
import type { ScopeConfig } from "../../config/gateway-config.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type { HostCall } from "../exchange/call.ts";
import type { HostExchange } from "../exchange/exchange.ts";
import { rejectMissingValue, scopeValuesOf } from "./scope-values.ts";

type Labels = Readonly<Record<string, string | undefined>>;

/** The limits and labels that scopes add to a call. */
interface ScopeCharge {
  readonly limits: readonly Limit[];
  readonly labels: Labels;
  readonly holds: readonly NonNullable<ScopeConfig["hold"]>[];
}

/**
 * Returns the limits and labels of a call.
 * @param known Labels that the call already has.
 */
export function chargeScopes(call: HostCall, known: Labels): ScopeCharge {
  const x = call.exchange;
  const { gen, billing } = x.state;
  const { scopes } = gen;
  const values = scopeValuesOf(x);
  const { downgrade } = billing;
  const limits: Limit[] = [];
  const labels: Record<string, string> = {};
  const holds: NonNullable<ScopeConfig["hold"]>[] = [];
  for (const config of scopes.configs) {
    // The scope may count only calls of the model that was requested.
    const isDowngraded = downgrade?.scope === config.name;
    const isCounted = appliesTo(config, call, known);
    if (!isCounted && !isDowngraded) continue;
    const value = values.get(config.name) ?? labelValue(config, known);
    if (value === undefined && config.from.length > 0) {
      if (config.missing === "refuse") rejectMissingValue(config);
      continue;
    }
    const owner = ownerOf(config, x);
    const countsOnly = config.overflow === "warn" || isDowngraded;
    if (isCounted) {
      const options = { limits: config.limits, countsOnly, isFirst: call.n === 1 };
      limits.push(...scopes.limitsOf(config, scopes.scopeOf(config, owner, value), options));
    }
    if (isDowngraded) {
      const isFirst = call.n === downgrade.firstCall;
      const options = { limits: config.downgrade!.limits, countsOnly: false, isFirst };
      const scope = scopes.scopeOf(config, `${owner}+`, value);
      limits.push(...scopes.limitsOf(config, scope, options));
    }
    if (config.hold) holds.push(config.hold);
    if (value !== undefined && known[config.name] === undefined && config.label !== "none")
      labels[config.name] =
        config.label === "hash" || x.privacy !== "off" ? scopes.hashOf(config, value) : value;
  }
  if (downgrade) labels["downgraded"] = downgrade.scope;
  return { limits, labels, holds };
}

function appliesTo(
  { models, providers, credentials, labels, accounts }: ScopeConfig,
  { id, provider, credential, exchange: x }: HostCall,
  known: Readonly<Record<string, string | undefined>>,
): boolean {
  if (providers && !providers.includes(provider)) return false;
  if (credentials && !credentials.includes(credential)) return false;
  if (models && !models.some((pattern) => matchesPattern(pattern, id))) return false;
  for (const name in labels) if (known[name] !== labels[name]) return false;
  if (!accounts) return true;
  const path = x.state.admission.account?.path.split("/") ?? [];
  return accounts.some((account) => path.includes(account));
}

const labelValue = (
  { from }: ScopeConfig,
  known: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  for (const source of from)
    if (source.kind === "label" && known[source.name]) return known[source.name];
  return undefined;
};

function ownerOf({ within }: ScopeConfig, x: HostExchange): string {
  const key = `key:${x.identity!.id}`;
  if (within === "key") return key;
  if (within === "gateway") return "";
  const account = x.state.admission.account?.path;
  return account === undefined ? key : `account:${account}`;
}
