// Specifications of the account commands.
import type { CommandSpec } from "./command-spec.ts";
import { LIMIT_SCHEMA } from "../../plugin/store/limit.ts";
import {
  outputSchema,
  booleanField,
  LABELS_SCHEMA,
  LIMITS_SCHEMA,
  nullable,
  printed,
  privacy,
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
const FRONTENDS_DESCRIPTION = "Frontends that keys of the account may use. Default: all";
const defaultsField = {
  type: "object",
  additionalProperties: false,
  required: ["limits"],
  properties: { limits: { type: "array", minItems: 1, items: LIMIT_SCHEMA } },
  description: "Default settings of new keys in this account",
} as const;
const DISCLOSE_LIMITS_DESCRIPTION =
  "Whether clients see its limits. full: with their numbers. hidden: only when to retry. Default: full";

export const ACCOUNT_COMMAND_SPECS = {
  "accounts.list": {
    summary: "List accounts, including those of gateway.yaml",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { closed: booleanField("Whether to include closed accounts") },
    },
    output: outputSchema("accounts"),
    role: "viewer",
    writes: false,
    cli: "accounts list",
    accountScope: { filteredList: ["accounts", "id"] },
    worksOffline: true,
  },
  "accounts.show": {
    summary: "Show an account with its hierarchy and remaining limits",
    input: ACCOUNT_INPUT,
    output: outputSchema("account", "ancestors", "accounts", "keys"),
    role: "viewer",
    writes: false,
    cli: "accounts show",
    accountScope: { accountMember: "id", emptiedLists: ["ancestors"] },
    worksOffline: true,
  },
  "accounts.create": {
    summary: "Create an account",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: { ...ACCOUNT_ID, description: "Permanent ID of the account" },
        parent: text(PARENT_DESCRIPTION),
        name: nameField,
        limits: LIMITS_SCHEMA,
        defaults: defaultsField,
        models: textList(MODELS_DESCRIPTION),
        frontends: textList(FRONTENDS_DESCRIPTION),
        privacy,
        labels: LABELS_SCHEMA,
        discloseLimits: { enum: ["full", "hidden"], description: DISCLOSE_LIMITS_DESCRIPTION },
      },
    },
    output: outputSchema("account", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: "accounts create",
    changedRecord: { idMember: "id" },
    worksOffline: true,
  },
  "accounts.update": {
    summary: "Update or move an account",
    input: {
      ...ACCOUNT_INPUT,
      properties: {
        ...ACCOUNT_INPUT.properties,
        parent: nullable(text(PARENT_DESCRIPTION)),
        name: nullable(nameField),
        limits: nullable(LIMITS_SCHEMA),
        defaults: nullable(defaultsField),
        models: nullable(textList(MODELS_DESCRIPTION)),
        frontends: nullable(textList(FRONTENDS_DESCRIPTION)),
        privacy: { enum: ["off", "required", "strict", null], description: privacy.description },
        labels: nullable(LABELS_SCHEMA),
        discloseLimits: {
          enum: ["full", "hidden", null],
          description: DISCLOSE_LIMITS_DESCRIPTION,
        },
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("account", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: "accounts update",
    changedRecord: { idMember: "id", readCommand: "accounts.show" },
    worksOffline: true,
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
    cli: "accounts close",
    changedRecord: { idMember: "id", readCommand: "accounts.show" },
    worksOffline: true,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
