// The `admin` section: the listener of the admin API, and its tokens. Without this section, there
// is no admin listener. This file contains the checks that a schema cannot express.
import { isLoopback } from "../../lib/net/egress-guard.ts";
import type { Role } from "../../plugin/role.ts";
import { problem } from "../problems.ts";
import { closedObject, flag, list, name, nonEmptyText, path } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { childPointer, isMapping, type Mapping } from "../source/config-tree.ts";
import type { AdminConfig, AdminToken, OidcConfig } from "../gateway-config.ts";

export const ROLES = ["metrics", "viewer", "operator", "owner"] as const satisfies readonly Role[];

/** Minimum length in characters, too long to guess at any speed. */
const MIN_TOKEN_LENGTH = 24;

const HTTP_URL_SCHEMA = {
  type: "string",
  pattern: "^https?://[^\\s/?#]+[^\\s?#]*$",
  "x-expects": "a URL such as https://login.example.com",
} as const;

/** Schema of the identity provider for sign-in. */
const OIDC_SCHEMA = closedObject(
  {
    issuer: {
      ...HTTP_URL_SCHEMA,
      description:
        "Issuer URL, exactly as the provider reports it. The endpoints are discovered from it",
    },
    client_id: nonEmptyText("Client ID of this gateway at the provider"),
    client_secret: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Client secret of this gateway. If unset, only PKCE is used",
    },
    url: {
      ...HTTP_URL_SCHEMA,
      description:
        "URL of the admin listener for browsers. The provider redirects to " +
        "/admin/v1/oidc/callback at this URL",
    },
    scopes: list({ type: "string", minLength: 1 }, "Scopes to request in addition to openid", {
      default: ["profile", "email"],
    }),
    groups: {
      ...nonEmptyText("Claim of the ID token that contains the groups"),
      default: "groups",
    },
    name: {
      ...nonEmptyText("Claim of the ID token that contains the user name"),
      default: "email",
    },
    roles: {
      type: "object",
      minProperties: 1,
      description:
        "Groups and their permissions. If a user is in several groups, the first " +
        "group listed here applies",
      additionalProperties: closedObject(
        {
          role: {
            enum: [...ROLES],
            description: "Role of the group. metrics has the fewest permissions",
          },
          account: nonEmptyText(
            "Account that access is limited to. If unset, access covers all accounts",
          ),
        },
        { required: ["role"] },
      ),
    },
  },
  {
    required: ["issuer", "client_id", "url", "roles"],
    description:
      "Sign-in with an identity provider by OpenID Connect (authorization code flow " +
      "with PKCE)",
  },
);

export const ADMIN_SCHEMA = closedObject(
  {
    host: nonEmptyText(
      "Address to listen on. 127.0.0.1 accepts connections from this machine only. " +
        "Default: 127.0.0.1",
    ),
    port: {
      type: "integer",
      minimum: 0,
      maximum: 65_535,
      description: "Port to listen on. 0 selects any free port. Default: 9787",
    },
    socket: path(
      "Path of a Unix socket, used instead of host and port and relative to this file. " +
        "The socket has mode 0600",
    ),
    hosts: list(
      { type: "string", minLength: 1 },
      "Additional host names that are accepted in the Host header",
      {
        default: [],
      },
    ),
    behind_proxy: flag(
      "Whether a proxy in front of the admin listener terminates TLS. Without this " +
        "setting or tls, only loopback addresses are allowed",
      false,
    ),
    tls: closedObject(
      {
        cert: path("PEM file with the certificate and its intermediate certificates"),
        key: path("PEM file with the private key"),
      },
      {
        required: ["cert", "key"],
        description:
          "TLS settings, with which the admin listener serves HTTPS. Paths are relative to " +
          "this file",
      },
    ),
    tokens: {
      type: "object",
      minProperties: 1,
      propertyNames: name("a token's name"),
      description:
        "Accepted admin tokens by name. Admin tokens and API keys are not interchangeable",
      additionalProperties: closedObject(
        {
          role: {
            enum: [...ROLES],
            description: "Role of the token. metrics has the fewest permissions",
          },
          token: {
            type: "string",
            pattern: `^[!-~]{${MIN_TOKEN_LENGTH},512}$`,
            "x-expects": `${MIN_TOKEN_LENGTH} to 512 printable characters, such as the output of \`openssl rand -hex 32\``,
            "x-secret": true,
            description: "Token that is sent as Authorization: Bearer",
          },
        },
        { required: ["role", "token"] },
      ),
    },
    oidc: OIDC_SCHEMA,
  },
  {
    type: ["object", "null"],
    description:
      "Listener for the admin API, the console, and the admin routes of plugins. If " +
      "unset, there is no admin listener",
  },
);

export function checkAdmin(raw: unknown, report: ReportProblem): void {
  if (!isMapping(raw)) return;
  for (const key of ["host", "port"])
    if (raw["socket"] !== undefined && raw[key] !== undefined)
      report(problem.notAllowedWithSocket(key), `/admin/${key}`, "key");
  if (raw["socket"] !== undefined && raw["tls"] !== undefined)
    report(problem.notAllowedWithSocket("tls"), "/admin/tls", "key");
  const { host, tls } = raw;
  const guarded = raw["behind_proxy"] === true || tls !== undefined;
  if (typeof host === "string" && !isLoopback(host) && !guarded)
    report(problem.adminExposed(host), "/admin/host");
  checkTokens(raw["tokens"], report);
}

/** Reports equal tokens, because one token would have two roles. */
function checkTokens(tokens: unknown, report: ReportProblem): void {
  if (!isMapping(tokens)) return;
  const names = new Map<string, string>();
  for (const [name, each] of Object.entries(tokens)) {
    const token = isMapping(each) ? each["token"] : undefined;
    if (typeof token !== "string") continue;
    const other = names.get(token);
    if (other !== undefined)
      report(problem.sameToken(other), childPointer(childPointer("/admin/tokens", name), "token"));
    names.set(token, name);
  }
}

export const expandAdmin = (raw: unknown, overrides: { readonly adminPort?: number }): Mapping => {
  const admin = (raw ?? {}) as Mapping;
  if (admin["socket"] !== undefined) return admin;
  const port = overrides.adminPort;
  return { host: "127.0.0.1", port: 9787, ...admin, ...(port !== undefined && { port }) };
};

/** Converts the section. */
export function toAdminConfig(raw: any): AdminConfig | undefined {
  if (raw === undefined) return undefined;
  const { host, port, socket, tls, hosts, behind_proxy: behindProxy, tokens = {}, oidc } = raw;
  return {
    address: socket === undefined ? { host, port } : { socket },
    hosts,
    behindProxy,
    tls,
    oidc: oidc && toOidcConfig(oidc),
    tokens: Object.entries(tokens as Record<string, Omit<AdminToken, "name">>).map(
      ([name, { role, token }]) => ({ name, role, token }),
    ),
  };
}

const toOidcConfig = (raw: any): OidcConfig => ({
  issuer: raw.issuer,
  clientId: raw.client_id,
  clientSecret: raw.client_secret,
  callbackUrl: `${raw.url.replace(/\/+$/, "")}/admin/v1/oidc/callback`,
  scopes: [...new Set<string>(["openid", ...raw.scopes])],
  groupsClaim: raw.groups,
  nameClaim: raw.name,
  roles: Object.entries<any>(raw.roles).map(([group, { role, account }]) => ({
    group,
    role,
    account,
  })),
});
