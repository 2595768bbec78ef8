// Commands about admins: their tokens and their sessions.
import type { CommandFacts } from "./command-facts.ts";
import { ROLES } from "../../config/admin.ts";
import { answer, atMost, NONE, printed, text, whole } from "./fields.ts";

export const ADMIN_COMMANDS = {
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
        expires: whole("When it ends, in Unix milliseconds"),
      },
    },
    output: answer("secret", "admin"),
    role: "owner",
    writes: true,
    cli: "admins create",
    changes: { target: "name" },
    onFiles: true,
  },
  "admins.list": {
    summary: "list admin tokens, ended ones too, and the admins of gateway.yaml",
    input: NONE,
    output: answer("admins", "tokens", "oidc"),
    role: "viewer",
    writes: false,
    cli: "admins list",
    onFiles: true,
  },
  "admins.end": {
    summary: "end an admin token and its sessions at once",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: { id: text("Its id, or its name") },
    },
    output: answer("admins"),
    role: "owner",
    writes: true,
    cli: "admins end",
    onFiles: true,
    changes: { target: "id" },
  },
  "audit.list": {
    summary: "list what was changed, and by whose command, newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: whole("From this moment on, in Unix milliseconds"),
        to: whole("Up to this moment, in Unix milliseconds"),
        after: text("Behind this one: `next` of the page before"),
        limit: atMost(1_000, "How many at most; 100 by default"),
      },
    },
    output: answer("items"),
    role: "viewer",
    writes: false,
    cli: "audit",
    onFiles: true,
  },
  "sessions.list": {
    summary: "list who is signed in",
    input: NONE,
    output: answer("sessions"),
    role: "owner",
    writes: false,
    cli: "sessions list",
    onFiles: false,
  },
  "sessions.end": {
    summary: "sign one session out, or all",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        id: text("The session, as `tollgate sessions list` shows it; all when absent"),
      },
    },
    output: answer("ended"),
    role: "owner",
    writes: true,
    cli: "sessions end",
    onFiles: false,
    changes: { target: "id" },
  },
  console: {
    summary: "make a link that opens the console, once, within a minute",
    input: NONE,
    output: answer("url", "word", "until"),
    role: "owner",
    writes: true,
    cli: "console",
    onFiles: false,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;
