// The frontend as an OAuth resource server. It serves metadata (RFC 9728), sends challenges, and checks
// the audience (RFC 8707) and the scopes of tokens.
import { fail, type Fault, type HeadersOut, type RequestHead, type Route } from "tollgate/plugin";
import { containsPath } from "./oauth-client.ts";

/** The option `authorization`. */
export interface AuthorizationOptions {
  readonly resource: string;
  readonly servers: readonly string[];
  readonly scopes?: Readonly<Record<string, readonly string[]>>;
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** Checks and describes the access of clients that have a token of an identity provider. */
export class ResourceServer {
  readonly #options: AuthorizationOptions;
  readonly #base: string;

  constructor(options: AuthorizationOptions) {
    this.#options = options;
    this.#base = options.resource.replace(/\/$/, "");
  }

  /**
   * Returns the routes of the metadata.
   * @param isResource Whether the frontend serves MCP at a path.
   */
  routes(isResource: (path: string) => boolean): readonly Route[] {
    const serve = (path: string) => ({
      status: 200,
      headers: { "access-control-allow-origin": "*", "cache-control": "public, max-age=300" },
      body: {
        resource: this.#base + path,
        authorization_servers: [...this.#options.servers],
        bearer_methods_supported: ["header"],
        ...(this.#options.scopes && { scopes_supported: Object.keys(this.#options.scopes) }),
      },
    });
    return [
      {
        method: "GET",
        path: WELL_KNOWN,
        allowUnauthenticated: true,
        handle: () => serve("/mcp"),
      },
      {
        method: "GET",
        path: `${WELL_KNOWN}/**:resource`,
        allowUnauthenticated: true,
        handle({ path }) {
          const resource = path.slice(WELL_KNOWN.length);
          return isResource(resource)
            ? serve(resource)
            : fail("not_found", "MCP is not served at this path.", { code: "not_found" });
        },
      },
    ];
  }

  /** Returns the challenge for an error. Undefined for errors that no credential solves. */
  challenge(
    fault: Fault,
    x: Pick<RequestHead, "path" | "credentialSources">,
  ): HeadersOut | undefined {
    const isScope = fault.code === "insufficient_scope";
    if (fault.kind !== "unauthenticated" && !isScope) return undefined;
    const { scopes } = this.#options;
    const hasCredential = x.credentialSources.length > 0;
    const parts = [
      ...(isScope
        ? ['error="insufficient_scope"']
        : hasCredential
          ? ['error="invalid_token"']
          : []),
      `resource_metadata="${this.#base}${WELL_KNOWN}${x.path}"`,
      ...(scopes ? [`scope="${Object.keys(scopes).join(" ")}"`] : []),
    ];
    return { "www-authenticate": `Bearer ${parts.join(", ")}` };
  }

  /**
   * Throws if the client's token was issued for another resource. Clients with an API key have no
   * such token.
   */
  assertAudience({ identity, path }: RequestHead): void {
    const token = identity?.accessToken;
    if (!token) return;
    const resource = this.#base + path;
    if (!token.audience.some((each) => containsPath(each, resource)))
      fail("unauthenticated", `The token is not for ${resource}.`, { code: "invalid_audience" });
  }

  /**
   * Returns the patterns of tools that the scopes of the token permit. Undefined if they restrict
   * nothing.
   */
  toolsOf({ identity }: Pick<RequestHead, "identity">): readonly string[] | undefined {
    const { scopes } = this.#options;
    const token = identity?.accessToken;
    if (!scopes || !token) return undefined;
    return token.scopes.flatMap((scope) => (Object.hasOwn(scopes, scope) ? scopes[scope]! : []));
  }
}
