// Specifications of the commands for scopes.
import type { CommandSpec } from "./command-spec.ts";
import { LIMIT_SCHEMA } from "../../plugin/store/limit.ts";
import { NO_INPUT, nameOf, outputSchema, text, withCli } from "./schema-fields.ts";

const SCOPE_NAME = text("Key of the scope under scopes");
const MEMBER_VALUE = withCli(text("Value that names the member, such as a session ID"), {
  value: "value",
});
/** The owner within which a value is unique. */
const OWNER_FIELDS = {
  key: withCli(text("ID or name of the key within which the value is unique"), { value: "key" }),
  account: nameOf("Account within which the value is unique"),
} as const;

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
        name: SCOPE_NAME,
        value: MEMBER_VALUE,
        ...OWNER_FIELDS,
        search: withCli(text("Text that the values of the listed members contain"), {
          value: "text",
        }),
      },
    },
    output: outputSchema("scope"),
    role: "viewer",
    writes: false,
    cli: {
      words: "scopes show",
      description:
        "Shows the members of a scope with the highest cost in the last 24 hours, up to 50, with the usage of their limits. With --value, shows the limits of one member with their usage. With --key or --account, the value is unique within that key or account, as the option within of the scope requires.",
      args: ["name"],
      examples: [
        "tollgate scopes show session",
        "tollgate scopes show session --value 4f2c --key laptop",
      ],
    },
    worksOffline: false,
  },
  "scopes.reset": {
    summary: "Reset the usage of a member of a scope to 0",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name", "value"],
      properties: { name: SCOPE_NAME, value: MEMBER_VALUE, ...OWNER_FIELDS },
    },
    output: outputSchema("scope", "limitUsage"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "name" },
    redactedInput: ["value"],
    cli: {
      words: "scopes reset",
      description:
        "Sets what a member of a scope has used to 0, in all its current windows. Open requests keep their reservations. The ledger rows and their cost do not change.",
      args: ["name"],
      examples: ["tollgate scopes reset session --value 4f2c --key laptop"],
    },
    worksOffline: false,
  },
  "scopes.raise": {
    summary: "Allow a member of a scope more in the current window",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name", "value", "by"],
      properties: {
        name: SCOPE_NAME,
        value: MEMBER_VALUE,
        ...OWNER_FIELDS,
        by: withCli(
          {
            ...LIMIT_SCHEMA,
            description:
              "Additional amount, in the unit and window of a limit of the scope, such as usd=10/total",
          },
          { value: "limit" },
        ),
      },
    },
    output: outputSchema("scope", "limitUsage"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "name" },
    redactedInput: ["value"],
    cli: {
      words: "scopes raise",
      description:
        "Allows a member of a scope more than its limit: the amount of --by is subtracted from its usage. It applies until the window of the limit ends or, for a limit in total, until the member becomes idle. Only limits per day, week, and month, and in total can be raised, for a member that has sent a request in the window.",
      args: ["name"],
      examples: ["tollgate scopes raise session --value 4f2c --key laptop --by usd=10/total"],
    },
    worksOffline: false,
  },
  "scopes.erase": {
    summary: "Permanently erase a member of a scope",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name", "value"],
      properties: { name: SCOPE_NAME, value: MEMBER_VALUE, ...OWNER_FIELDS },
    },
    output: outputSchema("texts", "hashes"),
    role: "owner",
    writes: true,
    changedRecord: { idMember: "name" },
    redactedInput: ["value"],
    cli: {
      words: "scopes erase",
      description:
        'Permanently erases the value of a member, and its hash, from the labels of all ledger rows and totals, and resets its usage. Reports show "erased" instead. Without --key and --account, the usage is reset for all keys and accounts. The command is rejected if a key or an account that is in use has the value as a label. The counters contain only a keyed hash, and are removed after the idle time of the scope. Erasing cannot be undone. Earlier backups and archives still contain the value.',
      args: ["name"],
      examples: ["tollgate scopes erase end_user --value alice@example.com"],
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
