// The limits and labels that scopes add to a call. The store creates the counters of a member
// together with the reservation of its first call.
import type { ScopeConfig } from "../../config/gateway-config.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import type { HostCall } from "../exchange/call.ts";
import { rejectMissingValue, scopeValuesOf } from "./scope-values.ts";

type Labels = Record<string, string | undefined>;
type Hold = NonNullable<ScopeConfig["hold"]>;

/**
 * Adds the limits and labels of scopes to those of a call. Returns the reservation modes that the
 * scopes require.
 */
export function chargeScopes(call: HostCall, limits: Limit[], labels: Labels): readonly Hold[] {
  const x = call.exchange;
  const { gen, billing, admission } = x.state;
  const { scopes } = gen;
  const values = scopeValuesOf(x);
  const { downgrade } = billing;
  // No scope reads the labels that other scopes add.
  const known: Readonly<Labels> = scopes.readsLabels ? { ...labels } : labels;
  const key = scopes.keyOwner(x.identity!.id);
  const owners = {
    key,
    account: admission.account === undefined ? key : `account:${admission.account.path}`,
    gateway: "",
  };
  let holds = NO_HOLDS;
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
    const owner = owners[config.within];
    const member = scopes.memberOf(config, owner, value);
    if (isCounted) {
      const countsOnly = config.overflow === "warn" || isDowngraded;
      const isFirst = call.n === 1;
      for (const limit of member.limits({ of: config.limits, countsOnly, isFirst }))
        limits.push(limit);
    }
    if (isDowngraded) {
      const of = config.downgrade!.limits;
      const isFirst = call.n === downgrade.firstCall;
      const downgraded = scopes.memberOf(config, `${owner}+`, value);
      limits.push(...downgraded.limits({ of, countsOnly: false, isFirst }));
    }
    if (config.hold) holds = [...holds, config.hold];
    if (value !== undefined && config.label !== "none" && known[config.name] === undefined)
      labels[config.name] = config.label === "hash" || x.privacy !== "off" ? member.hash : value;
  }
  if (downgrade) labels["downgraded"] = downgrade.scope;
  return holds;
}

const NO_HOLDS: readonly Hold[] = [];

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
