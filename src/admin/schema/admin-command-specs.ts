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
    summary: "Create an admin token",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["name", "role"],
      properties: {
        name: printed("Name of the holder in the audit log"),
        role: { enum: ROLES, description: "Role of the token" },
        account: text("Account that the token is limited to, including nested accounts"),
        expires: nonNegativeInteger("Expiry time in Unix milliseconds"),
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
    summary: "List admins and admin tokens, including revoked ones",
    input: NO_INPUT,
    output: outputSchema("admins", "tokens", "oidc"),
    role: "viewer",
    writes: false,
    cli: "admins list",
    worksOffline: true,
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
    cli: "admins revoke",
    worksOffline: true,
    changedRecord: { idMember: "id" },
  },
  "audit.list": {
    summary: "List audited commands, newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: nonNegativeInteger("Start time, inclusive, in Unix milliseconds"),
        to: nonNegativeInteger("End time, exclusive, in Unix milliseconds"),
        after: text("Cursor: `next` of the previous page"),
        limit: integerUpTo(1_000, "Maximum number of entries. Default: 100"),
      },
    },
    output: outputSchema("items"),
    role: "viewer",
    writes: false,
    cli: "audit",
    worksOffline: true,
  },
  "sessions.list": {
    summary: "List console sessions",
    input: NO_INPUT,
    output: outputSchema("sessions"),
    role: "owner",
    writes: false,
    cli: "sessions list",
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
    cli: "sessions revoke",
    worksOffline: false,
    changedRecord: { idMember: "id" },
  },
  console: {
    summary: "Create a one-time console link, valid for 1 minute",
    input: NO_INPUT,
    output: outputSchema("url", "code", "expiresAt"),
    role: "owner",
    writes: true,
    cli: "console",
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
