// What a key's grants may name: models that are listed, aliases, providers that forward more than they list, frontends.
import { basename } from "node:path";
import type { GatewayConfig } from "../config/types.ts";
import { matches } from "../walk/candidates/pattern.ts";
import type { LoadedConfig } from "../config/load.ts";
import { problem } from "../config/problems.ts";
import type { AccountRecord } from "../plugin/account.ts";
import type { Around } from "./control/grants.ts";
import type { KnownNames } from "./control/ledger-names.ts";

/** `listed`: ids of models, as far as they are known. */
export function aroundOf(
  config: GatewayConfig,
  loaded: Pick<LoadedConfig, "place">,
  listed: readonly string[],
): Around {
  const { providers, unmounted, models, frontends, middleware, accounts, defaults } = config;
  const aliases = [...models.keys()];
  const told = new Set(listed.map((id) => id.slice(0, id.indexOf("/"))));
  // Of the others any name may be one of theirs.
  const untold = [...providers.keys(), ...unmounted.keys()].filter((name) => !told.has(name));
  return {
    model: (pattern) =>
      listed.some((id) => matches(pattern, id)) ||
      aliases.some((alias) => matches(pattern, alias) || matches(alias, pattern)) ||
      untold.some((name) => pattern.startsWith(`${name}/`) || matches(pattern, `${name}/`)),
    accounts,
    stands(account) {
      const { file, line } = loaded.place(`/accounts/${account}`, problem.badValue("stands here"));
      return line > 0 ? `${basename(file)}:${line}` : basename(file);
    },
    defaults,
    // A middleware that serves routes is one by its whole name.
    frontend: (name) =>
      frontends.some((f) => f.id === `frontends.${name}` || f.use === name) ||
      middleware.some(({ id }) => id === name),
  };
}

/** Names that a question about the ledger may have though no row has them yet. */
export const namesAround = (
  { providers, unmounted, frontends, accounts }: GatewayConfig,
  stored: { values(): Iterable<AccountRecord> },
  listed: readonly string[],
): KnownNames => ({
  provider: [...providers.keys(), ...unmounted.keys()],
  frontend: frontends.map(({ id }) => id.slice("frontends.".length)),
  account: [...accounts.keys(), ...[...stored.values()].map(({ id }) => id)],
  model: listed,
});
