// Bifrost's config.json: providers with their keys, and what governance says of customers, teams and virtual keys.
import { digest } from "../../lib/key.ts";
import { parseDecimal } from "../../money/decimal.ts";
import { budgetOf, ratesOf, seconds } from "./amounts.ts";
import { slug, type Draft } from "./draft.ts";
import type { ImportedKey } from "./grantees.ts";
import { isOwnServer, knownProvider, needsBase } from "./known-providers.ts";
import type { Said } from "./said.ts";

export function bifrost(said: Said, draft: Draft): readonly ImportedKey[] {
  const providers = said.get("providers");
  for (const name of providers.keys) provider(name, providers.get(name), draft);
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
    ["client", "manual", "look at listen, overload and log: they say the same in other words"],
  ] as const;
  for (const [key, kind, message] of rules)
    if (said.get(key).isThere) said.get(key).find(kind, message);
  return keys;
}

const variable = (text: string): string | undefined => /^env\.(\w+)$/.exec(text)?.[1];

function provider(name: string, said: Said, draft: Draft): void {
  const custom = said.get("custom_provider_config");
  const network = said.get("network_config");
  const base = network.get("base_url").text();
  const known = knownProvider(custom.get("base_provider_type").text() ?? name);
  custom.take();
  const use = known === "openai" && base !== undefined ? "openai-compatible" : known;
  if (use === undefined || (needsBase(use) && base === undefined)) {
    const why =
      use === undefined
        ? `"${name}" is no provider that comes with the gateway`
        : `${use} needs its address (network_config.base_url)`;
    said.find("unsupported", why);
    return;
  }
  const made = draft.provider(use, base === undefined ? {} : { base_url: base });
  for (const key of said.get("keys").list()) credential(key, use, made, draft);
  if (made.credentials.length === 0 && !isOwnServer(use))
    draft.credential(made, `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`);
  const timeout = network.get("default_request_timeout_in_seconds").number();
  if (timeout !== undefined) made.timeouts = { total: seconds(timeout) };
  for (const key of ["max_retries", "retry_backoff_initial", "retry_backoff_max"])
    if (network.get(key).isThere)
      network.get(key).find("approximate", "`attempts` says how often one request is tried");
  if (said.get("concurrency_and_buffer_size").isThere)
    said
      .get("concurrency_and_buffer_size")
      .find("exact", "not needed: overload: { concurrent } is of the whole process");
  if (said.get("proxy_config").isThere)
    said.get("proxy_config").find("manual", "proxy: { url: … } is of the whole gateway");
  if (made.name !== name)
    said.find(
      "approximate",
      `clients that ask for ${name}/<model> find it as ${made.name}/<model>`,
    );
  if (made.name !== name)
    draft.routes.set(`${name}/*`, { candidates: [{ model: `${made.name}/*` }] });
}

function credential(
  key: Said,
  use: string,
  made: ReturnType<Draft["provider"]>,
  draft: Draft,
): void {
  const value = key.get("value");
  const text = value.text() ?? "";
  const name = variable(text);
  if (name === undefined && text !== "")
    value.find(
      "manual",
      "a key stood in the file; it is in a file of its own now (0600), and should be replaced",
    );
  const said =
    name === undefined
      ? text === ""
        ? undefined
        : draft.secret(text, `${use}-key`)
      : `\${env:${name}}`;
  const one = draft.credential(made, said);
  const weight = key.get("weight").number();
  if (weight !== undefined) one.weight = Math.round(weight * 100);
  for (const model of key.get("models").texts()) if (model !== "*") one.models.add(model);
  for (const rest of ["id", "name", "enabled"]) key.get(rest).take();
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
  const limitsOf = (of: Said): readonly Record<string, unknown>[] => {
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

function accounts(
  said: Said,
  draft: Draft,
  limitsOf: (of: Said) => readonly Record<string, unknown>[],
) {
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
  limitsOf: (of: Said) => readonly Record<string, unknown>[],
): readonly ImportedKey[] {
  const value = key.get("value").text();
  const name = key.get("name").text() ?? key.get("id").text();
  key.get("id").take();
  key.get("description").take();
  if (value === undefined) {
    key.find("manual", "its value is not here: tollgate keys create makes another");
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
    return (allowed.length > 0 ? allowed : ["*"]).map((model) => `${provider}/${model}`);
  });
  return [
    {
      digest: digest(value),
      ...(name !== undefined && { name }),
      ...(account !== undefined && { account }),
      ...(models.length > 0 && { models }),
      ...(limits.length > 0 && { limits: limits.map(counted) }),
      ...(off && { revoked: true }),
    },
  ];
}

/** As the store counts it: a budget in whole nano-dollars. */
const counted = (limit: Record<string, unknown>): Record<string, unknown> =>
  limit["unit"] === "usd"
    ? { ...limit, unit: "nano_usd", max: Number(parseDecimal(String(limit["max"]), 9)) }
    : limit;
