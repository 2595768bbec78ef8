// Commands about scopes: their limits, and the usage of members. Members with usage are found in
// the labels of ledger rows, because counters contain only hashes.
import type { ScopeConfig } from "../../config/gateway-config.ts";
import { fail } from "../../model/error.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import type { Scopes } from "../../pipeline/scopes/scope-table.ts";
import { formatLimit } from "../../plugin/store/limit.ts";
import type { Store } from "../../plugin/store/store.ts";
import type { ShownLimitUsage } from "../access/grants.ts";
import { toLimitUsage } from "../access/grants.ts";
import { withInputChecks } from "../dispatch/command-input.ts";

const DAY_MS = 86_400_000;
/** Maximum number of members that are shown. */
const MAX_MEMBERS = 50;

/** A scope of gateway.yaml. */
export interface ShownScope {
  readonly name: string;
  readonly from: readonly string[];
  readonly within: ScopeConfig["within"];
  readonly limits: readonly string[];
  readonly overflow: ScopeConfig["overflow"];
  /** Model that serves requests above a limit. */
  readonly downgradeModel?: string;
  readonly maxMembers: number;
  readonly idleMs: number;
}

/** A scope with its members, or with the usage of one member. */
export interface ScopeDetails {
  readonly scope: ShownScope;
  readonly limitUsage?: readonly ShownLimitUsage[];
  /** Members with the highest cost in the last 24 hours. */
  readonly members?: readonly {
    readonly value: string;
    readonly calls: number;
    readonly costUsd: string;
  }[];
}

interface ScopeCommandsOptions {
  readonly store: Pick<Store, "sumEntries" | "readLimits">;
  readonly scopes: () => Scopes;
  /** Returns the ID of a key that is given by its ID or name. */
  readonly keyId: (key: string) => Promise<string>;
  readonly now: () => number;
}

export function createScopeCommands({ store, scopes, keyId, now }: ScopeCommandsOptions) {
  const find = (name: string): ScopeConfig =>
    scopes().configs.find((config) => config.name === name) ??
    fail(
      "not_found",
      `Scope "${name}" not found. Known scopes: ${
        scopes()
          .configs.map((config) => config.name)
          .join(", ") || "none"
      }.`,
      { code: "no_such_scope" },
    );
  return withInputChecks({
    "scopes.list": async (): Promise<{ readonly scopes: readonly ShownScope[] }> => ({
      scopes: scopes().configs.map(toShownScope),
    }),
    "scopes.show": async ({ name, value, key, account }): Promise<ScopeDetails> => {
      const config = find(name);
      const scope = toShownScope(config);
      if (config.from.length > 0 && value === undefined)
        return { scope, members: await readMembers(store, name, now()) };
      const owner = await ownerOf(config, { key, account }, keyId);
      const of = scopes().scopeOf(config, owner, config.from.length > 0 ? value : undefined);
      const limits = config.limits.map((limit) => ({ scope: of, ...limit }));
      const usage = (await store.readLimits?.(limits, now())) ?? [];
      return {
        scope,
        limitUsage: usage.map((one) => toLimitUsage({ ...one, scope: `scope:${name}` })),
      };
    },
  });
}

const toShownScope = (config: ScopeConfig): ShownScope => ({
  name: config.name,
  from: config.from.map(({ text }) => text),
  within: config.within,
  limits: config.limits.map(formatLimit),
  overflow: config.overflow,
  ...(config.downgrade && { downgradeModel: config.downgrade.model }),
  maxMembers: config.maxMembers,
  idleMs: config.idleMs,
});

async function ownerOf(
  { name, within }: ScopeConfig,
  { key, account }: { key?: string | undefined; account?: string | undefined },
  keyId: (key: string) => Promise<string>,
): Promise<string> {
  if (within === "gateway") return "";
  if (within === "account" && account !== undefined) return `account:${account}`;
  if (key !== undefined) return `key:${await keyId(key)}`;
  return fail("invalid", `A value of ${name} is unique within a ${within}. Add --${within}.`, {
    code: "bad_input",
    param: within,
  });
}

async function readMembers(
  store: Pick<Store, "sumEntries">,
  name: string,
  now: number,
): Promise<NonNullable<ScopeDetails["members"]>> {
  const prefix = `${name}=`;
  const totals = await store.sumEntries({ by: ["label"], from: now - DAY_MS });
  return totals
    .filter(({ by }) => by["label"]?.startsWith(prefix))
    .toSorted((a, b) => (a.costNano < b.costNano ? 1 : a.costNano > b.costNano ? -1 : 0))
    .slice(0, MAX_MEMBERS)
    .map(({ by, calls, costNano }) => ({
      value: by["label"]!.slice(prefix.length),
      calls,
      costUsd: nanoToDecimal(costNano),
    }));
}
