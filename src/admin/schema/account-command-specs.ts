// Specifications of the account commands.
import type { CommandSpec } from "./command-spec.ts";
import { LIMIT_SCHEMA } from "../../plugin/store/limit.ts";
import {
  outputSchema,
  booleanField,
  nameOf,
  withCli,
  LABELS_SCHEMA,
  LIMITS_SCHEMA,
  nullable,
  printed,
  privacy,
  NULLABLE_PRIVACY,
  text,
  VERSION_SCHEMA,
  textList,
} from "./schema-fields.ts";

const ACCOUNT_ID = {
  type: "string",
  pattern: "^[a-z0-9][a-z0-9._-]*$",
  maxLength: 100,
  "x-expects": "lowercase letters, digits, dashes, dots, and underscores",
} as const;
const ACCOUNT_INPUT = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: text("The account") },
} as const;
const PARENT_DESCRIPTION = "Parent account. Default: none";
const nameField = printed("Display name");
const MODELS_DESCRIPTION =
  'Models that keys of the account may use, as in "openai/*". Default: all';
const TOOLS_DESCRIPTION = "Tools. Default: all";
const FRONTENDS_DESCRIPTION = "Frontends that keys of the account may use. Default: all";
const defaultsField = withCli(
  {
    type: "object",
    additionalProperties: false,
    required: ["limits"],
    properties: { limits: { type: "array", minItems: 1, items: LIMIT_SCHEMA } },
    description: "Default settings of new keys in this account",
  } as const,
  {
    flag: "default-limit",
    value: "limit",
    form: "defaults",
    description: "Default limit of new keys in this account",
  },
);
const DISCLOSE_LIMITS = {
  description:
    "Whether clients can see the limits. full: with numbers. hidden: only the retry time. Default: full",
  "x-cli": { flag: "disclose-limits", value: "full|hidden" },
} as const;

export const ACCOUNT_COMMAND_SPECS = {
  "accounts.list": {
    summary: "List accounts, including accounts of gateway.yaml",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { closed: booleanField("Whether to include closed accounts") },
    },
    output: outputSchema("accounts"),
    role: "viewer",
    writes: false,
    cli: {
      words: "accounts list",
      description: "Lists accounts as a tree, with the remaining amount of each limit.",
      examples: ["tollgate accounts list"],
    },
    accountScope: { filteredList: ["accounts", "id"] },
    worksOffline: "store",
  },
  "accounts.show": {
    summary: "Show an account with its hierarchy and remaining limits",
    input: ACCOUNT_INPUT,
    output: outputSchema("account", "ancestors", "accounts", "keys"),
    role: "viewer",
    writes: false,
    cli: {
      words: "accounts show",
      description: "Shows an account with its parent and nested accounts.",
      args: ["id"],
      examples: ["tollgate accounts show web"],
    },
    accountScope: { accountMember: "id", emptiedLists: ["ancestors"] },
    worksOffline: "store",
  },
  "accounts.create": {
    summary: "Create an account",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: { ...ACCOUNT_ID, description: "Permanent ID of the account" },
        parent: nameOf(PARENT_DESCRIPTION),
        name: nameField,
        limits: LIMITS_SCHEMA,
        defaults: defaultsField,
        models: textList(MODELS_DESCRIPTION, "pattern"),
        frontends: textList(FRONTENDS_DESCRIPTION, "name"),
        tools: textList(TOOLS_DESCRIPTION, "server/tool"),
        privacy,
        labels: LABELS_SCHEMA,
        discloseLimits: { enum: ["full", "hidden"], ...DISCLOSE_LIMITS },
      },
    },
    output: outputSchema("account", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "accounts create",
      description: "Creates an account, which several keys share. Accounts can be nested.",
      args: ["id"],
      examples: [
        "tollgate accounts create acme --limit usd=1000/month --privacy required",
        "tollgate accounts create web --parent acme --limit usd=300/month --default-limit usd=20/month",
      ],
    },
    changedRecord: { idMember: "id" },
    worksOffline: "store",
  },
  "accounts.update": {
    summary: "Update or move an account",
    input: {
      ...ACCOUNT_INPUT,
      properties: {
        ...ACCOUNT_INPUT.properties,
        parent: nullable(nameOf(PARENT_DESCRIPTION)),
        name: nullable(nameField),
        limits: nullable(LIMITS_SCHEMA),
        defaults: nullable(defaultsField),
        models: nullable(textList(MODELS_DESCRIPTION, "pattern")),
        frontends: nullable(textList(FRONTENDS_DESCRIPTION, "name")),
        tools: nullable(textList(TOOLS_DESCRIPTION, "server/tool")),
        privacy: NULLABLE_PRIVACY,
        labels: nullable(LABELS_SCHEMA),
        discloseLimits: { enum: ["full", "hidden", null], ...DISCLOSE_LIMITS },
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("account", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "accounts update",
      description:
        'Updates or moves an account. Changes apply from the next request of each of its keys. Options that you omit are unchanged. Pass "none" to clear a value.',
      args: ["id"],
      examples: [
        "tollgate accounts update web --limit usd=500/month",
        "tollgate accounts update web --parent none",
      ],
    },
    changedRecord: { idMember: "id", readCommand: "accounts.show" },
    worksOffline: "store",
  },
  "accounts.close": {
    summary: "Close an account and reject its keys",
    input: {
      ...ACCOUNT_INPUT,
      properties: { ...ACCOUNT_INPUT.properties, version: VERSION_SCHEMA },
    },
    output: outputSchema("account"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "accounts close",
      description:
        "Closes an account. Requests with its keys, and with keys of accounts nested under it, are rejected.",
      args: ["id"],
      examples: ["tollgate accounts close web"],
    },
    changedRecord: { idMember: "id", readCommand: "accounts.show" },
    worksOffline: "store",
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
