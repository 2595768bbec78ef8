// Validates what a command grants to a key or an account, and converts it into the stored form.
import { nearest } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import type { KeyDefaults, KeyLimit, AccountRecord } from "../../plugin/store/account.ts";
import type { AccountConfig, GatewayConfig } from "../../config/gateway-config.ts";
import type { Identity } from "../../plugin/identity.ts";
import {
  type Limit,
  parseScopedLimit,
  formatLimit,
  type LimitUsage,
} from "../../plugin/store/limit.ts";
import type { AccountTree } from "./account-tree.ts";
import { basename } from "node:path";
import { matchesPattern } from "../../catalog/model-names.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { problem } from "../../config/problems.ts";
import type { KnownNames } from "../commands/ledger-names.ts";

/** Names that grants are checked against. A model may be added later, but an account must exist. */
export interface GrantTargets {
  /** Whether a model, an alias, or a provider matches the pattern. */
  hasModel(pattern: string): boolean;
  hasFrontend(name: string): boolean;
  /** Accounts of gateway.yaml. */
  readonly fileAccounts: ReadonlyMap<string, AccountConfig>;
  /** Returns the location of an account: "gateway.yaml:12". */
  locationOf(account: string): string;
  /** Defaults of new keys without an account. */
  readonly keyDefaults: KeyDefaults | undefined;
}

/** Throws if the record is not the version that the operator saw. */
export function assertVersion(version: number | undefined, what: string, is: number): void {
  if (version !== undefined && version !== is)
    fail(
      "conflict",
      `The ${what} was changed after version ${version} and is now at version ${is}. Read it again and retry.`,
      {
        code: "version_conflict",
        details: { version: is },
      },
    );
}

/**
 * Throws if the account does not exist or is closed. All requests of a key in such an account would
 * be rejected.
 */
export function assertAccountExists(
  account: string | undefined,
  tree: AccountTree,
  param: string,
): void {
  if (account === undefined) return;
  const closed = tree.get(account) && tree.closedReason(account);
  if (closed === "closed")
    fail("conflict", `The account ${account} or one of its parents is closed.`, {
      code: "account_closed",
      param,
    });
  if (tree.get(account)) return;
  const near = nearest(
    account,
    tree.all().map(({ id }) => id),
  );
  fail(
    "invalid",
    `Account "${account}" not found.${near === undefined ? " Run tollgate accounts create to create it." : ` Did you mean "${near}"?`}`,
    { code: "unknown_account", param },
  );
}

export function unknownGrantWarnings(
  { models, frontends }: Pick<Identity, "models" | "frontends">,
  targets: GrantTargets,
): string[] {
  const model = (models ?? []).filter((pattern) => !targets.hasModel(pattern));
  const frontend = (frontends ?? []).filter((name) => !targets.hasFrontend(name));
  return [
    ...model.map((pattern) => `No configured model matches "${pattern}".`),
    ...frontend.map((name) => `Frontend "${name}" is not configured.`),
  ];
}

/** Returns the limits with their scope, or undefined if there are none. */
export const toScopedLimits = (limits: readonly KeyLimit[], scope: string): Limit[] | undefined =>
  limits.length > 0 ? limits.map((limit) => ({ scope, ...limit })) : undefined;

/**
 * Parses the limits of a command's input. An amount that a number represents exactly becomes a
 * number.
 */
export const parseLimits = (limits: readonly string[]): KeyLimit[] =>
  limits.map((text) => {
    const { scope: _, max, ...limit } = parseScopedLimit(text, "");
    return { ...limit, max: max <= Number.MAX_SAFE_INTEGER ? Number(max) : max };
  });

export const toLabels = (
  labels: Readonly<Record<string, unknown>> | undefined,
): Record<string, string> | undefined =>
  labels && Object.keys(labels).length > 0 ? (labels as Record<string, string>) : undefined;

/**
 * Like `mergeValue`, for a value whose stored form differs from its input form. An empty result
 * becomes undefined.
 */
export const mergeConverted = <S, T>(
  now: S | null | undefined,
  before: T | undefined,
  kept: (now: S) => T | undefined,
): T | undefined => (now === undefined ? before : now === null ? undefined : kept(now));

/** Merges an update: null removes the value, and undefined keeps it. */
export const mergeValue = <T>(now: T | null | undefined, before: T | undefined): T | undefined =>
  now === undefined ? before : (now ?? undefined);

/**
 * Usage of a limit, as commands return it. `max`, `used`, `held`, and `left` are measured in
 * `unit`. `nano_usd` is a billionth of a US dollar.
 */
export interface ShownLimitUsage extends Omit<LimitUsage, "per"> {
  /** The limit as text: "usd=5/month". */
  readonly limit: string;
}

export const toLimitUsage = ({ per, ...count }: LimitUsage): ShownLimitUsage => ({
  ...count,
  limit: formatLimit({ ...count, per }),
});

/** Returns the limits and default limits of a record as texts. */
export const shownLimits = ({
  limits,
  defaults,
}: {
  limits?: readonly KeyLimit[] | undefined;
  defaults?: KeyDefaults | undefined;
}) => ({
  ...(limits && { limits: limits.map(formatLimit) }),
  ...(defaults && { defaults: { limits: defaults.limits.map(formatLimit) } }),
});

// Determines the names that a key's grants may contain: listed models, aliases, providers that
// forward unlisted models, and frontends.

/**
 * @param listed IDs of the known models.
 */
export function createGrantTargets(
  config: GatewayConfig,
  loaded: Pick<LoadedConfig, "locate">,
  listed: readonly string[],
): GrantTargets {
  const { providers, unmountedProviders, models, frontends, middleware, accounts, keyDefaults } =
    config;
  const aliases = [...models.keys()];
  const listedProviders = new Set(listed.map((id) => id.slice(0, id.indexOf("/"))));
  // A provider without a list may have any model.
  const unlistedProviders = [...providers.keys(), ...unmountedProviders.keys()].filter(
    (name) => !listedProviders.has(name),
  );
  return {
    hasModel: (pattern) =>
      listed.some((id) => matchesPattern(pattern, id)) ||
      aliases.some((alias) => matchesPattern(pattern, alias) || matchesPattern(alias, pattern)) ||
      unlistedProviders.some(
        (name) => pattern.startsWith(`${name}/`) || matchesPattern(pattern, `${name}/`),
      ),
    fileAccounts: accounts,
    locationOf(account) {
      const { file, line } = loaded.locate(`/accounts/${account}`, problem.badValue("stands here"));
      return line > 0 ? `${basename(file)}:${line}` : basename(file);
    },
    keyDefaults,
    // A middleware with routes counts as a frontend under its full name.
    hasFrontend: (name) =>
      frontends.some((f) => f.id === `frontends.${name}` || f.use === name) ||
      middleware.some(({ id }) => id === name),
  };
}

/** Returns the names that a ledger query may use even if no row contains them yet. */
export const knownLedgerNames = (
  { providers, unmountedProviders, frontends, accounts }: GatewayConfig,
  stored: { values(): Iterable<AccountRecord> },
  listed: readonly string[],
): KnownNames => ({
  provider: [...providers.keys(), ...unmountedProviders.keys()],
  frontend: frontends.map(({ id }) => id.slice("frontends.".length)),
  account: [...accounts.keys(), ...[...stored.values()].map(({ id }) => id)],
  model: listed,
});
