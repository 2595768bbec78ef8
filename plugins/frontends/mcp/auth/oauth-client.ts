// A client of OAuth authorization servers: discovery (RFC 9728, RFC 8414), registration (RFC 7591),
// and token requests. Metadata comes from other parties, so each value is checked before it is used.
import {
  basicAuthorization,
  isHttpUrl,
  OAuthError,
  readFirstDocument,
  readIssuerMetadata,
  requestOAuthJson,
  type Context,
} from "tollgate/plugin";

const TIMEOUT_MS = 10_000;
/** Assumed lifetime of a token whose response states none, in seconds. */
const USUAL_LIFETIME_S = 3_600;

type Fetch = Context["fetch"];

/** Metadata of an authorization server. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly authorizationEndpoint: string | undefined;
  readonly tokenEndpoint: string;
  readonly registrationEndpoint: string | undefined;
  /** Whether each authorization response contains the issuer (RFC 9207). */
  readonly sendsIssuer: boolean;
}

/** A client that is registered at an authorization server. */
export interface OAuthClient {
  readonly id: string;
  /** Undefined for a public client. */
  readonly secret: string | undefined;
  /** How the secret is sent. Default: in the body. */
  readonly auth?: "client_secret_basic" | "client_secret_post" | "none";
}

/** Tokens of a token response. */
export interface TokenSet {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** Unix milliseconds. */
  readonly expiresAt: number;
}

/** Authorization servers and scopes of a protected resource. */
export interface ProtectedResource {
  readonly resource: string;
  readonly authorizationServers: readonly string[];
  readonly scopes: readonly string[];
}

/**
 * Finds the authorization server of a resource. The metadata must be at the origin of the resource,
 * and must describe the resource or a path that contains it.
 * @param challenge `WWW-Authenticate` header of the resource, if there is one.
 */
export async function discoverResource(
  fetch: Fetch,
  url: string,
  challenge: string | undefined,
): Promise<ProtectedResource> {
  const { origin, pathname } = new URL(url);
  const path = pathname.replace(/\/$/, "");
  const named = challengeParameter(challenge, "resource_metadata");
  const candidates = [
    ...(named !== undefined && originOf(named) === origin ? [named] : []),
    `${origin}/.well-known/oauth-protected-resource${path}`,
    ...(path === "" ? [] : [`${origin}/.well-known/oauth-protected-resource`]),
  ];
  const found = await readFirstDocument(fetch, candidates, TIMEOUT_MS);
  const { resource, authorization_servers: servers, scopes_supported: scopes } = found;
  if (typeof resource !== "string" || !containsPath(resource, url))
    throw new OAuthError("invalid_response", "The metadata describes another resource.");
  const issuers = Array.isArray(servers) ? servers.filter(isHttpUrl) : [];
  if (issuers.length === 0)
    throw new OAuthError("invalid_response", "The metadata names no authorization server.");
  const challenged = challengeParameter(challenge, "scope")?.split(" ");
  return {
    resource,
    authorizationServers: issuers,
    scopes:
      challenged ?? (Array.isArray(scopes) ? scopes.filter((s) => typeof s === "string") : []),
  };
}

/** Reads the metadata of an authorization server (RFC 8414, then OpenID Connect). */
export async function discoverAuthorizationServer(
  fetch: Fetch,
  issuer: string,
): Promise<AuthorizationServer> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const { document, endpoint } = await readIssuerMetadata(fetch, issuer, {
    urls: [
      `${origin}/.well-known/oauth-authorization-server${path}`,
      `${origin}/.well-known/openid-configuration${path}`,
      `${origin}${path}/.well-known/openid-configuration`,
    ],
    timeoutMs: TIMEOUT_MS,
  });
  const methods = document["code_challenge_methods_supported"];
  if (Array.isArray(methods) && !methods.includes("S256"))
    throw new OAuthError("invalid_response", "The authorization server does not support PKCE.");
  return {
    issuer,
    authorizationEndpoint: endpoint("authorization_endpoint"),
    tokenEndpoint:
      endpoint("token_endpoint") ?? fail("invalid_response", "The metadata has no token endpoint."),
    registrationEndpoint: endpoint("registration_endpoint"),
    sendsIssuer: document["authorization_response_iss_parameter_supported"] === true,
  };
}

/** Registers the gateway as a client. */
export async function registerClient(
  fetch: Fetch,
  { registrationEndpoint }: AuthorizationServer,
  redirectUri: string,
): Promise<OAuthClient> {
  if (registrationEndpoint === undefined)
    return fail(
      "registration_not_supported",
      "The authorization server registers no clients. Set client_id of the server.",
    );
  const isLocal = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])[:/]/.test(redirectUri);
  const answer = await requestOAuthJson(fetch, registrationEndpoint, {
    timeoutMs: TIMEOUT_MS,
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify({
      client_name: "Tollgate",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_post",
      application_type: isLocal ? "native" : "web",
    }),
  });
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: auth } = answer;
  if (typeof id !== "string")
    return fail("invalid_response", "The registration response has no client ID.");
  return {
    id,
    secret: typeof secret === "string" ? secret : undefined,
    ...(typeof auth === "string" && { auth: auth as NonNullable<OAuthClient["auth"]> }),
  };
}

/**
 * Requests a token. Throws an `OAuthError` with the code of the server if the server denies it.
 * @param parameters Parameters of the grant. Undefined values are omitted.
 */
export async function requestToken(
  fetch: Fetch,
  endpoint: string,
  client: OAuthClient,
  parameters: Readonly<Record<string, string | undefined>>,
): Promise<TokenSet> {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) form.append(name, value);
  const headers: Record<string, string> = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
  };
  if (client.secret !== undefined && client.auth === "client_secret_basic")
    headers["authorization"] = basicAuthorization(client.id, client.secret);
  else {
    form.append("client_id", client.id);
    if (client.secret !== undefined) form.append("client_secret", client.secret);
  }
  const answer = await requestOAuthJson(fetch, endpoint, {
    timeoutMs: TIMEOUT_MS,
    method: "POST",
    headers,
    body: form.toString(),
  });
  const { access_token: token, token_type: type, expires_in: seconds } = answer;
  if (typeof token !== "string" || !/^[\x21-\x7e]{1,16384}$/.test(token))
    return fail("invalid_response", "The token response has no access token.");
  if (typeof type === "string" && type !== "N_A" && type.toLowerCase() !== "bearer")
    return fail("invalid_response", "The access token is not a bearer token.");
  const refreshToken = answer["refresh_token"];
  const lifetime = Number(seconds ?? USUAL_LIFETIME_S);
  return {
    accessToken: token,
    refreshToken: typeof refreshToken === "string" ? refreshToken : undefined,
    expiresAt: Date.now() + 1_000 * (lifetime > 0 ? lifetime : USUAL_LIFETIME_S),
  };
}

/** Returns a parameter of a `Bearer` challenge. */
export function challengeParameter(
  challenge: string | undefined,
  name: string,
): string | undefined {
  const text = challenge?.slice(0, 4_096) ?? "";
  const found = new RegExp(`(?:^|[\\s,])${name}=(?:"([^"]*)"|([^\\s,"]+))`, "i").exec(text);
  return found?.[1] ?? found?.[2];
}

/** Whether a URL is the other URL, or a path that contains it. */
export function containsPath(outer: string, inner: string): boolean {
  if (!isHttpUrl(outer) || !isHttpUrl(inner)) return false;
  const [a, b] = [new URL(outer), new URL(inner)];
  const path = a.pathname.replace(/\/$/, "");
  return a.origin === b.origin && (b.pathname === path || b.pathname.startsWith(`${path}/`));
}

const originOf = (url: string): string | undefined =>
  URL.canParse(url) ? new URL(url).origin : undefined;

const fail = (code: string, message: string): never => {
  throw new OAuthError(code, message);
};
