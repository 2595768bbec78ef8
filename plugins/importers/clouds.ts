// Imports cloud providers, which have an account, a region, and credentials with several fields.
// Importers of other gateways pass values in the spelling of gateway.yaml.
import { packageOf } from "./known-providers.ts";
import type { SourceValue } from "./source-value.ts";

/** A provider with its options and credential. */
export interface CloudProvider {
  readonly use: string;
  readonly options: Readonly<Record<string, unknown>>;
  /** Fields of the credential. Undefined if the provider reads the machine's own credential. */
  readonly fields: Readonly<Record<string, string>> | undefined;
}

type Texts = Readonly<Record<string, string | undefined>>;

/** Removes entries without a value. */
const withoutUndefined = (texts: Texts): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(texts).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );

const orUndefined = (fields: Readonly<Record<string, string>>) =>
  Object.keys(fields).length > 0 ? fields : undefined;

interface AwsSource {
  readonly region?: string | undefined;
  readonly runtimeUrl?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly accessKeyId?: string | undefined;
  readonly secretAccessKey?: string | undefined;
  readonly sessionToken?: string | undefined;
  readonly profile?: string | undefined;
}

export function awsProvider(source: AwsSource): CloudProvider {
  const keys = withoutUndefined({
    access_key_id: source.accessKeyId,
    secret_access_key: source.secretAccessKey,
    session_token: source.sessionToken,
  });
  const profile = withoutUndefined({ profile: source.profile });
  const fields =
    source.apiKey !== undefined
      ? { api_key: source.apiKey }
      : source.profile !== undefined
        ? { from: "chain", ...profile }
        : keys;
  return {
    use: "aws",
    options: withoutUndefined({ region: source.region, runtime_url: source.runtimeUrl }),
    fields: orUndefined(fields),
  };
}

interface VertexSource {
  readonly project?: string | undefined;
  readonly location?: string | undefined;
  readonly baseUrl?: string | undefined;
  readonly serviceAccount?: string | undefined;
  readonly apiKey?: string | undefined;
}

export const vertexProvider = (source: VertexSource): CloudProvider => ({
  use: "vertex",
  options: withoutUndefined({
    project: source.project,
    location: source.location,
    base_url: source.baseUrl,
  }),
  fields:
    source.serviceAccount !== undefined
      ? { service_account: source.serviceAccount }
      : source.apiKey !== undefined
        ? { api_key: source.apiKey }
        : { from: "adc" },
});

interface AzureSource {
  /** Address of the resource, with or without `/openai`. */
  readonly endpoint: string;
  readonly apiKey?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
}

/**
 * Returns an Azure provider. With an API key, it is the built-in provider. For Entra ID and
 * Foundry, it is the package.
 */
export function azureProvider(source: AzureSource, foundry = false): CloudProvider {
  const root = source.endpoint
    .replace(/\/+$/, "")
    .replace(/\/(openai|models|anthropic)(\/.*)?$/, "");
  const entra = withoutUndefined({
    tenant_id: source.tenantId,
    client_id: source.clientId,
    client_secret: source.clientSecret,
  });
  if (!foundry && source.clientId === undefined)
    return {
      use: "azure",
      options: { base_url: `${root}/openai/v1` },
      fields: orUndefined(withoutUndefined({ api_key: source.apiKey })),
    };
  return {
    use: "azure-foundry",
    options: { base_url: root },
    fields:
      source.clientId === undefined
        ? orUndefined(withoutUndefined({ api_key: source.apiKey }))
        : entra,
  };
}

/** Reports the manual steps before a cloud provider can be called. Called once per provider. */
export function reportManualSteps(place: SourceValue, { use, fields }: CloudProvider): void {
  const name = packageOf(use);
  if (name !== undefined)
    place.report(
      "manual",
      `this provider is a package: run npm install ${name} next to gateway.yaml`,
    );
  if (use === "aws" && fields === undefined)
    place.report(
      "manual",
      "the keys are read from AWS_* variables; for profiles and roles, set from: chain " +
        "and run npm install @aws-sdk/credential-provider-node",
    );
  if (use === "aws" && fields?.["from"] === "chain")
    place.report(
      "manual",
      "profiles require a package: run npm install @aws-sdk/credential-provider-node",
    );
  if (use === "vertex" && fields?.["from"] === "adc")
    place.report(
      "manual",
      "application default credentials require a package: run npm install google-auth-library, " +
        "or set service_account",
    );
}
