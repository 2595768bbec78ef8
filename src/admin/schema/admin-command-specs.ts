// Specifications of the commands for admin tokens and sessions.
import type { CommandSpec } from "./command-spec.ts";
import { ROLES } from "../../config/sections/admin-config.ts";
import {
  outputSchema,
  EXPIRES_FIELD,
  integerUpTo,
  LEDGER_FILTER,
  nameOf,
  withCli,
  NO_INPUT,
  printed,
  text,
} from "./schema-fields.ts";

export const ADMIN_COMMAND_SPECS = {
  "admins.create": {
    summary: "Create an admin token",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name", "role"],
      properties: {
        name: printed("Name of the holder in the audit log"),
        role: { enum: ROLES, description: "Role of the token" },
        account: nameOf("Account that the token is limited to, including nested accounts"),
        expires: EXPIRES_FIELD,
      },
    },
    output: outputSchema("secret", "admin"),
    role: "owner",
    writes: true,
    cli: {
      words: "admins create",
      description:
        "Creates a token for the admin listener and prints it once. The token is not stored and gives no access to models.",
      args: ["name"],
      examples: [
        "tollgate admins create anna --role owner",
        "tollgate admins create research-lead --role operator --account research --expires 90d",
      ],
    },
    changedRecord: { idMember: "name" },
    worksOffline: "store",
  },
  "admins.list": {
    summary: "List admins and admin tokens, including revoked entries",
    input: NO_INPUT,
    output: outputSchema("admins", "tokens", "oidc"),
    role: "viewer",
    writes: false,
    cli: {
      words: "admins list",
      description:
        "Lists admin tokens with their roles, including revoked tokens. The list covers tokens in the store, tokens in gateway.yaml, and the roles of the identity provider's groups.",
      examples: ["tollgate admins list"],
    },
    worksOffline: "store",
  },
  "admins.revoke": {
    summary: "Revoke an admin token and its sessions",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: { id: text("ID or name of the admin token") },
    },
    output: outputSchema("admins"),
    role: "owner",
    writes: true,
    cli: {
      words: "admins revoke",
      description: "Revokes an admin token and its sessions.",
      args: ["id"],
      examples: ["tollgate admins revoke anna"],
    },
    worksOffline: "store",
    changedRecord: { idMember: "id" },
  },
  "audit.list": {
    summary: "List audited commands, newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: LEDGER_FILTER.from,
        to: LEDGER_FILTER.to,
        after: withCli(text("Cursor: `next` of the previous page"), { value: "next" }),
        limit: integerUpTo(1_000, "Maximum number of entries. Default: 100"),
      },
    },
    output: outputSchema("items"),
    role: "viewer",
    writes: false,
    cli: {
      words: "audit",
      description:
        "Lists the changes that admin commands made, newest first. Each change is recorded in the ledger's hash chain before it takes effect, so tollgate ledger verify detects changed or removed entries.",
      examples: ["tollgate audit", "tollgate audit --limit 10 --json"],
    },
    worksOffline: "store",
  },
  "sessions.list": {
    summary: "List console sessions",
    input: NO_INPUT,
    output: outputSchema("sessions"),
    role: "owner",
    writes: false,
    cli: {
      words: "sessions list",
      description:
        "Lists console sessions. A session ends after 30 minutes without use, and after 12 hours at the latest.",
      examples: ["tollgate sessions list"],
    },
    worksOffline: false,
  },
  "sessions.revoke": {
    summary: "End one console session or all",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        id: text("Session ID from `tollgate sessions list`. If unset, all sessions"),
      },
    },
    output: outputSchema("revoked"),
    role: "owner",
    writes: true,
    cli: {
      words: "sessions revoke",
      description: "Revokes one console session, or all sessions if no ID is given.",
      args: ["id"],
      examples: ["tollgate sessions revoke"],
    },
    worksOffline: false,
    changedRecord: { idMember: "id" },
  },
  console: {
    summary: "Create a one-time console link, valid for 1 minute",
    input: NO_INPUT,
    output: outputSchema("url", "code", "expiresAt"),
    role: "owner",
    writes: true,
    cli: {
      words: "console",
      description:
        "Prints a sign-in link to the console of the running gateway, as owner. The link works once, within a minute. The part after # is never sent to a server or logged.",
      examples: ["tollgate console", "tollgate console --state-dir /var/lib/tollgate"],
    },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
