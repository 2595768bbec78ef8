// Where operators' programs reach the gateway, and with which tokens: the part of gateway.yaml under `admin:`. Without it there is
// no such listener. What a schema cannot check is checked here.
import { dirname, resolve } from "node:path";
import { isLoopback } from "../lib/egress.ts";
import type { Role } from "../plugin/plugin.ts";
import { problem } from "./problems.ts";
import { closed, flag, list, name, named } from "./shapes.ts";
import type { Report } from "./substitute.ts";
import { below, isMapping } from "./tree.ts";
import type { AdminConfig, AdminToken } from "./types.ts";

export const ROLES = ["metrics", "viewer", "operator", "owner"] as const satisfies readonly Role[];

/** Too long to guess, however fast. */
const SHORTEST = 24;

export const ADMIN = closed(
  {
    host: named("An address of this machine. 127.0.0.1: this machine only, and the default"),
    port: {
      type: "integer",
      minimum: 0,
      maximum: 65_535,
      description: "9787 by default; 0: any free one",
    },
    socket: named("A unix socket in place of host and port, relative to this file; 0600"),
    hosts: list({ type: "string", minLength: 1 }, "More names in a Host header that mean us", {
      default: [],
    }),
    behind_proxy: flag(
      "Something in front of it speaks TLS: without it only addresses of this machine are listened on",
      false,
    ),
    tokens: {
      type: "object",
      minProperties: 1,
      propertyNames: name("a token's name"),
      description:
        "Tokens that are accepted, by name. No key for models is one of these, and the other way round",
      additionalProperties: closed(
        {
          role: { enum: [...ROLES], description: "What its holder may: metrics is the least" },
          token: {
            type: "string",
            pattern: `^[!-~]{${SHORTEST},512}$`,
            "x-expects": `${SHORTEST} to 512 printable characters, as \`openssl rand -hex 32\` gives`,
            "x-secret": true,
            description: "What is presented as Authorization: Bearer",
          },
        },
        { required: ["role", "token"] },
      ),
    },
  },
  {
    required: ["tokens"],
    description: "Where operators' programs ask what plugins serve them; absent, nowhere",
  },
);

export function checkAdmin(said: unknown, report: Report): void {
  if (!isMapping(said)) return;
  for (const key of ["host", "port"])
    if (said["socket"] !== undefined && said[key] !== undefined)
      report(problem.besideSocket(key), `/admin/${key}`, "key");
  const { host } = said;
  if (typeof host === "string" && !isLoopback(host) && said["behind_proxy"] !== true)
    report(problem.adminExposed(host), "/admin/host");
  checkTokens(said["tokens"], report);
}

/** Two equal tokens would be one holder with two roles. */
function checkTokens(tokens: unknown, report: Report): void {
  if (!isMapping(tokens)) return;
  const names = new Map<string, string>();
  for (const [name, each] of Object.entries(tokens)) {
    const token = isMapping(each) ? each["token"] : undefined;
    if (typeof token !== "string") continue;
    const other = names.get(token);
    if (other !== undefined)
      report(problem.sameToken(other), below(below("/admin/tokens", name), "token"));
    names.set(token, name);
  }
}

/** `from`: the file that it stands in. */
export function adminOf(said: any, from: string): AdminConfig | undefined {
  if (!isMapping(said)) return undefined;
  const { host = "127.0.0.1", port = 9787, socket, hosts, tokens } = said as any;
  return {
    at: socket === undefined ? { host, port } : { socket: resolve(dirname(from), socket) },
    hosts,
    tokens: Object.entries(tokens as Record<string, Omit<AdminToken, "name">>).map(
      ([name, { role, token }]) => ({ name, role, token }),
    ),
  };
}
