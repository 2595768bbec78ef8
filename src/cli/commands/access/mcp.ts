// Lists and tests the MCP servers of the gateway, and creates links with which users connect their
// accounts. The work is done by commands of the frontend `mcp`.
import { fail } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import {
  type CliCommand,
  type CliInput,
  createCommandGroup,
  EXIT_CODES,
  GATEWAY_OPTIONS,
  type Options,
  type Subcommand,
} from "../../support/command.ts";
import { alignColumns, paint, print, printJson } from "../../format/terminal.ts";
import { callPluginCommand, listMountedPlugins } from "../plugins/plugin.ts";

/** Result of the frontend's command `servers`. */
interface ListedServer {
  readonly name: string;
  readonly url: string;
  readonly type: "mcp" | "openapi";
  readonly auth: string;
}

/** Result of the frontend's command `test`. */
interface TestedServer {
  readonly name: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly revision?: string;
  readonly tools?: readonly { readonly name: string; readonly priceUsd?: string }[];
  readonly problem?: string;
}

type Parts = Omit<Subcommand, "options"> & { readonly options?: Options };

const subcommand = (parts: Parts): Subcommand => ({
  ...parts,
  options: { ...parts.options, ...GATEWAY_OPTIONS },
});

const CLIENT_OPTION = {
  placeholder: "client",
  description: "Client whose connections are used: ID of a key, or jwt:<issuer>:<subject>",
} as const;

export const command: CliCommand = createCommandGroup(
  "mcp",
  "Lists and tests MCP servers, and connects accounts of users. The default command is list.",
  {
    list: subcommand({
      usage: "mcp list [options]",
      summary: "List the MCP servers",
      description: "Lists the servers of the frontend mcp. It sends no requests to them.",
      examples: ["tollgate mcp list", "tollgate mcp list --json"],
      async run(given) {
        const servers = (await run(given, "servers", {})) as readonly ListedServer[];
        if (given.json) printJson({ servers });
        else {
          const rows = servers.map(({ name, type, auth, url }) => [name, type, auth, url]);
          print(table(["name", "type", "auth", "url"], rows));
        }
        return EXIT_CODES.ok;
      },
    }),
    test: subcommand({
      usage: "mcp test [server] [options]",
      summary: "Test the MCP servers",
      description:
        "Calls each server, or one of them, and lists its tools. No tool is called. For servers whose users connect their own accounts, name the client with --client. Exits with 1 if a server cannot be used.",
      options: { client: CLIENT_OPTION },
      positionals: { least: 0, most: 1 },
      examples: ["tollgate mcp test", "tollgate mcp test github --client key_4RkzQGd0m0 --json"],
      async run(given) {
        const [server] = given.positionals;
        const client = given.getText("client");
        const input = {
          ...(server !== undefined && { server }),
          ...(client !== undefined && { client }),
        };
        const servers = (await run(given, "test", input)) as readonly TestedServer[];
        if (given.json) printJson({ servers });
        else print(servers.map(formatTested).join("\n"));
        return servers.every(({ ok }) => ok) ? EXIT_CODES.ok : EXIT_CODES.failed;
      },
    }),
    connect: subcommand({
      usage: "mcp connect <client> [options]",
      summary: "Create a link to connect accounts for a client",
      description:
        "Prints the state of each connection of a client, and a link at which its user connects accounts. The client is the ID of a key, or jwt:<issuer>:<subject>. The link is valid for 1 h. With --disconnect, it deletes a connection.",
      options: {
        disconnect: { placeholder: "server", description: "Delete the connection to this server" },
      },
      positionals: { least: 1, most: 1 },
      examples: [
        "tollgate mcp connect key_4RkzQGd0m0",
        "tollgate mcp connect key_4RkzQGd0m0 --disconnect github",
      ],
      async run(given) {
        const [client] = given.positionals as [string];
        const server = given.getText("disconnect");
        const input = { client, ...(server !== undefined && { disconnect: server }) };
        const { url, connections } = (await run(given, "connect", input)) as {
          readonly url: string;
          readonly connections: readonly { readonly server: string; readonly state: string }[];
        };
        if (given.json) printJson({ url, connections });
        else {
          print(
            table(
              ["server", "state"],
              connections.map((each) => [each.server, each.state]),
            ),
          );
          print(`\n${url}`);
        }
        return EXIT_CODES.ok;
      },
    }),
  },
  "list",
);

/** Runs a command of the frontend. */
async function run(given: CliInput, name: string, input: JsonObject) {
  const plugin = (await listMountedPlugins(given)).find(({ use }) => use === "mcp");
  if (!plugin)
    return fail(
      "not_found",
      "gateway.yaml mounts no frontend mcp. Add: frontends: [{ use: mcp, with: { servers: … } }].",
      { code: "no_such_plugin" },
    );
  return (await callPluginCommand(given, `${plugin.id}/${name}`, input)) as unknown;
}

const table = (titles: readonly string[], rows: readonly (readonly string[])[]): string =>
  alignColumns([titles.map((title) => paint("gray", title)), ...rows.map((row) => [...row])]);

function formatTested({ name, ok, ms, revision, tools = [], problem }: TestedServer): string {
  if (!ok) return `${paint("red", "failed")}  ${name}: ${problem}`;
  const speaks = revision === undefined ? "" : `, MCP ${revision}`;
  const lines = tools.map((tool) => [
    `  ${name}/${tool.name}`,
    tool.priceUsd === undefined ? "" : `$${tool.priceUsd}`,
  ]);
  const head = `${paint("green", "ok")}  ${name}: ${tools.length} tools in ${ms} ms${speaks}`;
  return lines.length === 0 ? head : `${head}\n${alignColumns(lines)}`;
}
