// Imports a provider of Bifrost. Keys may have separate addresses, and each address becomes a
// separate provider.
import { formatSeconds } from "./amounts.ts";
import {
  awsProvider,
  azureProvider,
  reportManualSteps,
  vertexProvider,
  type CloudProvider,
} from "./clouds.ts";
import type { ConfigDraft, DraftProvider } from "./config-draft.ts";
import { isSelfHosted, needsBaseUrl } from "./known-providers.ts";
import type { SourceValue } from "./source-value.ts";

/** Returns the name in `env.NAME`, or undefined for literal text. */
export const parseVariable = (text: string): string | undefined => /^env\.(\w+)$/.exec(text)?.[1];

/** A provider that one or more keys share, with the models that clients may request. */
interface SharedProvider {
  readonly provider: DraftProvider;
  weight: number;
  /** Allowed models. Undefined allows every model. */
  models: Set<string> | undefined;
  /** Aliases of models: the name that clients request → the name that is sent to the provider. */
  readonly aliases: Map<string, string>;
}

export function importBifrostProvider(
  name: string,
  providerConfig: SourceValue,
  draft: ConfigDraft,
): void {
  const custom = providerConfig.get("custom_provider_config");
  const known = draft.findProvider(custom.get("base_provider_type").readText() ?? name);
  custom.readValue();
  const network = providerConfig.get("network_config");
  const base = network.get("base_url").readText();
  if (known === undefined) {
    providerConfig.report("unsupported", `"${name}" is not a built-in provider`);
    providerConfig.readValue();
    return;
  }
  const shared = new Map<DraftProvider, SharedProvider>();
  const keys = providerConfig.get("keys").readList();
  const places = keys.map((key) => toCloudProvider(key, { use: known, base, draft }));
  const many =
    new Set(places.map((place) => place && JSON.stringify([place.use, place.options]))).size > 1;
  for (const [i, key] of keys.entries())
    importCredential(key, places[i], { name: many ? `${name}-1` : undefined, draft, shared });
  if (keys.length === 0) importWithoutKeys(providerConfig, { use: known, base, draft, shared });
  importSettings(providerConfig, [...shared.keys()]);
  importRoutes(name, providerConfig, [...shared.values()], draft);
}

interface ProviderPlacement {
  readonly use: string;
  readonly base: string | undefined;
  readonly draft: ConfigDraft;
}

/** Adds the API version to an address, as Bifrost does. */
function withVersion(base: string, use: string): string {
  const bare = base.replace(/\/+$/, "");
  const own = ["anthropic", "google", "deepseek", "perplexity"].includes(use);
  return own || /\/v\d+(beta)?$/.test(bare) ? bare : `${bare}/v1`;
}

const readField = (parent: SourceValue, key: string): string | undefined => {
  const text = parent.get(key).readText();
  const name = text === undefined ? undefined : parseVariable(text);
  return name === undefined ? text : `\${env:${name}}`;
};

/**
 * Returns a key for gateway.yaml: a reference to a variable, or to a new file that contains the
 * literal key.
 */
function importSecret(place: SourceValue, name: string, draft: ConfigDraft): string | undefined {
  const text = place.readText();
  if (text === undefined || text === "") return undefined;
  const named = parseVariable(text);
  if (named !== undefined) return `\${env:${named}}`;
  place.report(
    "manual",
    "the config contained a key; it is now in a separate file (mode 0600) and should " +
      "be replaced",
  );
  return draft.secret(text, name);
}

/**
 * Returns the cloud provider of a key. Returns undefined after reporting it if an address is
 * missing.
 */
function toCloudProvider(
  key: SourceValue,
  { use, base, draft }: ProviderPlacement,
): CloudProvider | undefined {
  const value = importSecret(key.get("value"), `${use}-key`, draft);
  if (use === "aws") {
    const of = key.get("bedrock_key_config");
    of.get("arn").readValue();
    return awsProvider({
      region: readField(of, "region"),
      runtimeUrl: base,
      apiKey: value,
      accessKeyId: readField(of, "access_key"),
      secretAccessKey: importSecret(of.get("secret_key"), "aws-secret", draft),
      sessionToken: importSecret(of.get("session_token"), "aws-session", draft),
    });
  }
  if (use === "vertex") {
    const of = key.get("vertex_key_config");
    of.get("project_number").readValue();
    return vertexProvider({
      project: readField(of, "project_id"),
      location: readField(of, "region"),
      baseUrl: base,
      serviceAccount: importSecret(of.get("auth_credentials"), "vertex-account", draft),
      apiKey: value,
    });
  }
  if (use === "azure" || use === "azure-foundry") {
    const of = key.get("azure_key_config");
    of.get("api_version").readValue();
    const endpoint = readField(of, "endpoint") ?? base;
    if (endpoint === undefined) {
      key.report(
        "unsupported",
        "azure requires the endpoint of its resource (azure_key_config.endpoint)",
      );
      return undefined;
    }
    return azureProvider({
      endpoint,
      apiKey: value,
      tenantId: readField(of, "tenant_id"),
      clientId: readField(of, "client_id"),
      clientSecret: importSecret(of.get("client_secret"), "azure-client", draft),
    });
  }
  const own = use === "openai" && base !== undefined ? "openai-compatible" : use;
  if (needsBaseUrl(own) && base === undefined) {
    key.report("unsupported", `${own} requires a base URL (network_config.base_url)`);
    return undefined;
  }
  return {
    use: own,
    options: base === undefined ? {} : { base_url: withVersion(base, own) },
    fields: value === undefined ? undefined : { api_key: value },
  };
}

function importCredential(
  key: SourceValue,
  place: CloudProvider | undefined,
  of: {
    readonly name: string | undefined;
    readonly draft: ConfigDraft;
    readonly shared: Map<DraftProvider, SharedProvider>;
  },
): void {
  for (const rest of ["id", "name", "use_for_batch_api"]) key.get(rest).readValue();
  if (key.get("enabled").readValue() === false) return;
  const weight = Math.round((key.get("weight").readNumber() ?? 1) * 100);
  const models = key.get("models").readTexts();
  const names = readAliases(key);
  if (key.get("blacklisted_models").readTexts().length > 0)
    key
      .get("blacklisted_models")
      .report(
        "unsupported",
        "a credential can list the models that it may use, but not models that it may not use",
      );
  if (!place) return;
  const provider = of.draft.provider(place.use, place.options, of.name);
  if (provider.credentials.length === 0) reportManualSteps(key, place);
  const one = of.draft.credential(provider, place.fields);
  one.weight = weight;
  const any = models.length === 0 || models.includes("*");
  for (const model of any ? [] : models) one.models.add(names.get(model) ?? model);
  const known = of.shared.get(provider) ?? {
    provider,
    weight: 0,
    models: new Set(),
    aliases: new Map(),
  };
  known.weight += weight;
  if (any) known.models = undefined;
  else for (const model of models) known.models?.add(model);
  for (const [name, model] of names) known.aliases.set(name, model);
  of.shared.set(provider, known);
}

/**
 * Reads `deployments` of a cloud key, and `aliases`: a map from the name that clients request to
 * the name that is sent.
 */
function readAliases(key: SourceValue): Map<string, string> {
  const found = new Map<string, string>();
  for (const place of [
    key.get("aliases"),
    key.get("azure_key_config").get("deployments"),
    key.get("bedrock_key_config").get("deployments"),
    key.get("vertex_key_config").get("deployments"),
  ])
    for (const name of place.keys) {
      const model = place.get(name).readText();
      if (model !== undefined) found.set(name, model);
    }
  return found;
}

function importWithoutKeys(
  providerConfig: SourceValue,
  {
    use,
    base,
    draft,
    shared,
  }: ProviderPlacement & { readonly shared: Map<DraftProvider, SharedProvider> },
): void {
  const own = use === "openai" && base !== undefined ? "openai-compatible" : use;
  if (needsBaseUrl(own) && base === undefined)
    return providerConfig.report(
      "unsupported",
      `${own} requires a base URL, which this config does not set`,
    );
  const provider = draft.provider(
    own,
    base === undefined ? {} : { base_url: withVersion(base, own) },
  );
  if (!isSelfHosted(own) && own !== "aws" && own !== "vertex")
    draft.credential(provider, `\${env:${own.toUpperCase().replaceAll("-", "_")}_API_KEY}`);
  shared.set(provider, { provider, weight: 100, models: undefined, aliases: new Map() });
}

function importSettings(providerConfig: SourceValue, providers: readonly DraftProvider[]): void {
  const network = providerConfig.get("network_config");
  const timeout = network.get("default_request_timeout_in_seconds").readNumber();
  if (timeout !== undefined)
    for (const made of providers) made.timeouts = { total: formatSeconds(timeout) };
  for (const key of ["max_retries", "retry_backoff_initial", "retry_backoff_max"])
    if (network.get(key).exists)
      network.get(key).report("approximate", "`attempts` sets the number of attempts per request");
  if (providerConfig.get("concurrency_and_buffer_size").exists)
    providerConfig
      .get("concurrency_and_buffer_size")
      .report("exact", "not needed: overload: { concurrent } applies to the whole process");
  if (providerConfig.get("proxy_config").exists)
    providerConfig
      .get("proxy_config")
      .report("manual", "proxy: { url: … } applies to the whole gateway");
}

/** Imports routes for the names that clients use: `<provider of Bifrost>/<model>`. */
function importRoutes(
  name: string,
  providerConfig: SourceValue,
  shared: readonly SharedProvider[],
  draft: ConfigDraft,
): void {
  const [only] = shared;
  if (only === undefined) return;
  if (only.provider.name !== name)
    providerConfig.report(
      "approximate",
      `clients that request ${name}/<model> must now use ${shared.map(({ provider }) => `${provider.name}/<model>`).join(", ")}`,
    );
  const requestedModels = new Set(
    shared.flatMap(({ models, aliases }) => [...(models ?? []), ...aliases.keys()]),
  );
  const candidatesOf = (model: string) =>
    shared
      .filter(({ models, aliases }) => !models || models.has(model) || aliases.has(model))
      .map(({ provider, weight, aliases }) => ({
        model: `${provider.name}/${aliases.get(model) ?? model}`,
        ...(shared.length > 1 && { weight }),
      }));
  for (const model of requestedModels) {
    const candidates = candidatesOf(model);
    if (candidates.length === 1 && candidates[0]!.model === `${name}/${model}`) continue;
    draft.routes.set(`${name}/${model}`, {
      candidates: candidates.length === 1 ? [{ model: candidates[0]!.model }] : candidates,
      ...(candidates.length > 1 && { pick: "weighted" }),
    });
  }
  const any = shared.filter(({ models }) => models === undefined);
  if (any.length === 0 || (shared.length === 1 && only.provider.name === name)) return;
  const candidates = any.map(({ provider, weight }) => ({ model: `${provider.name}/*`, weight }));
  draft.routes.set(
    `${name}/*`,
    candidates.length === 1
      ? { candidates: [{ model: candidates[0]!.model }] }
      : { candidates, pick: "weighted" },
  );
}
