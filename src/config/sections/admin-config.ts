// The `admin` section: the listener of the admin API, and its tokens. Without the section there is
// no such listener. Contains the checks that a schema cannot express.
import { dirname, resolve } from "node:path";
import { isLoopback } from "../../lib/net/egress-guard.ts";
import type { Role } from "../../plugin/role.ts";
import { problem } from "../problems.ts";
import { closedObject, flag, list, name, nonEmptyText } from "../schema-builders.ts";
import type { ReportProblem } from "../source/substitute-references.ts";
import { childPointer, isMapping } from "../source/config-tree.ts";
import type { AdminConfig, AdminToken, OidcConfig } from "../gateway-config.ts";

export const ROLES = ["metrics", "viewer", "operator", "owner"] as const satisfies readonly Role[];

/** Minimum length in characters, too long to guess at any speed. */
const MIN_TOKEN_LENGTH = 24;

const HTTP_URL_SCHEMA = {
  type: "string",
  pattern: "^https?://[^\\s/?#]+[^\\s?#]*$",
  "x-expects": "an address such as https://login.example.com",
} as const;

/** Schema of the identity provider for sign-in. */
const OIDC_SCHEMA = closedObject(
  {
    issuer: {
      ...HTTP_URL_SCHEMA,
      description: "Its issuer, to the letter; the rest is found there",
    },
    client_id: nonEmptyText("What it calls this gateway"),
    client_secret: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "What this gateway proves itself with there; absent, by PKCE alone",
    },
    url: {
      ...HTTP_URL_SCHEMA,
      description:
        "The admin listener as browsers reach it; the provider sends them back to /admin/v1/oidc/callback there",
    },
    scopes: list({ type: "string", minLength: 1 }, "What is asked for beside openid", {
      default: ["profile", "email"],
    }),
    groups: {
      ...nonEmptyText("The claim of the ID token that says a person's groups"),
      default: "groups",
    },
    name: { ...nonEmptyText("The claim that says what a person is called here"), default: "email" },
    roles: {
      type: "object",
      minProperties: 1,
      description: "Groups, and what those in them may; of several the first one here counts",
      additionalProperties: closedObject(
        {
          role: { enum: [...ROLES], description: "What they may: metrics is the least" },
          account: nonEmptyText("The account that they are held to; all when absent"),
        },
        { required: ["role"] },
      ),
    },
  },
  {
    required: ["issuer", "client_id", "url", "roles"],
    description:
      "People sign in with an identity provider: OpenID Connect, its code flow with PKCE",
  },
);

export const ADMIN_SCHEMA = closedObject(
  {
    host: nonEmptyText("An address of this machine. 127.0.0.1: this machine only, and the default"),
    port: {
      type: "integer",
      minimum: 0,
      maximum: 65_535,
      description: "9787 by default; 0: any free one",
    },
    socket: nonEmptyText("A unix socket in place of host and port, relative to this file; 0600"),
    hosts: list({ type: "string", minLength: 1 }, "More names in a Host header that mean us", {
      default: [],
    }),
    behind_proxy: flag(
      "Something in front of it speaks TLS: without it, or tls, only addresses of this machine are listened on",
      false,
    ),
    tls: closedObject(
      {
        cert: nonEmptyText("A file with the certificate and those that it follows from, as PEM"),
        key: nonEmptyText("A file with its private key, as PEM"),
      },
      {
        required: ["cert", "key"],
        description: "It speaks https itself; paths are relative to this file",
      },
    ),
    tokens: {
      type: "object",
      minProperties: 1,
      propertyNames: name("a token's name"),
      description:
        "Tokens that are accepted, by name. No key for models is one of these, and the other way round",
      additionalProperties: closedObject(
        {
          role: { enum: [...ROLES], description: "What its holder may: metrics is the least" },
          token: {
            type: "string",
            pattern: `^[!-~]{${MIN_TOKEN_LENGTH},512}$`,
            "x-expects": `${MIN_TOKEN_LENGTH} to 512 printable characters, as \`openssl rand -hex 32\` gives`,
            "x-secret": true,
            description: "What is presented as Authorization: Bearer",
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
      "Where operators' programs give commands, and what plugins serve them is; absent, nowhere",
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

/** Reports equal tokens, which would give one holder two roles. */
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

/**
 * Converts the section.
 * @param from File that contains the section.
 * @param portOverride Port that replaces the configured one.
 */
export function toAdminConfig(
  raw: any,
  from: string,
  portOverride?: number | undefined,
): AdminConfig | undefined {
  if (raw === undefined) return undefined;
  const { host = "127.0.0.1", port = 9787, socket, tls, ...more } = (raw ?? {}) as any;
  const { hosts = [], behind_proxy: behindProxy = false, tokens = {}, oidc } = more;
  const file = (path: string) => resolve(dirname(from), path);
  return {
    address: socket === undefined ? { host, port: portOverride ?? port } : { socket: file(socket) },
    hosts,
    behindProxy,
    tls: tls && { cert: file(tls.cert), key: file(tls.key) },
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
  scopes: [...new Set<string>(["openid", ...(raw.scopes ?? ["profile", "email"])])],
  groupsClaim: raw.groups ?? "groups",
  nameClaim: raw.name ?? "email",
  roles: Object.entries<any>(raw.roles).map(([group, { role, account }]) => ({
    group,
    role,
    account,
  })),
});
