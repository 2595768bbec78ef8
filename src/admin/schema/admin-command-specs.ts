// Specifications of the commands for admin tokens and sessions.
import type { CommandSpec } from "./command-spec.ts";
import { ROLES } from "../../config/sections/admin-config.ts";
import {
  outputSchema,
  integerUpTo,
  NO_INPUT,
  printed,
  text,
  nonNegativeInteger,
} from "./schema-fields.ts";

export const ADMIN_COMMAND_SPECS = {
  "admins.create": {
    summary: "make an admin token, and print it once",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name", "role"],
      properties: {
        name: printed("The holder's name, as the audit log shows it"),
        role: { enum: ROLES, description: "What its holder may do" },
        account: text("It sees and changes what is of this account and below it, and nothing else"),
        expires: nonNegativeInteger("When it ends, in Unix milliseconds"),
      },
    },
    output: outputSchema("secret", "admin"),
    role: "owner",
    writes: true,
    cli: "admins create",
    changedRecord: { idMember: "name" },
    worksOffline: true,
  },
  "admins.list": {
    summary: "list admin tokens, including revoked ones, and the admins of gateway.yaml",
    input: NO_INPUT,
    output: outputSchema("admins", "tokens", "oidc"),
    role: "viewer",
    writes: false,
    cli: "admins list",
    worksOffline: true,
  },
  "admins.revoke": {
    summary: "revoke an admin token and its sessions",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: { id: text("Its id, or its name") },
    },
    output: outputSchema("admins"),
    role: "owner",
    writes: true,
    cli: "admins revoke",
    worksOffline: true,
    changedRecord: { idMember: "id" },
  },
  "audit.list": {
    summary: "list what was changed, and by whose command, newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: nonNegativeInteger("From this moment on, in Unix milliseconds"),
        to: nonNegativeInteger("Up to this moment, in Unix milliseconds"),
        after: text("Behind this one: `next` of the page before"),
        limit: integerUpTo(1_000, "How many at most; 100 by default"),
      },
    },
    output: outputSchema("items"),
    role: "viewer",
    writes: false,
    cli: "audit",
    worksOffline: true,
  },
  "sessions.list": {
    summary: "list who is signed in",
    input: NO_INPUT,
    output: outputSchema("sessions"),
    role: "owner",
    writes: false,
    cli: "sessions list",
    worksOffline: false,
  },
  "sessions.revoke": {
    summary: "sign one session out, or all",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        id: text("The session, as `tollgate sessions list` shows it; all when absent"),
      },
    },
    output: outputSchema("revoked"),
    role: "owner",
    writes: true,
    cli: "sessions revoke",
    worksOffline: false,
    changedRecord: { idMember: "id" },
  },
  console: {
    summary: "make a link that opens the console, once, within a minute",
    input: NO_INPUT,
    output: outputSchema("url", "code", "expiresAt"),
    role: "owner",
    writes: true,
    cli: "console",
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
