// A target of Portkey's configs: a provider with its credential, and the model that is asked of it.
import { seconds } from "./amounts.ts";
import { aws, azure, findSteps, vertex, type CloudProvider } from "./clouds.ts";
import type { Draft } from "./draft.ts";
import { isOwnServer, knownProvider, needsBase } from "./known-providers.ts";
import type { Said } from "./said.ts";

/** Any model of it, where none is said: clients name theirs as <provider>/<model>. */
export function leaf(said: Said, draft: Draft, model: string | undefined): readonly string[] {
  const virtual = said.any("virtual_key", "virtualKey");
  const named = said.get("provider").text();
  const word = named?.replace(/^@/, "") ?? virtual.text();
  const base = said.any("custom_host", "customHost").text();
  said.get("name").take();
  const use = word === undefined ? undefined : useOf(word);
  if (word === undefined && base === undefined) {
    if (said.keys.length > 0) said.find("unsupported", "it names no provider");
    return [];
  }
  if (use === undefined && base === undefined) {
    said
      .any("provider", "virtual_key")
      .find("unsupported", `"${word}" is no provider that comes with the gateway`);
    return [];
  }
  const cloud = use === undefined ? undefined : onCloud(said, draft, { use, base });
  if (!cloud && use !== undefined && needsBase(use) && base === undefined) {
    said
      .any("provider", "virtual_key", "virtualKey")
      .find("unsupported", `${use} needs its address (custom_host), which is not said here`);
    said.take();
    return [];
  }
  if (use !== undefined && (named === undefined || named.startsWith("@")))
    said
      .any("provider", "virtual_key", "virtualKey")
      .find(
        "approximate",
        `"${word}" is a name in its vault: that it is ${use} is guessed from the name`,
      );
  const own = use === undefined || (use === "openai" && base !== undefined);
  const provider = cloud
    ? draft.provider(cloud.use, cloud.options)
    : draft.provider(own ? "openai-compatible" : use, base === undefined ? {} : { base_url: base });
  if (cloud && provider.credentials.length === 0) findSteps(said, cloud);
  draft.credential(
    provider,
    cloud && virtual.text() === undefined
      ? cloud.fields
      : keyOf(said, virtual, provider.use, draft),
  );
  const timeout = said.any("request_timeout", "requestTimeout").number();
  if (timeout !== undefined) provider.timeouts ??= { total: seconds(timeout / 1_000) };
  said.get("weight").take();
  const deployed = said.any("deployment_id", "azure_deployment_id").text();
  const asked = model ?? deployed;
  if (asked === undefined) {
    said.find("manual", `which model is the client's to say: it asks for ${provider.name}/<model>`);
    return [];
  }
  return [`${provider.name}/${asked}`];
}

/** By the whole word, or by its beginning: virtual keys are often named after their provider. */
function useOf(word: string): string | undefined {
  const parts = word.toLowerCase().split(/[-_]/);
  return (
    knownProvider(word) ??
    knownProvider(parts.slice(0, 2).join("-")) ??
    (parts[0] === "open" && parts[1] === "ai" ? "openai" : knownProvider(parts[0]!))
  );
}

/** A cloud's account, as a target states it. Undefined: it is no cloud, or its address is missing. */
function onCloud(
  said: Said,
  draft: Draft,
  { use, base }: { readonly use: string; readonly base: string | undefined },
): CloudProvider | undefined {
  const text = (...keys: readonly string[]) => said.any(...keys).text();
  const secret = (key: string, camel: string, name: string) => {
    const place = said.any(key, camel);
    const written = place.text();
    return written === undefined ? undefined : stored(place, written, name, draft);
  };
  if (use === "aws")
    return aws({
      region: text("aws_region", "awsRegion"),
      runtimeUrl: base,
      apiKey: secret("api_key", "apiKey", "aws-key"),
      accessKeyId: text("aws_access_key_id", "awsAccessKeyId"),
      secretAccessKey: secret("aws_secret_access_key", "awsSecretAccessKey", "aws-secret"),
      sessionToken: secret("aws_session_token", "awsSessionToken", "aws-session"),
    });
  if (use === "vertex")
    return vertex({
      project: text("vertex_project_id", "vertexProjectId"),
      location: text("vertex_region", "vertexRegion"),
      baseUrl: base,
      serviceAccount: accountOf(
        said.any("vertex_service_account_json", "vertexServiceAccountJson"),
        draft,
      ),
      apiKey: undefined,
    });
  const resource = text("resource_name", "azure_resource_name", "resourceName");
  if ((use !== "azure" && use !== "azure-foundry") || (resource ?? base) === undefined)
    return undefined;
  text("api_version", "azure_api_version", "apiVersion");
  return azure(
    {
      endpoint: base ?? `https://${resource}.openai.azure.com`,
      apiKey: secret("api_key", "apiKey", "azure-key"),
    },
    use === "azure-foundry",
  );
}

/** A service account stands in the config as an object. */
function accountOf(place: Said, draft: Draft): string | undefined {
  const value = place.take();
  if (value === undefined) return undefined;
  const written = typeof value === "string" ? value : JSON.stringify(value);
  return stored(place, written, "vertex-account", draft);
}

function stored(place: Said, text: string, name: string, draft: Draft): string {
  place.find(
    "manual",
    "a key stood in the file; it is in a file of its own now (0600), and should be replaced",
  );
  return draft.secret(text, name);
}

function keyOf(said: Said, virtual: Said, use: string, draft: Draft): string | undefined {
  const place = said.any("api_key", "apiKey");
  const text = place.text();
  const slug = virtual.text();
  if (slug !== undefined) {
    const variable = `${slug.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_KEY`;
    virtual.find("manual", `the key that it stands for is in its vault: set ${variable}`);
    return `\${env:${variable}}`;
  }
  if (text !== undefined) {
    return stored(place, text, `${use}-key`, draft);
  }
  return isOwnServer(use) ? undefined : `\${env:${use.toUpperCase().replaceAll("-", "_")}_API_KEY}`;
}
