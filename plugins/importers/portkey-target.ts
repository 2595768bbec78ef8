// Imports a target of a Portkey config: a provider with its credential and model.
import { formatSeconds } from "./amounts.ts";
import {
  awsProvider,
  azureProvider,
  reportManualSteps,
  vertexProvider,
  type CloudProvider,
} from "./clouds.ts";
import type { ConfigDraft } from "./config-draft.ts";
import { isSelfHosted, needsBaseUrl } from "./known-providers.ts";
import type { SourceValue } from "./source-value.ts";

/**
 * Imports a target. If it names no model, every model of the provider is allowed, and clients
 * request <provider>/<model>.
 */
export function importTarget(
  said: SourceValue,
  draft: ConfigDraft,
  model: string | undefined,
): readonly string[] {
  const virtual = said.firstOf("virtual_key", "virtualKey");
  const named = said.get("provider").readText();
  const word = named?.replace(/^@/, "") ?? virtual.readText();
  const base = said.firstOf("custom_host", "customHost").readText();
  said.get("name").readValue();
  const use = word === undefined ? undefined : findProviderType(word, draft);
  if (word === undefined && base === undefined) {
    if (said.keys.length > 0) said.report("unsupported", "the provider is missing");
    return [];
  }
  if (use === undefined && base === undefined) {
    said
      .firstOf("provider", "virtual_key")
      .report("unsupported", `"${word}" is not a built-in provider`);
    return [];
  }
  const cloud = use === undefined ? undefined : toCloudProvider(said, draft, { use, base });
  if (!cloud && use !== undefined && needsBaseUrl(use) && base === undefined) {
    said
      .firstOf("provider", "virtual_key", "virtualKey")
      .report(
        "unsupported",
        `${use} requires a base URL (custom_host), which this config does not set`,
      );
    said.readValue();
    return [];
  }
  if (use !== undefined && (named === undefined || named.startsWith("@")))
    said
      .firstOf("provider", "virtual_key", "virtualKey")
      .report(
        "approximate",
        `"${word}" is a name in Portkey's vault: ${use} is guessed from the name`,
      );
  const own = use === undefined || (use === "openai" && base !== undefined);
  const provider = cloud
    ? draft.provider(cloud.use, cloud.options)
    : draft.provider(own ? "openai-compatible" : use, base === undefined ? {} : { base_url: base });
  if (cloud && provider.credentials.length === 0) reportManualSteps(said, cloud);
  draft.credential(
    provider,
    cloud && virtual.readText() === undefined
      ? cloud.fields
      : readKey(said, virtual, provider.use, draft),
  );
  const timeout = said.firstOf("request_timeout", "requestTimeout").readNumber();
  if (timeout !== undefined) provider.timeouts ??= { total: formatSeconds(timeout / 1_000) };
  said.get("weight").readValue();
  const deployed = said.firstOf("deployment_id", "azure_deployment_id").readText();
  const asked = model ?? deployed;
  if (asked === undefined) {
    said.report("manual", `the client selects the model: it requests ${provider.name}/<model>`);
    return [];
  }
  return [`${provider.name}/${asked}`];
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
  said: SourceValue,
  draft: ConfigDraft,
  { use, base }: { readonly use: string; readonly base: string | undefined },
): CloudProvider | undefined {
  const text = (...keys: readonly string[]) => said.firstOf(...keys).readText();
  const secret = (key: string, camel: string, name: string) => {
    const place = said.firstOf(key, camel);
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
        said.firstOf("vertex_service_account_json", "vertexServiceAccountJson"),
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
  said: SourceValue,
  virtual: SourceValue,
  use: string,
  draft: ConfigDraft,
): string | undefined {
  const place = said.firstOf("api_key", "apiKey");
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
