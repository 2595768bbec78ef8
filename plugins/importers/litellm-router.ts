// Imports LiteLLM's router settings: fallbacks and the routing strategy.
import type { ConfigDraft } from "./config-draft.ts";
import { reportStreamTimeout, toTimeouts } from "./litellm-model-metadata.ts";
import type { SourceValue } from "./source-value.ts";

/** Failures after which a route falls back if it does not set `fallback_on`. */
const DEFAULT_FAILURES = [
  "unsupported",
  "rate_limited",
  "overloaded",
  "timeout",
  "upstream",
  "upstream_auth",
  "upstream_quota",
];

const STRATEGIES: Readonly<Record<string, readonly [pick: string, exact: boolean]>> = {
  "simple-shuffle": ["weighted", true],
  "least-busy": ["fastest", false],
  "usage-based-routing": ["weighted", false],
  "usage-based-routing-v2": ["weighted", false],
  "latency-based-routing": ["fastest", true],
  "cost-based-routing": ["cheapest", true],
};

/**
 * Candidates of each name before fallbacks are added. Two names may fall back to each other, but a
 * route must not lead back to itself.
 */
type CandidatesByName = ReadonlyMap<string, readonly string[]>;

type OperationOf = (name: string) => string;

/**
 * Imports the router's settings.
 * @param kindOf Returns the operation of a name. All models of one name have the same operation.
 */
export function importRouterSettings(
  root: SourceValue,
  draft: ConfigDraft,
  kindOf: OperationOf,
): void {
  const router = root.get("router_settings");
  importStrategy(router.get("routing_strategy"), draft);
  const own: CandidatesByName = new Map(
    [...draft.routes].map(([name, { candidates }]) => [name, candidates.map(({ model }) => model)]),
  );
  for (const settings of [router, root.get("litellm_settings")]) {
    importFallbacks(settings.get("fallbacks"), draft, { own, kindOf, more: [] });
    importFallbacks(settings.get("context_window_fallbacks"), draft, {
      own,
      kindOf,
      more: ["context_length"],
    });
    importFallbacks(settings.get("content_policy_fallbacks"), draft, {
      own,
      kindOf,
      more: ["content_policy"],
    });
    importDefaultFallbacks(settings.get("default_fallbacks"), draft, { own, kindOf });
  }
  importAliases(router.get("model_group_alias"), draft);
  importTimeouts(router, draft);
  for (const key of [
    "allowed_fails",
    "cooldown_time",
    "retry_policy",
    "allowed_fails_policy",
    "retry_after",
  ])
    if (router.get(key).exists)
      router
        .get(key)
        .report(
          "approximate",
          "cooldowns follow the gateway's own rules (docs/guides/fallback.md)",
        );
  for (const key of [
    "redis_host",
    "redis_port",
    "redis_password",
    "redis_url",
    "cache_responses",
    "enable_pre_call_checks",
  ])
    if (router.get(key).exists)
      router
        .get(key)
        .report(
          "exact",
          "not needed: limits and budgets are exact across all processes without it",
        );
}

function importStrategy(said: SourceValue, draft: ConfigDraft): void {
  const name = said.readText();
  if (name === undefined) return;
  const known = STRATEGIES[name];
  if (!known)
    return said.report("unsupported", `no pick is equivalent to "${name}"; weighted is used`);
  const [pick, exact] = known;
  if (!exact) said.report("approximate", `pick: ${pick} is the closest equivalent`);
  for (const route of draft.routes.values())
    if (route.pick === "weighted") {
      route.pick = pick;
      if (pick !== "weighted") for (const each of route.candidates) delete each.weight;
    }
}

/** Imports a list of maps from a failed name to its fallbacks. */
function importFallbacks(
  said: SourceValue,
  draft: ConfigDraft,
  of: Pick<FallbackSource, "own" | "kindOf" | "more">,
): void {
  for (const each of said.readList())
    for (const name of each.keys) {
      const names = each.get(name).readTexts();
      addFallback(each.get(name), draft, { name, names, ...of });
    }
}

interface FallbackSource {
  readonly name: string;
  readonly names: readonly string[];
  /** Failures that `fallback_on` lists in addition to the default ones. */
  readonly more: readonly string[];
  readonly own: CandidatesByName;
  readonly kindOf: OperationOf;
}

function addFallback(
  said: SourceValue,
  draft: ConfigDraft,
  { name, names, more, own, kindOf }: FallbackSource,
): void {
  const route = draft.routes.get(name);
  if (!route) return said.report("unsupported", `fallback source not found: model "${name}"`);
  const missing = names.filter((each) => !isKnown(each, draft));
  if (missing.length > 0)
    said.report("unsupported", `fallback target not found: model ${missing.join(", ")}`);
  const strange = names.filter((each) => !missing.includes(each) && kindOf(each) !== kindOf(name));
  if (strange.length > 0)
    said.report(
      "unsupported",
      `"${name}" (${kindOf(name)}) cannot fall back to ${strange.map((each) => `"${each}" (${kindOf(each)})`).join(", ")}`,
    );
  const others = names
    .filter((each) => !missing.includes(each) && !strange.includes(each) && each !== name)
    .flatMap((each) => own.get(each) ?? [each]);
  const before = route.fallbackOn;
  for (const other of others)
    if (!route.candidates.some(({ model }) => model === other))
      route.candidates.push({ model: other });
  // Tollgate has one list of fallbacks for all kinds of failure.
  if (more.length > 0) {
    const first = before === undefined && route.comment !== "fallbacks";
    route.fallbackOn = [...new Set([...(before ?? (first ? [] : DEFAULT_FAILURES)), ...more])];
    if (!first || before !== undefined)
      said.report(
        "approximate",
        "one list of candidates applies to all failures that `fallback_on` names",
      );
  } else {
    if (before !== undefined) route.fallbackOn = [...new Set([...DEFAULT_FAILURES, ...before])];
    route.comment = "fallbacks";
  }
  // Fallbacks get no weight.
  if (route.pick === "weighted")
    for (const one of route.candidates) if (others.includes(one.model)) one.weight = 0;
}

const isKnown = (name: string, draft: ConfigDraft): boolean =>
  draft.routes.has(name) || draft.providers.has(name.slice(0, Math.max(0, name.indexOf("/"))));

function importDefaultFallbacks(
  said: SourceValue,
  draft: ConfigDraft,
  { own, kindOf }: Pick<FallbackSource, "own" | "kindOf">,
): void {
  const names = said.readTexts();
  if (names.length === 0) return;
  said.report("approximate", "added to every name of the same model type that has no fallbacks");
  for (const [name, route] of draft.routes) {
    const fitting = names.filter((each) => kindOf(each) === kindOf(name));
    if (fitting.length === 0 || route.comment === "fallbacks") continue;
    if (!names.includes(name) && !name.includes("*"))
      addFallback(said, draft, { name, names: fitting, more: [], own, kindOf });
  }
}

function importAliases(said: SourceValue, draft: ConfigDraft): void {
  for (const alias of said.keys) {
    const to = said.get(alias);
    const name = to.readText() ?? to.get("model").readText();
    to.get("hidden").readValue();
    if (name === undefined || !isKnown(name, draft))
      to.report("unsupported", `model "${name}" not found`);
    else draft.routes.set(alias, { candidates: [{ model: name }] });
  }
}

function importTimeouts(router: SourceValue, draft: ConfigDraft): void {
  const stream = router.get("stream_timeout");
  const made = toTimeouts(router.get("timeout").readNumber(), stream.readNumber());
  if (made !== undefined) draft.settings["timeouts"] = made;
  reportStreamTimeout(stream);
  const retries = router.get("num_retries");
  const count = retries.readNumber();
  if (count === undefined) return;
  retries.report(
    "approximate",
    "sets the number of calls per request; the gateway decides which failures are retried",
  );
  const calls = Math.min(10, Math.max(1, Math.round(count) + 1));
  draft.settings["retries"] = { per_target: Math.min(2, calls), total: calls };
}
