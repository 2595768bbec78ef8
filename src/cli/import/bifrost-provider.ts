// A provider of Bifrost. Each of its keys may have an address of its own, which here makes a provider of its own.
import { seconds } from "./amounts.ts";
import { aws, azure, findSteps, vertex, type CloudProvider } from "./clouds.ts";
import type { Draft, DraftProvider } from "./draft.ts";
import { isOwnServer, knownProvider, needsBase } from "./known-providers.ts";
import type { Said } from "./said.ts";

/** `env.NAME`, or undefined for text that stands for itself. */
export const variable = (text: string): string | undefined => /^env\.(\w+)$/.exec(text)?.[1];

/** A provider that one or more keys share, with what clients may ask of it. */
interface Shared {
  readonly provider: DraftProvider;
  weight: number;
  /** Undefined: any model. */
  models: Set<string> | undefined;
  /** Names of its own for models: what clients ask for, and what is asked of the provider. */
  readonly aliases: Map<string, string>;
}

export function bifrostProvider(name: string, said: Said, draft: Draft): void {
  const custom = said.get("custom_provider_config");
  const known = knownProvider(custom.get("base_provider_type").text() ?? name);
  custom.take();
  const network = said.get("network_config");
  const base = network.get("base_url").text();
  if (known === undefined) {
    said.find("unsupported", `"${name}" is no provider that comes with the gateway`);
    said.take();
    return;
  }
  const shared = new Map<DraftProvider, Shared>();
  const keys = said.get("keys").list();
  const places = keys.map((key) => placeOf(key, { use: known, base, draft }));
  const many =
    new Set(places.map((place) => place && JSON.stringify([place.use, place.options]))).size > 1;
  for (const [i, key] of keys.entries())
    credential(key, places[i], { name: many ? `${name}-1` : undefined, draft, shared });
  if (keys.length === 0) withoutKeys(said, { use: known, base, draft, shared });
  settings(said, [...shared.keys()]);
  routes(name, said, [...shared.values()], draft);
}

interface Placed {
  readonly use: string;
  readonly base: string | undefined;
  readonly draft: Draft;
}

/** Bifrost adds the version to an address. */
function versioned(base: string, use: string): string {
  const bare = base.replace(/\/+$/, "");
  const own = ["anthropic", "google", "deepseek", "perplexity"].includes(use);
  return own || /\/v\d+(beta)?$/.test(bare) ? bare : `${bare}/v1`;
}

const read = (said: Said, key: string): string | undefined => {
  const text = said.get(key).text();
  const name = text === undefined ? undefined : variable(text);
  return name === undefined ? text : `\${env:${name}}`;
};

/** A key as gateway.yaml has it: a variable, or a file that gets what stood in the config. */
function secret(place: Said, name: string, draft: Draft): string | undefined {
  const text = place.text();
  if (text === undefined || text === "") return undefined;
  const named = variable(text);
  if (named !== undefined) return `\${env:${named}}`;
  place.find(
    "manual",
    "a key stood in the file; it is in a file of its own now (0600), and should be replaced",
  );
  return draft.secret(text, name);
}

/** Where a key is used, and its fields. Undefined: an address is missing, which is reported. */
function placeOf(key: Said, { use, base, draft }: Placed): CloudProvider | undefined {
  const value = secret(key.get("value"), `${use}-key`, draft);
  if (use === "aws") {
    const of = key.get("bedrock_key_config");
    of.get("arn").take();
    return aws({
      region: read(of, "region"),
      runtimeUrl: base,
      apiKey: value,
      accessKeyId: read(of, "access_key"),
      secretAccessKey: secret(of.get("secret_key"), "aws-secret", draft),
      sessionToken: secret(of.get("session_token"), "aws-session", draft),
    });
  }
  if (use === "vertex") {
    const of = key.get("vertex_key_config");
    of.get("project_number").take();
    return vertex({
      project: read(of, "project_id"),
      location: read(of, "region"),
      baseUrl: base,
      serviceAccount: secret(of.get("auth_credentials"), "vertex-account", draft),
      apiKey: value,
    });
  }
  if (use === "azure" || use === "azure-foundry") {
    const of = key.get("azure_key_config");
    of.get("api_version").take();
    const endpoint = read(of, "endpoint") ?? base;
    if (endpoint === undefined) {
      key.find(
        "unsupported",
        "azure needs the address of its resource (azure_key_config.endpoint)",
      );
      return undefined;
    }
    return azure({
      endpoint,
      apiKey: value,
      tenantId: read(of, "tenant_id"),
      clientId: read(of, "client_id"),
      clientSecret: secret(of.get("client_secret"), "azure-client", draft),
    });
  }
  const own = use === "openai" && base !== undefined ? "openai-compatible" : use;
  if (needsBase(own) && base === undefined) {
    key.find("unsupported", `${own} needs its address (network_config.base_url)`);
    return undefined;
  }
  return {
    use: own,
    options: base === undefined ? {} : { base_url: versioned(base, own) },
    fields: value === undefined ? undefined : { api_key: value },
  };
}

function credential(
  key: Said,
  place: CloudProvider | undefined,
  of: {
    readonly name: string | undefined;
    readonly draft: Draft;
    readonly shared: Map<DraftProvider, Shared>;
  },
): void {
  for (const rest of ["id", "name", "use_for_batch_api"]) key.get(rest).take();
  if (key.get("enabled").take() === false) return;
  const weight = Math.round((key.get("weight").number() ?? 1) * 100);
  const models = key.get("models").texts();
  const names = aliasesOf(key);
  if (key.get("blacklisted_models").texts().length > 0)
    key
      .get("blacklisted_models")
      .find(
        "unsupported",
        "a credential has a list of models that it may use, and none that it may not",
      );
  if (!place) return;
  const provider = of.draft.provider(place.use, place.options, of.name);
  if (provider.credentials.length === 0) findSteps(key, place);
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

/** `deployments` of a cloud's key, and `aliases`: what clients ask for → what is asked. */
function aliasesOf(key: Said): Map<string, string> {
  const found = new Map<string, string>();
  for (const place of [
    key.get("aliases"),
    key.get("azure_key_config").get("deployments"),
    key.get("bedrock_key_config").get("deployments"),
    key.get("vertex_key_config").get("deployments"),
  ])
    for (const name of place.keys) {
      const model = place.get(name).text();
      if (model !== undefined) found.set(name, model);
    }
  return found;
}

function withoutKeys(
  said: Said,
  { use, base, draft, shared }: Placed & { readonly shared: Map<DraftProvider, Shared> },
): void {
  const own = use === "openai" && base !== undefined ? "openai-compatible" : use;
  if (needsBase(own) && base === undefined)
    return said.find("unsupported", `${own} needs its address, which is not said here`);
  const provider = draft.provider(
    own,
    base === undefined ? {} : { base_url: versioned(base, own) },
  );
  if (!isOwnServer(own) && own !== "aws" && own !== "vertex")
    draft.credential(provider, `\${env:${own.toUpperCase().replaceAll("-", "_")}_API_KEY}`);
  shared.set(provider, { provider, weight: 100, models: undefined, aliases: new Map() });
}

function settings(said: Said, providers: readonly DraftProvider[]): void {
  const network = said.get("network_config");
  const timeout = network.get("default_request_timeout_in_seconds").number();
  if (timeout !== undefined)
    for (const made of providers) made.timeouts = { total: seconds(timeout) };
  for (const key of ["max_retries", "retry_backoff_initial", "retry_backoff_max"])
    if (network.get(key).isThere)
      network.get(key).find("approximate", "`attempts` says how often one request is tried");
  if (said.get("concurrency_and_buffer_size").isThere)
    said
      .get("concurrency_and_buffer_size")
      .find("exact", "not needed: overload: { concurrent } is of the whole process");
  if (said.get("proxy_config").isThere)
    said.get("proxy_config").find("manual", "proxy: { url: … } is of the whole gateway");
}

/** Clients ask for `<provider of Bifrost>/<model>`. */
function routes(name: string, said: Said, shared: readonly Shared[], draft: Draft): void {
  const [only] = shared;
  if (only === undefined) return;
  if (only.provider.name !== name)
    said.find(
      "approximate",
      `clients that ask for ${name}/<model> find it as ${shared.map(({ provider }) => `${provider.name}/<model>`).join(", ")}`,
    );
  const asked = new Set(
    shared.flatMap(({ models, aliases }) => [...(models ?? []), ...aliases.keys()]),
  );
  const candidatesOf = (model: string) =>
    shared
      .filter(({ models, aliases }) => !models || models.has(model) || aliases.has(model))
      .map(({ provider, weight, aliases }) => ({
        model: `${provider.name}/${aliases.get(model) ?? model}`,
        ...(shared.length > 1 && { weight }),
      }));
  for (const model of asked) {
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
