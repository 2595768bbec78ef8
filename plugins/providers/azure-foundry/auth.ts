// Authentication with a key or an Entra ID token. The token comes from a client secret, a federated
// workload, a managed identity, or the Azure Identity library.
import { createHash } from "node:crypto";
import {
  AccountTokens,
  fail,
  type Context,
  type MintedToken,
  type SignableRequest,
  type TokenAuth,
} from "tollgate/plugin";

/** A credential as configured by the operator. */
export interface AzureAccount {
  readonly api_key?: string;
  readonly tenant_id?: string;
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly from?: "managed_identity" | "workload" | "azure_identity";
}

export const accountSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    api_key: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Key of the resource. No other field is needed",
    },
    tenant_id: { type: "string", minLength: 1, description: "Tenant ID of the application" },
    client_id: {
      type: "string",
      minLength: 1,
      description:
        "Client ID of the application, or of a managed identity if the machine has several",
    },
    client_secret: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Client secret of the application",
    },
    from: {
      enum: ["managed_identity", "workload", "azure_identity"],
      description:
        "Source of tokens without a secret. managed_identity: the machine, or " +
        "IDENTITY_ENDPOINT. workload: the federated token of the workload. " +
        "azure_identity: Azure's default credential chain; requires the package " +
        "@azure/identity",
    },
  },
} as const;

/** Environment variables that are read. */
export const ENV_VARIABLES = [
  "AZURE_TENANT_ID",
  "AZURE_CLIENT_ID",
  "IDENTITY_ENDPOINT",
  "IDENTITY_HEADER",
] as const;

/** Address of the machine's identity service. */
const IMDS_TOKEN_URL = "http://169.254.169.254/metadata/identity/oauth2/token";

/** Authentication of an endpoint: the header for a key, and the scope of a token. */
export interface SurfaceAuth {
  readonly header: string;
  readonly scope: string;
}

/** URL of Entra ID, and the token file of a federated workload. */
export interface EntraEndpoints {
  readonly loginUrl: string;
  readonly file: string;
}

export function foundryAuth(
  ctx: Pick<Context, "fetch" | "shared" | "env" | "readFile">,
  entra: EntraEndpoints,
  door: SurfaceAuth,
): TokenAuth<AzureAccount> {
  const tokens = ctx.shared("tokens", () => new AccountTokens(Date.now));
  const name = (account: AzureAccount): string =>
    createHash("sha256")
      .update(JSON.stringify([entra.loginUrl, door.scope, account]))
      .digest("hex");
  const mint = (account: AzureAccount) => () => fetchToken(ctx, entra, door.scope, account);
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  return {
    sign(_request: SignableRequest, account) {
      if (account.api_key !== undefined) return { [door.header]: account.api_key };
      const token = tokens.get(name(account), mint(account));
      return typeof token === "string" ? bearer(token) : token.then(bearer);
    },
    async renewToken({ status }, account) {
      if (status !== 401 || account.api_key !== undefined) return false;
      await tokens.renew(name(account), mint(account));
      return true;
    },
  };
}

async function fetchToken(
  ctx: Pick<Context, "fetch" | "env" | "readFile">,
  entra: EntraEndpoints,
  scope: string,
  account: AzureAccount,
): Promise<MintedToken> {
  if (account.from === "azure_identity") return tokenFromAzureIdentity(scope);
  return requestToken(ctx.fetch, await tokenRequestFor(ctx, entra, scope, account));
}

async function tokenRequestFor(
  { env, readFile }: Pick<Context, "env" | "readFile">,
  { loginUrl, file }: EntraEndpoints,
  scope: string,
  account: AzureAccount,
): Promise<TokenRequest> {
  if (account.from === "managed_identity")
    return managedIdentityRequest(env, scope, account.client_id);
  const tenant = account.tenant_id ?? env("AZURE_TENANT_ID");
  const client = account.client_id ?? env("AZURE_CLIENT_ID");
  if (tenant === undefined || client === undefined)
    return fail(
      "upstream_auth",
      "The credential has neither a key nor both tenant_id and client_id.",
      {
        code: "no_credential",
      },
    );
  const form: Record<string, string> = {
    grant_type: "client_credentials",
    client_id: client,
    scope,
  };
  if (account.from === "workload") {
    form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    // The file is read for each token, because it is rewritten every hour.
    form["client_assertion"] = (await readFile(file)).toString().trim();
  } else if (account.client_secret === undefined)
    return fail("upstream_auth", "Missing client_secret in the credential.", {
      code: "no_credential",
    });
  else form["client_secret"] = account.client_secret;
  const url = `${loginUrl.replace(/\/+$/, "")}/${encodeURIComponent(tenant)}/oauth2/v2.0/token`;
  return { url, form };
}

/**
 * Creates the token request of a managed identity. The platform's own endpoint is used if there is
 * one, and otherwise the machine's.
 */
function managedIdentityRequest(
  env: Context["env"],
  scope: string,
  client: string | undefined,
): TokenRequest {
  const endpoint = env("IDENTITY_ENDPOINT");
  const header = env("IDENTITY_HEADER");
  const url = new URL(endpoint ?? IMDS_TOKEN_URL);
  url.searchParams.set("api-version", endpoint === undefined ? "2018-02-01" : "2019-08-01");
  url.searchParams.set("resource", scope.replace(/\/\.default$/, ""));
  if (client !== undefined) url.searchParams.set("client_id", client);
  return {
    url: url.href,
    headers: { metadata: "true", ...(header !== undefined && { "x-identity-header": header }) },
  };
}

// Gets a token from the Azure Identity library, which supports CLI sign-ins, certificates, and
// other sources that this package does not implement.

/** The part of the library that is used. The library is optional. */
interface AzureIdentityModule {
  readonly DefaultAzureCredential: new () => {
    getToken(
      scope: string,
    ): Promise<{ readonly token: string; readonly expiresOnTimestamp: number }>;
  };
}

const NAME: string = "@azure/identity";

async function tokenFromAzureIdentity(scope: string): Promise<MintedToken> {
  let library: AzureIdentityModule;
  try {
    library = (await import(NAME)) as AzureIdentityModule;
  } catch (error) {
    return fail(
      "upstream_auth",
      "`from: azure_identity` requires the package @azure/identity. Install it next to " +
        "this package.",
      { code: "missing_package", cause: error },
    );
  }
  try {
    const found = await new library.DefaultAzureCredential().getToken(scope);
    return { token: found.token, ttlMs: found.expiresOnTimestamp - Date.now() };
  } catch (error) {
    return fail("upstream_auth", "The Azure identity library found no credential.", {
      code: "no_token",
      cause: error,
    });
  }
}

// Sends a token request and reads its response.

/** A token request. It is a POST request with a form, or a GET request without one. */
interface TokenRequest {
  readonly url: string;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

async function requestToken(
  fetch: Context["fetch"],
  { url, form, headers }: TokenRequest,
): Promise<MintedToken> {
  const answer = await fetch(
    url,
    form
      ? {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams(form).toString(),
        }
      : { headers: headers ?? {} },
  );
  const response = (await answer.json().catch(() => ({}))) as {
    readonly [name: string]: unknown;
  } | null;
  const token = response?.["access_token"];
  if (answer.ok && typeof token === "string" && token !== "")
    return { token, ttlMs: 1000 * parseExpiresIn(response!) };
  const code = response?.["error"];
  const words = typeof code === "string" ? ` (${code.slice(0, 100)})` : "";
  return fail("upstream_auth", `Entra ID did not issue a token: status ${answer.status}${words}.`, {
    code: "no_token",
  });
}

/**
 * Reads the token's lifetime. The three services send it as a number, as text, or as an expiry
 * time.
 */
function parseExpiresIn(response: { readonly [name: string]: unknown }): number {
  const left = Number(response["expires_in"] ?? Number.NaN);
  if (Number.isFinite(left)) return left;
  const ends = Number(response["expires_on"] ?? Number.NaN);
  return Number.isFinite(ends) ? ends - Date.now() / 1000 : 3600;
}
