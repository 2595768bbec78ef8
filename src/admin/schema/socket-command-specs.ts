// Specifications of the commands for open WebSockets.
import type { CommandSpec } from "./command-spec.ts";
import { integerUpTo, nameOf, outputSchema, text } from "./schema-fields.ts";

const ACCOUNT_FIELD = nameOf("Account whose connections are included, with nested accounts");

export const SOCKET_COMMAND_SPECS = {
  "sockets.list": {
    summary: "List open WebSockets and calls, oldest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        account: ACCOUNT_FIELD,
        limit: integerUpTo(500, "Maximum number of connections. Default: 100"),
      },
    },
    output: outputSchema("items", "total"),
    role: "viewer",
    writes: false,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    cli: {
      words: "sockets list",
      description:
        "Lists the open WebSockets and calls of all processes: key, frontend, model, age, running responses, and bytes. It shows nothing of their messages.",
      examples: ["tollgate sockets", "tollgate sockets list --account web --json"],
    },
    worksOffline: false,
  },
  "sockets.close": {
    summary: "Close an open WebSocket or call",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: text("ID of the connection, which tollgate sockets shows"),
        account: ACCOUNT_FIELD,
      },
    },
    output: outputSchema("closed"),
    role: "operator",
    writes: true,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    changedRecord: { idMember: "id" },
    cli: {
      words: "sockets close",
      description:
        "Closes a connection with the code 1008. Its running responses are canceled, and billed for what was produced. The client may connect again. To prevent that, revoke its key.",
      args: ["id"],
      examples: ["tollgate sockets close 4RkzQGd0m0000f3"],
      exits: "Exits with 1 if there is no such connection.",
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
