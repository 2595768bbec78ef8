// An authorization server and the resource that it protects, behind a `fetch` function. It rotates refresh tokens: a token that was
// used twice ends the grant, as RFC 9700 recommends.
import { createHash, randomUUID } from "node:crypto";

export const RESOURCE = "https://mcp.example.com/mcp";
export const ISSUER = "https://login.example.com/tenant";

const wellKnown = (url: string, name: string): string => {
  const { origin, pathname } = new URL(url);
  return `${origin}/.well-known/${name}${pathname}`;
};

interface Grant {
  refreshToken: string;
  accessTokens: Set<string>;
  isRevoked: boolean;
}

/** URLs of the resource and of the issuer. */
export interface AuthorizationUrls {
  readonly resource: string;
  readonly issuer: string;
}

export interface AuthorizationOptions {
  readonly registers?: boolean;
  readonly sendsIssuer?: boolean;
  /** Issuer in the metadata. */
  readonly issuer?: string;
  /** Endpoint of another party in the metadata. */
  readonly tokenEndpoint?: string;
  readonly lifetimeS?: number;
  /** Whether responses have a refresh token and a lifetime. Default: true. */
  readonly refreshes?: boolean;
}

export class FakeAuthorization {
  readonly requests: { url: string; headers: Record<string, string>; body: URLSearchParams }[] = [];
  readonly codes = new Map<
    string,
    { challenge: string; client: string; redirect: string; resource: string }
  >();
  readonly grants: Grant[] = [];
  readonly options: AuthorizationOptions;
  /** Called before a token request is answered. */
  onToken: () => Promise<void> | void = () => {};
  isDown = false;
  secrets: string[] = [];
  refreshes = 0;

  readonly urls: AuthorizationUrls;

  constructor(
    options: AuthorizationOptions = {},
    urls: AuthorizationUrls = { resource: RESOURCE, issuer: ISSUER },
  ) {
    this.options = options;
    this.urls = urls;
  }

  readonly fetch = async (
    target: string | URL,
    init: { method?: string; headers?: Record<string, string>; body?: string | Buffer } = {},
  ): Promise<Response> => {
    const url = new URL(target);
    const { resource, issuer } = this.urls;
    const body = new URLSearchParams(String(init.body ?? ""));
    this.requests.push({ url: url.href, headers: { ...init.headers }, body });
    if (url.href === wellKnown(resource, "oauth-protected-resource"))
      return Response.json({
        resource,
        authorization_servers: [issuer],
        scopes_supported: ["read", "write"],
      });
    if (url.href === wellKnown(issuer, "oauth-authorization-server"))
      return Response.json({
        issuer: this.options.issuer ?? issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: this.options.tokenEndpoint ?? `${issuer}/token`,
        ...(this.options.registers !== false && { registration_endpoint: `${issuer}/register` }),
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: this.options.sendsIssuer ?? true,
      });
    if (url.href === `${issuer}/register`) {
      const asked = JSON.parse(String(init.body)) as { redirect_uris: string[] };
      return Response.json(
        {
          client_id: `registered ${asked.redirect_uris[0]}`,
          client_secret: this.#secret("client"),
        },
        { status: 201 },
      );
    }
    if (url.href === `${issuer}/token`) {
      await this.onToken();
      return this.isDown ? new Response("", { status: 503 }) : this.#token(body);
    }
    return new Response("", { status: 404 });
  };

  /** What the browser does: the user signs in and consents. Returns the query with which it comes back. */
  authorize(url: string): { server: string; code: string; state: string; iss: string } {
    const { searchParams: given } = new URL(url);
    const code = this.#secret("code");
    this.codes.set(code, {
      challenge: given.get("code_challenge")!,
      client: given.get("client_id")!,
      redirect: given.get("redirect_uri")!,
      resource: given.get("resource")!,
    });
    const server = given.get("redirect_uri")!.split("/").at(-1)!;
    return { server, code, state: given.get("state")!, iss: this.urls.issuer };
  }

  isValid(token: string): boolean {
    return this.grants.some(({ accessTokens, isRevoked }) => !isRevoked && accessTokens.has(token));
  }

  #token(form: URLSearchParams): Response {
    const denied = (error: string) =>
      Response.json({ error, error_description: "no" }, { status: 400 });
    switch (form.get("grant_type")) {
      case "authorization_code": {
        const known = this.codes.get(form.get("code") ?? "");
        this.codes.delete(form.get("code") ?? "");
        const verifier = form.get("code_verifier") ?? "";
        if (!known || createHash("sha256").update(verifier).digest("base64url") !== known.challenge)
          return denied("invalid_grant");
        if (
          form.get("redirect_uri") !== known.redirect ||
          form.get("client_id") !== known.client ||
          form.get("resource") !== this.urls.resource
        )
          return denied("invalid_grant");
        const grant = { refreshToken: "", accessTokens: new Set<string>(), isRevoked: false };
        this.grants.push(grant);
        return this.#issue(grant);
      }
      case "refresh_token": {
        const given = form.get("refresh_token")!;
        const grant = this.grants.find((each) => each.refreshToken === given);
        if (!grant || grant.isRevoked) {
          for (const each of this.grants) each.isRevoked ||= this.#used.get(given) === each;
          return denied("invalid_grant");
        }
        this.refreshes++;
        this.#used.set(given, grant);
        return this.#issue(grant);
      }
      case "client_credentials":
        return Response.json({
          access_token: this.#secret("access"),
          token_type: "Bearer",
          expires_in: this.options.lifetimeS ?? 3_600,
        });
      case "urn:ietf:params:oauth:grant-type:token-exchange":
        return Response.json({
          access_token: this.#secret("exchanged"),
          issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
          token_type: "Bearer",
          expires_in: 3_600,
        });
      default:
        return denied("unsupported_grant_type");
    }
  }

  readonly #used = new Map<string, Grant>();

  #issue(grant: Grant): Response {
    const token = this.#secret("access");
    grant.accessTokens.add(token);
    grant.refreshToken = this.#secret("refresh");
    if (this.options.refreshes === false)
      return Response.json({ access_token: token, token_type: "bearer" });
    return Response.json({
      access_token: token,
      refresh_token: grant.refreshToken,
      token_type: "bearer",
      expires_in: this.options.lifetimeS ?? 3_600,
    });
  }

  #secret(kind: string): string {
    const secret = `CANARY-${kind}-${randomUUID()}`;
    this.secrets.push(secret);
    return secret;
  }
}
