// Bifrost's config.json: providers with their keys, and what governance says of customers, teams and virtual keys.
import { digest } from "../../lib/key.ts";
import { budgetOf, ratesOf } from "./amounts.ts";
import { bifrostProvider, variable } from "./bifrost-provider.ts";
import { slug, type Draft } from "./draft.ts";
import type { ImportedKey } from "./grantees.ts";
import type { Said } from "./said.ts";

export function bifrost(said: Said, draft: Draft): readonly ImportedKey[] {
  const providers = said.get("providers");
  for (const name of providers.keys) bifrostProvider(name, providers.get(name), draft);
  const keys = governance(said.get("governance"), draft);
  const rules = [
    ["config_store", "exact", "files are the truth here"],
    ["logs_store", "exact", "the ledger is in the state folder; prompts are not kept"],
    ["vector_store", "unsupported", "answers are not kept"],
    ["mcp", "unsupported", "tools are the client's to run"],
    [
      "plugins",
      "unsupported",
      "its plugins are not loaded; docs/plugins says how to write one here",
    ],
    ["client", "manual", "listen, overload, max_body and log have the same settings"],
    ["server", "manual", "bounds has the same settings"],
    ["framework", "exact", "prices come with the gateway"],
    ["encryption_key", "exact", "keys are kept as hashes, and provider keys are not kept"],
    ["local_cache", "unsupported", "answers are not kept"],
  ] as const;
  for (const [key, kind, message] of rules)
    if (said.get(key).isThere) said.get(key).find(kind, message);
  said.get("$schema").take();
  return keys;
}

function governance(said: Said, draft: Draft): readonly ImportedKey[] {
  const budgets = new Map(
    said
      .get("budgets")
      .list()
      .map((each) => [each.get("id").text(), each]),
  );
  const rates = new Map(
    said
      .get("rate_limits")
      .list()
      .map((each) => [each.get("id").text(), each]),
  );
  const limitsOf = (of: Said): readonly string[] => {
    const budget = budgets.get(of.get("budget_id").text());
    const rate = rates.get(of.get("rate_limit_id").text());
    const money = budget && budgetOf(budget.get("max_limit"), budget.get("reset_duration"));
    if (money && budget!.get("current_usage").number())
      budget!
        .get("current_usage")
        .find("approximate", "what was spent so far is not carried over: the budget begins anew");
    return [
      ...(money ? [money] : []),
      ...(rate
        ? ratesOf(rate, {
            requests: "request_max_limit",
            tokens: "token_max_limit",
            concurrent: "-",
          })
        : []),
    ];
  };
  for (const each of rates.values())
    for (const key of ["request_reset_duration", "token_reset_duration"]) {
      const span = each.get(key).text();
      if (span !== undefined && span !== "1m")
        each.get(key).find("approximate", "rates are by the minute here");
    }
  const accountOf = accounts(said, draft, limitsOf);
  if (said.get("routing_rules").isThere)
    said
      .get("routing_rules")
      .find(
        "unsupported",
        "which target is asked goes by the name of a model, a key or an account here",
      );
  return said
    .get("virtual_keys")
    .list()
    .flatMap((key) => virtualKey(key, accountOf, limitsOf));
}

function accounts(said: Said, draft: Draft, limitsOf: (of: Said) => readonly string[]) {
  const ids = new Map<string, string>();
  for (const [list, above] of [
    ["customers", undefined],
    ["teams", "customer_id"],
  ] as const)
    for (const each of said.get(list).list()) {
      const id = each.get("id").text() ?? each.at;
      const name = each.get("name").text();
      const parent = above && ids.get(each.get(above).text() ?? "");
      const limits = limitsOf(each);
      const account = slug(name ?? id);
      ids.set(id, account);
      draft.accounts.set(account, {
        ...(parent !== undefined && { parent }),
        ...(name !== undefined && name !== account && { name }),
        ...(limits.length > 0 && { limits }),
      });
    }
  return (of: Said) =>
    ids.get(of.get("team_id").text() ?? "") ?? ids.get(of.get("customer_id").text() ?? "");
}

function virtualKey(
  key: Said,
  accountOf: (of: Said) => string | undefined,
  limitsOf: (of: Said) => readonly string[],
): readonly ImportedKey[] {
  const value = key.get("value").text();
  const name = key.get("name").text() ?? key.get("id").text();
  key.get("id").take();
  key.get("description").take();
  if (value === undefined) {
    key.find("manual", "its value is not here: tollgate keys create makes another");
    return [];
  }
  const outside = variable(value);
  if (outside !== undefined) {
    key.find(
      "manual",
      `its value is in ${outside}, which is not read here: write it in its place and import again, or make another key (tollgate keys create)`,
    );
    return [];
  }
  const account = accountOf(key);
  const limits = limitsOf(key);
  const off = key.any("is_active").take() === false;
  const configs = key.get("provider_configs").list();
  const models = configs.flatMap((each) => {
    const provider = each.get("provider").text() ?? "*";
    const allowed = each.get("allowed_models").texts();
    each.get("weight").take();
    each.get("id").take();
    const ids = each.get("key_ids").texts();
    if (ids.some((id) => id !== "*"))
      each
        .get("key_ids")
        .find("unsupported", "a client's key does not choose among the keys of a provider");
    return (allowed.length > 0 ? allowed : ["*"]).map((model) => `${provider}/${model}`);
  });
  if (configs.length > 1)
    key
      .get("provider_configs")
      .find(
        "approximate",
        "clients name the provider, as <provider>/<model>; weights are not read",
      );
  return [
    {
      digest: digest(value),
      ...(name !== undefined && { name }),
      ...(account !== undefined && { account }),
      ...(models.length > 0 && { models }),
      ...(limits.length > 0 && { limits }),
      ...(off && { revoked: true }),
    },
  ];
}
