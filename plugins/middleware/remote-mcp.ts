// Restricts the MCP servers that requests name for providers. A provider connects to such a server
// itself, with the credential that the client sends along.
import { defineMiddleware, fail, matchesGlob, type RequestHead } from "tollgate/plugin";
import { findRemoteServers, type RemoteServer } from "./remote-mcp/remote-servers.ts";

interface Rule {
  readonly servers: readonly string[];
  readonly keys?: readonly string[];
  readonly accounts?: readonly string[];
}

const names = (description: string) =>
  ({ type: "array", items: { type: "string", minLength: 1 }, description }) as const;

export default defineMiddleware({
  api: 1,
  name: "remote-mcp",
  summary: "Restrict the MCP servers that clients let providers call",
  stability: "experimental",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      allow: {
        type: "array",
        default: [],
        description: "Rules that allow servers. A server needs one rule. Default: none is allowed",
        items: {
          type: "object",
          additionalProperties: false,
          required: ["servers"],
          properties: {
            servers: {
              type: "array",
              minItems: 1,
              items: {
                type: "string",
                pattern: "^(?:\\*$|https://[^/*?#]+(?:/.*)?$|connector:.|tunnel:.)",
                "x-expects":
                  "a URL such as https://mcp.example.com/*, connector:<id>, or tunnel:<id>",
              },
              description:
                "URLs of servers, connector:<id> for a connector of the provider, or tunnel:<id> for a tunnel. A * matches any text. The host of a URL contains no *",
            },
            keys: names("IDs of keys that the rule applies to. Default: all keys"),
            accounts: names(
              "Accounts whose keys the rule applies to. A * matches any text. Default: all accounts",
            ),
          },
        },
      },
    },
  },
  setup: ({ allow }) => ({
    edit(x) {
      for (const server of findRemoteServers(x.body))
        if (!allow.some((rule) => appliesTo(rule, x) && permits(rule, server))) refuse(server);
      return undefined;
    },
  }),
});

const appliesTo = ({ keys, accounts }: Rule, { identity }: RequestHead): boolean =>
  (!keys || keys.includes(identity?.id ?? "")) &&
  (!accounts || accounts.some((one) => matchesGlob(one, identity?.account ?? "")));

const permits = ({ servers }: Rule, { address }: RemoteServer): boolean =>
  servers.some((one) => one === "*" || (address !== undefined && matchesGlob(one, address)));

/** The message does not contain the address, because messages are logged. */
const refuse = ({ path }: RemoteServer): never =>
  fail(
    "forbidden",
    `${path} names an MCP server that this gateway does not allow. Use a server of the gateway, or ask the operator to allow this server.`,
    { param: path, code: "mcp_server_not_allowed" },
  );
