// Imports Portkey configs, which are trees of targets with a strategy each. A leaf is a provider,
// and an inner node becomes a separate model name.
import type { ConfigDraft, DraftRoute, Importer } from "./config-draft.ts";
import type { SourceValue } from "./source-value.ts";
import { formatSeconds } from "./amounts.ts";
import {
  awsProvider,
  azureProvider,
  reportManualSteps,
  vertexProvider,
  type CloudProvider,
} from "./clouds.ts";
import { isSelfHosted, needsBaseUrl } from "./known-providers.ts";

/**
 * Imports a config.
 * @param name Model name that clients request.
 */
export const portkey: Importer = {
  name: "portkey",
  importConfig(source, draft, { modelName }) {
    importPortkey(source, draft, modelName);
    return [];
  },
};

function importPortkey(source: SourceValue, draft: ConfigDraft, name: string): void {
  const leaves = importNode(source, draft, { name, models: undefined });
  if (leaves.length > 0 && !draft.routes.has(name))
    draft.routes.set(name, { candidates: leaves.map((model) => ({ model })) });
}

interface NodeContext {
  readonly name: string;
  /** Model that a node above sets: "gpt-5". */
  readonly models: string | undefined;
}

/**
 * Returns the candidates of a node. An inner node becomes a separate route and is one candidate.
 */
function importNode(node: SourceValue, draft: ConfigDraft, at: NodeContext): readonly string[] {
  const override = node.firstOf("override_params", "overrideParams");
  const model = override.get("model").readText() ?? at.models;
  for (const key of override.keys)
    if (key !== "model")
      override
        .get(key)
        .report(
          "manual",
          "a request default: set it with a middleware that has `prepare`, or in the client",
        );
  reportUnsupported(node);
  const targets = node.get("targets").readList();
  if (targets.length === 0) return importTarget(node, draft, model);
  const strategy = node.get("strategy");
  const mode = strategy.get("mode").readText() ?? "single";
  if (mode === "conditional") return importConditional(node, draft, { at, model });
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
 * Imports a conditional node. Conditions have no equivalent, so the name is mapped to the default
 * target, and every target gets a separate name.
 */
function importConditional(
  node: SourceValue,
  draft: ConfigDraft,
  { at, model }: { readonly at: NodeContext; readonly model: string | undefined },
): readonly string[] {
  const strategy = node.get("strategy");
  const usual = strategy.get("default").readText();
  strategy.report(
    "unsupported",
    `conditions on metadata are not evaluated: "${at.name}" uses the default target, and ${at.name}.<name> uses each target`,
  );
  let chosen: readonly string[] = [];
  for (const [i, each] of node.get("targets").readList().entries()) {
    const name = each.get("name").readText() ?? String(i + 1);
    const found = importNode(each, draft, { name: `${at.name}.${name}`, models: model });
    if (found.length > 0 && !draft.routes.has(`${at.name}.${name}`))
      draft.routes.set(`${at.name}.${name}`, { candidates: found.map((one) => ({ model: one })) });
    if (found.length > 0 && name === usual) chosen = [`${at.name}.${name}`];
  }
  return chosen;
}

/**
 * Flattens nested nodes. A nested node cannot be a candidate with its own strategy, so its targets
 * are added to the others.
 */
function flattenNode(
  target: SourceValue,
  draft: ConfigDraft,
  { model, weight }: { model: string; weight: number | undefined },
): DraftRoute["candidates"] {
  const inner = draft.routes.get(model);
  if (!inner) return [{ model, weight }];
  draft.routes.delete(model);
  const place = target.get("strategy").get("mode");
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

function readFallbackStatuses(statuses: SourceValue): { fallbackOn?: readonly string[] } {
  if (!statuses.exists) return {};
  const kinds = statuses.readTexts().map((text) => {
    const status = Number(text);
    return FAILURE_KINDS.find(([fits]) => fits(status))?.[1];
  });
  if (kinds.includes(undefined))
    statuses.report(
      "approximate",
      "some of these are client errors, which no other target can fix",
    );
  return { fallbackOn: [...new Set(kinds.filter((kind) => kind !== undefined))] };
}

function reportUnsupported(node: SourceValue): void {
  const rules = [
    ["cache", "responses are not cached; a middleware can be a cache (docs/plugins/middleware.md)"],
    ["input_guardrails", "guardrails are not built in"],
    ["output_guardrails", "guardrails are not built in"],
    ["before_request_hooks", "guardrails are not built in"],
    ["after_request_hooks", "guardrails are not built in"],
    ["forward_headers", "client headers are not forwarded; a middleware can set headers"],
  ] as const;
  for (const [key, message] of rules)
    if (node.get(key).exists) node.get(key).report("unsupported", message);
  const retry = node.get("retry");
  if (retry.exists)
    retry.report(
      "approximate",
      "`retries` sets the number of attempts per request; the gateway decides which " +
        "failures are retried",
    );
}

// Imports a target of a Portkey config: a provider with its credential and model.

/**
 * Imports a target. If it names no model, every model of the provider is allowed, and clients
 * request <provider>/<model>.
 */
function importTarget(
  target: SourceValue,
  draft: ConfigDraft,
  model: string | undefined,
): readonly string[] {
  const virtual = target.firstOf("virtual_key", "virtualKey");
  const named = target.get("provider").readText();
  const word = named?.replace(/^@/, "") ?? virtual.readText();
  const base = target.firstOf("custom_host", "customHost").readText();
  target.get("name").readValue();
  const use = word === undefined ? undefined : findProviderType(word, draft);
  if (word === undefined && base === undefined) {
    if (target.keys.length > 0) target.report("unsupported", "the provider is missing");
    return [];
  }
  if (use === undefined && base === undefined) {
    target
      .firstOf("provider", "virtual_key")
      .report("unsupported", `"${word}" is not a built-in provider`);
    return [];
  }
  const cloud = use === undefined ? undefined : toCloudProvider(target, draft, { use, base });
  if (!cloud && use !== undefined && needsBaseUrl(use) && base === undefined) {
    target
      .firstOf("provider", "virtual_key", "virtualKey")
      .report(
        "unsupported",
        `${use} requires a base URL (custom_host), which this config does not set`,
      );
    target.readValue();
    return [];
  }
  if (use !== undefined && (named === undefined || named.startsWith("@")))
    target
      .firstOf("provider", "virtual_key", "virtualKey")
      .report(
        "approximate",
        `"${word}" is a name in Portkey's vault: ${use} is guessed from the name`,
      );
  const own = use === undefined || (use === "openai" && base !== undefined);
  const provider = cloud
    ? draft.provider(cloud.use, cloud.options)
    : draft.provider(own ? "openai-compatible" : use, base === undefined ? {} : { base_url: base });
  if (cloud && provider.credentials.length === 0) reportManualSteps(target, cloud);
  draft.credential(
    provider,
    cloud && virtual.readText() === undefined
      ? cloud.fields
      : readKey(target, virtual, provider.use, draft),
  );
  const timeout = target.firstOf("request_timeout", "requestTimeout").readNumber();
  if (timeout !== undefined) provider.timeouts ??= { total: formatSeconds(timeout / 1_000) };
  target.get("weight").readValue();
  const deployed = target.firstOf("deployment_id", "azure_deployment_id").readText();
  const targetModel = model ?? deployed;
  if (targetModel === undefined) {
    target.report("manual", `the client selects the model: it requests ${provider.name}/<model>`);
    return [];
  }
  return [`${provider.name}/${targetModel}`];
}

/**
 * Finds a provider by the whole name, or by its prefix, because virtual keys are often named after
 * their provider.
 */
function findProviderType(word: string, draft: ConfigDraft): string | undefined {
  const parts = word.toLowerCase().split(/[-_]/);
  return (
    draft.findProvider(word) ??
    draft.findProvider(parts.slice(0, 2).join("-")) ??
    (parts[0] === "open" && parts[1] === "ai" ? "openai" : draft.findProvider(parts[0]!))
  );
}

/**
 * Returns the cloud provider that a target describes. Returns undefined if it is not a cloud or its
 * address is missing.
 */
function toCloudProvider(
  target: SourceValue,
  draft: ConfigDraft,
  { use, base }: { readonly use: string; readonly base: string | undefined },
): CloudProvider | undefined {
  const text = (...keys: readonly string[]) => target.firstOf(...keys).readText();
  const secret = (key: string, camel: string, name: string) => {
    const place = target.firstOf(key, camel);
    const written = place.readText();
    return written === undefined ? undefined : storeSecret(place, written, name, draft);
  };
  if (use === "aws")
    return awsProvider({
      region: text("aws_region", "awsRegion"),
      runtimeUrl: base,
      apiKey: secret("api_key", "apiKey", "aws-key"),
      accessKeyId: text("aws_access_key_id", "awsAccessKeyId"),
      secretAccessKey: secret("aws_secret_access_key", "awsSecretAccessKey", "aws-secret"),
      sessionToken: secret("aws_session_token", "awsSessionToken", "aws-session"),
    });
  if (use === "vertex")
    return vertexProvider({
      project: text("vertex_project_id", "vertexProjectId"),
      location: text("vertex_region", "vertexRegion"),
      baseUrl: base,
      serviceAccount: readServiceAccount(
        target.firstOf("vertex_service_account_json", "vertexServiceAccountJson"),
        draft,
      ),
      apiKey: undefined,
    });
  const resource = text("resource_name", "azure_resource_name", "resourceName");
  if ((use !== "azure" && use !== "azure-foundry") || (resource ?? base) === undefined)
    return undefined;
  text("api_version", "azure_api_version", "apiVersion");
  return azureProvider(
    {
      endpoint: base ?? `https://${resource}.openai.azure.com`,
      apiKey: secret("api_key", "apiKey", "azure-key"),
    },
    use === "azure-foundry",
  );
}

/** Reads a service account, which the config contains as an object. */
function readServiceAccount(place: SourceValue, draft: ConfigDraft): string | undefined {
  const value = place.readValue();
  if (value === undefined) return undefined;
  const written = typeof value === "string" ? value : JSON.stringify(value);
  return storeSecret(place, written, "vertex-account", draft);
}

function storeSecret(place: SourceValue, text: string, name: string, draft: ConfigDraft): string {
  place.report(
    "manual",
    "the config contained a key; it is now in a separate file (mode 0600) and should " +
      "be replaced",
  );
  return draft.secret(text, name);
}

function readKey(
  target: SourceValue,
  virtual: SourceValue,
  use: string,
  draft: ConfigDraft,
): string | undefined {
  const place = target.firstOf("api_key", "apiKey");
  const text = place.readText();
  const slug = virtual.readText();
  if (slug !== undefined) {
    const variable = `${slug.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_KEY`;
    virtual.report("manual", `the virtual key's value is in Portkey's vault: set ${variable}`);
    return `\${env:${variable}}`;
  }
  if (text !== undefined) {
    return storeSecret(place, text, `${use}-key`, draft);
  }
  return isSelfHosted(use)
    ? undefined
    : `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`;
}
