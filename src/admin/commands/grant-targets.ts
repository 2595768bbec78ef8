// Determines what a key's grants may name: listed models, aliases, providers that forward unlisted
// models, and frontends.
import { basename } from "node:path";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { matchesPattern } from "../../catalog/pattern.ts";
import type { LoadedConfig } from "../../config/load-config.ts";
import { problem } from "../../config/problems.ts";
import type { AccountRecord } from "../../plugin/store/account.ts";
import type { GrantTargets } from "../access/grants.ts";
import type { KnownNames } from "./ledger-names.ts";

/**
 * Creates the grant targets.
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
