// Imports Portkey configs, which are trees of targets with a strategy each. A leaf is a provider,
// and an inner node becomes a model name of its own.
import type { ConfigDraft, DraftRoute } from "./config-draft.ts";
import type { Importer } from "./importer.ts";
import { importTarget } from "./portkey-target.ts";
import type { SourceValue } from "./source-value.ts";

/**
 * Imports a config.
 * @param name Model name that clients request.
 */
export const portkey: Importer = {
  name: "portkey",
  importConfig(said, draft, { modelName }) {
    importPortkey(said, draft, modelName);
    return [];
  },
};

function importPortkey(said: SourceValue, draft: ConfigDraft, name: string): void {
  const leaves = importNode(said, draft, { name, models: undefined });
  if (leaves.length > 0 && !draft.routes.has(name))
    draft.routes.set(name, { candidates: leaves.map((model) => ({ model })) });
}

interface NodeContext {
  readonly name: string;
  /** Model that a node above sets: "gpt-5". */
  readonly models: string | undefined;
}

/** Returns the candidates of a node. An inner node becomes a route of its own and one candidate. */
function importNode(said: SourceValue, draft: ConfigDraft, at: NodeContext): readonly string[] {
  const override = said.firstOf("override_params", "overrideParams");
  const model = override.get("model").readText() ?? at.models;
  for (const key of override.keys)
    if (key !== "model")
      override
        .get(key)
        .report(
          "manual",
          "a request default: set it with a middleware that has `prepare`, or in the client",
        );
  reportUnsupported(said);
  const targets = said.get("targets").readList();
  if (targets.length === 0) return importTarget(said, draft, model);
  const strategy = said.get("strategy");
  const mode = strategy.get("mode").readText() ?? "single";
  if (mode === "conditional") return importConditional(said, draft, { at, model });
  const candidates = targets.flatMap((each, i) => {
    const weight = mode === "loadbalance" ? toWeight(each.get("weight").readNumber()) : undefined;
    const found = importNode(each, draft, { name: `${at.name}.${i + 1}`, models: model });
    return found.flatMap((one) => flattenNode(each, draft, { model: one, weight }));
  });
  if (candidates.length === 0) return [];
  const route: DraftRoute = {
    candidates: mode === "single" ? candidates.slice(0, 1) : mergeCandidates(candidates),
    ...(mode === "loadbalance" && candidates.length > 1 && { pick: "weighted" }),
    ...readFallbackStatuses(strategy.firstOf("on_status_codes", "onStatusCodes")),
  };
  draft.routes.set(at.name, route);
  return [at.name];
}

/**
 * Imports a conditional node. Conditions have no equivalent, so the name leads to the default
 * target, and every target gets a name of its own.
 */
function importConditional(
  said: SourceValue,
  draft: ConfigDraft,
  { at, model }: { readonly at: NodeContext; readonly model: string | undefined },
): readonly string[] {
  const strategy = said.get("strategy");
  const usual = strategy.get("default").readText();
  strategy.report(
    "unsupported",
    `conditions on metadata are not evaluated: "${at.name}" uses the default target, and ${at.name}.<name> uses each target`,
  );
  let chosen: readonly string[] = [];
  for (const [i, each] of said.get("targets").readList().entries()) {
    const name = each.get("name").readText() ?? String(i + 1);
    const found = importNode(each, draft, { name: `${at.name}.${name}`, models: model });
    if (found.length > 0 && !draft.routes.has(`${at.name}.${name}`))
      draft.routes.set(`${at.name}.${name}`, { candidates: found.map((one) => ({ model: one })) });
    if (found.length > 0 && name === usual) chosen = [`${at.name}.${name}`];
  }
  return chosen;
}

/**
 * Flattens nested nodes. A nested node cannot be a candidate with a strategy of its own, so its
 * targets are added to the others.
 */
function flattenNode(
  said: SourceValue,
  draft: ConfigDraft,
  { model, weight }: { model: string; weight: number | undefined },
): DraftRoute["candidates"] {
  const inner = draft.routes.get(model);
  if (!inner) return [{ model, weight }];
  draft.routes.delete(model);
  const place = said.get("strategy").get("mode");
  if (inner.candidates.length > 1)
    place.report(
      "approximate",
      weight === undefined
        ? "these targets are tried in the written order, not by weight"
        : "fallback targets are tried after all targets with weights",
    );
  if (weight === undefined) return inner.candidates.map((each) => ({ model: each.model }));
  const all = inner.candidates.reduce((sum, each) => sum + (each.weight ?? 0), 0);
  return inner.candidates.map((each, i) => ({
    model: each.model,
    weight: all > 0 ? Math.round((weight * (each.weight ?? 0)) / all) : i === 0 ? weight : 0,
  }));
}

const toWeight = (weight: number | undefined): number => Math.round((weight ?? 1) * 100);

function mergeCandidates(candidates: DraftRoute["candidates"]): DraftRoute["candidates"] {
  const all = new Map<string, { model: string; weight?: number | undefined }>();
  for (const { model, weight } of candidates) {
    const same = all.get(model);
    if (!same) all.set(model, { model, ...(weight !== undefined && { weight }) });
    else if (weight !== undefined) same.weight = (same.weight ?? 0) + weight;
  }
  return [...all.values()];
}

const FAILURE_KINDS: readonly (readonly [(status: number) => boolean, string])[] = [
  [(status) => status === 429, "rate_limited"],
  [(status) => status === 401 || status === 403, "upstream_auth"],
  [(status) => status === 402, "upstream_quota"],
  [(status) => status === 408 || status === 504, "timeout"],
  [(status) => status === 503 || status === 529, "overloaded"],
  [(status) => status >= 500, "upstream"],
];

function readFallbackStatuses(said: SourceValue): { fallbackOn?: readonly string[] } {
  if (!said.exists) return {};
  const kinds = said.readTexts().map((text) => {
    const status = Number(text);
    return FAILURE_KINDS.find(([fits]) => fits(status))?.[1];
  });
  if (kinds.includes(undefined))
    said.report("approximate", "some of these are client errors, which no other target can fix");
  return { fallbackOn: [...new Set(kinds.filter((kind) => kind !== undefined))] };
}

function reportUnsupported(said: SourceValue): void {
  const rules = [
    ["cache", "responses are not cached; a middleware can be a cache (docs/plugins/middleware.md)"],
    ["input_guardrails", "guardrails are not built in"],
    ["output_guardrails", "guardrails are not built in"],
    ["before_request_hooks", "guardrails are not built in"],
    ["after_request_hooks", "guardrails are not built in"],
    ["forward_headers", "client headers are not forwarded; a middleware can set headers"],
  ] as const;
  for (const [key, message] of rules)
    if (said.get(key).exists) said.get(key).report("unsupported", message);
  const retry = said.get("retry");
  if (retry.exists)
    retry.report(
      "approximate",
      "`retries` sets the number of attempts per request; the gateway decides which " +
        "failures are retried",
    );
}
