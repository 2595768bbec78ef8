// Imports Bifrost's config.json: providers with their keys, and the customers, teams, and virtual
// keys of its governance section.
import { createHash } from "node:crypto";
import { type Importer, slug, type ConfigDraft } from "./config-draft.ts";
import { readBudget, readRateLimits } from "./amounts.ts";
import { importBifrostProvider, parseVariable } from "./bifrost-provider.ts";
import type { ImportedKey } from "./key-export.ts";
import type { SourceValue } from "./source-value.ts";

export const bifrost: Importer = {
  name: "bifrost",
  importConfig: importBifrost,
};

function importBifrost(source: SourceValue, draft: ConfigDraft): readonly ImportedKey[] {
  const providers = source.get("providers");
  for (const name of providers.keys) importBifrostProvider(name, providers.get(name), draft);
  const keys = importGovernance(source.get("governance"), draft);
  const rules = [
    ["config_store", "exact", "config files are the only source of configuration"],
    ["logs_store", "exact", "the ledger is in the state directory; prompts are not stored"],
    ["vector_store", "unsupported", "responses are not cached"],
    ["mcp", "unsupported", "tools are run by the client"],
    [
      "plugins",
      "unsupported",
      "its plugins are not loaded; see docs/plugins to write one for Tollgate",
    ],
    ["client", "manual", "the equivalent settings are in listen, overload, max_body, and log"],
    ["server", "manual", "the equivalent settings are in bounds"],
    ["framework", "exact", "prices are built in"],
    ["encryption_key", "exact", "keys are stored as hashes, and provider keys are not stored"],
    ["local_cache", "unsupported", "responses are not cached"],
  ] as const;
  for (const [key, kind, message] of rules)
    if (source.get(key).exists) source.get(key).report(kind, message);
  source.get("$schema").readValue();
  return keys;
}

function importGovernance(governance: SourceValue, draft: ConfigDraft): readonly ImportedKey[] {
  const budgets = new Map(
    governance
      .get("budgets")
      .readList()
      .map((each) => [each.get("id").readText(), each]),
  );
  const rates = new Map(
    governance
      .get("rate_limits")
      .readList()
      .map((each) => [each.get("id").readText(), each]),
  );
  const limitsOf = (of: SourceValue): readonly string[] => {
    const budget = budgets.get(of.get("budget_id").readText());
    const rate = rates.get(of.get("rate_limit_id").readText());
    const money = budget && readBudget(budget.get("max_limit"), budget.get("reset_duration"));
    if (money && budget!.get("current_usage").readNumber())
      budget!
        .get("current_usage")
        .report("approximate", "past spending is not imported: the budget starts at zero");
    return [
      ...(money ? [money] : []),
      ...(rate
        ? readRateLimits(rate, {
            requests: "request_max_limit",
            tokens: "token_max_limit",
            concurrent: "-",
          })
        : []),
    ];
  };
  for (const each of rates.values())
    for (const key of ["request_reset_duration", "token_reset_duration"]) {
      const span = each.get(key).readText();
      if (span !== undefined && span !== "1m")
        each.get(key).report("approximate", "rates are per minute");
    }
  const accountOf = importAccounts(governance, draft, limitsOf);
  if (governance.get("routing_rules").exists)
    governance
      .get("routing_rules")
      .report("unsupported", "targets are selected by the name of a model, a key, or an account");
  return governance
    .get("virtual_keys")
    .readList()
    .flatMap((key) => importVirtualKey(key, accountOf, limitsOf));
}

function importAccounts(
  governance: SourceValue,
  draft: ConfigDraft,
  limitsOf: (of: SourceValue) => readonly string[],
) {
  const ids = new Map<string, string>();
  for (const [list, above] of [
    ["customers", undefined],
    ["teams", "customer_id"],
  ] as const)
    for (const each of governance.get(list).readList()) {
      const id = each.get("id").readText() ?? each.path;
      const name = each.get("name").readText();
      const parent = above && ids.get(each.get(above).readText() ?? "");
      const limits = limitsOf(each);
      const account = slug(name ?? id);
      ids.set(id, account);
      draft.accounts.set(account, {
        ...(parent !== undefined && { parent }),
        ...(name !== undefined && name !== account && { name }),
        ...(limits.length > 0 && { limits }),
      });
    }
  return (of: SourceValue) =>
    ids.get(of.get("team_id").readText() ?? "") ?? ids.get(of.get("customer_id").readText() ?? "");
}

function importVirtualKey(
  key: SourceValue,
  accountOf: (of: SourceValue) => string | undefined,
  limitsOf: (of: SourceValue) => readonly string[],
): readonly ImportedKey[] {
  const value = key.get("value").readText();
  const name = key.get("name").readText() ?? key.get("id").readText();
  key.get("id").readValue();
  key.get("description").readValue();
  if (value === undefined) {
    key.report(
      "manual",
      "the config does not contain its value: create a new key with tollgate keys create",
    );
    return [];
  }
  const outside = parseVariable(value);
  if (outside !== undefined) {
    key.report(
      "manual",
      `its value is in ${outside}, which the import does not read: replace the reference with the value and import again, or create a new key (tollgate keys create)`,
    );
    return [];
  }
  const account = accountOf(key);
  const limits = limitsOf(key);
  const off = key.firstOf("is_active").readValue() === false;
  const configs = key.get("provider_configs").readList();
  const models = configs.flatMap((each) => {
    const provider = each.get("provider").readText() ?? "*";
    const allowed = each.get("allowed_models").readTexts();
    each.get("weight").readValue();
    each.get("id").readValue();
    const ids = each.get("key_ids").readTexts();
    if (ids.some((id) => id !== "*"))
      each
        .get("key_ids")
        .report("unsupported", "a client's key cannot select among the keys of a provider");
    return (allowed.length > 0 ? allowed : ["*"]).map((model) => `${provider}/${model}`);
  });
  if (configs.length > 1)
    key
      .get("provider_configs")
      .report(
        "approximate",
        "clients name the provider, as <provider>/<model>; weights are not imported",
      );
  return [
    {
      digest: createHash("sha256").update(value).digest("hex"),
      ...(name !== undefined && { name }),
      ...(account !== undefined && { account }),
      ...(models.length > 0 && { models }),
      ...(limits.length > 0 && { limits }),
      ...(off && { revoked: true }),
    },
  ];
}
