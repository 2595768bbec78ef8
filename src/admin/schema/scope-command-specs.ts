// Specifications of the commands for scopes.
import type { CommandSpec } from "./command-spec.ts";
import { NO_INPUT, nameOf, outputSchema, text, withCli } from "./schema-fields.ts";

export const SCOPE_COMMAND_SPECS = {
  "scopes.list": {
    summary: "List scopes and their limits",
    input: NO_INPUT,
    output: outputSchema("scopes"),
    role: "viewer",
    writes: false,
    cli: {
      words: "scopes list",
      description:
        "Lists the scopes of gateway.yaml: where the value of a member is read, its limits, and what happens above a limit.",
      examples: ["tollgate scopes", "tollgate scopes list --json"],
    },
    worksOffline: false,
  },
  "scopes.show": {
    summary: "Show the members of a scope, or the usage of one member",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name"],
      properties: {
        name: text("Key of the scope under scopes"),
        value: withCli(text("Value that names the member, such as a session ID"), {
          value: "value",
        }),
        key: withCli(text("ID or name of the key within which the value is unique"), {
          value: "key",
        }),
        account: nameOf("Account within which the value is unique"),
      },
    },
    output: outputSchema("scope"),
    role: "viewer",
    writes: false,
    cli: {
      words: "scopes show",
      description:
        "Shows the members of a scope with the highest cost in the last 24 hours. With --value, shows the limits of one member with their usage. With --key or --account, the value is unique within that key or account, as the option within of the scope requires.",
      args: ["name"],
      examples: [
        "tollgate scopes show session",
        "tollgate scopes show session --value 4f2c --key laptop",
      ],
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
