// Specifications of the key commands.
import type { CommandSpec } from "./command-spec.ts";
import { newKeyId } from "../../lib/api-key.ts";
import {
  outputSchema,
  booleanField,
  KEY_INPUT,
  LABELS_SCHEMA,
  LIMITS_SCHEMA,
  NO_INPUT,
  nullable,
  printed,
  privacy,
  text,
  VERSION_SCHEMA,
  nonNegativeInteger,
  textList,
} from "./schema-fields.ts";

const nameField = printed("Display name");
const MODELS_DESCRIPTION = 'Models that the key may use, as in "openai/*". Default: all';
const FRONTENDS_DESCRIPTION = "Frontends that the key may use. Default: all";
const ACCOUNT_DESCRIPTION = "Account that the key is charged to";
const EXPIRES_DESCRIPTION = "Expiry time in Unix milliseconds";

const GRANT_FIELDS = {
  name: nameField,
  models: textList(MODELS_DESCRIPTION),
  frontends: textList(FRONTENDS_DESCRIPTION),
  privacy,
  account: text(ACCOUNT_DESCRIPTION),
  expires: nonNegativeInteger(EXPIRES_DESCRIPTION),
  limits: LIMITS_SCHEMA,
  labels: LABELS_SCHEMA,
} as const;

export const KEY_COMMAND_SPECS = {
  "keys.create": {
    summary: "Create an API key",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...GRANT_FIELDS,
        defaults: booleanField("Whether the key gets the account's default limits. Default: true"),
      },
    },
    output: outputSchema("secret", "key", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    createId: newKeyId,
    cli: "keys create",
    accountScope: { accountMember: "account", defaultsToOwn: true, emptiedLists: ["warnings"] },
    worksOffline: true,
  },
  "keys.list": {
    summary: "List API keys, including those of gateway.yaml",
    input: NO_INPUT,
    output: outputSchema("keys"),
    role: "viewer",
    writes: false,
    cli: "keys list",
    accountScope: { filteredList: ["keys", "account"] },
    worksOffline: true,
  },
  "keys.show": {
    summary: "Show an API key",
    input: KEY_INPUT,
    output: outputSchema("keys"),
    role: "viewer",
    writes: false,
    cli: "keys show",
    accountScope: { keyMember: "id" },
    worksOffline: true,
  },
  "keys.update": {
    summary: "Update the settings of an API key",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        name: nullable(nameField),
        models: nullable(textList(MODELS_DESCRIPTION)),
        frontends: nullable(textList(FRONTENDS_DESCRIPTION)),
        privacy: { enum: ["off", "required", "strict", null], description: privacy.description },
        account: nullable(text(ACCOUNT_DESCRIPTION)),
        expires: nullable(nonNegativeInteger(EXPIRES_DESCRIPTION)),
        limits: nullable(LIMITS_SCHEMA),
        labels: nullable(LABELS_SCHEMA),
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("keys", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: "keys update",
    accountScope: { keyMember: "id", accountMember: "account", emptiedLists: ["warnings"] },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: true,
  },
  "keys.import": {
    summary: "Import keys of another gateway by their hashes",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["keys"],
      properties: {
        keys: {
          type: "array",
          minItems: 1,
          maxItems: 1_000,
          items: {
            type: "object",
            additionalProperties: false,
            required: ["digest"],
            properties: {
              digest: {
                type: "string",
                pattern: "^[0-9a-f]{64}$",
                description: "SHA-256 hash of the key, in hexadecimal",
              },
              ...GRANT_FIELDS,
              revoked: booleanField("Whether the key is already revoked"),
              spent: {
                type: "integer",
                minimum: 0,
                description:
                  "Previous spending in the current windows, in billionths of a US dollar",
              },
            },
          },
          description: "Keys to import, which clients can keep using. Maximum: 1,000",
        },
        defaults: booleanField("Whether the keys get the account's default limits. Default: false"),
      },
    },
    output: outputSchema("keys", "existing", "warnings"),
    role: "owner",
    writes: true,
    isSerialized: true,
    cli: "keys import",
    worksOffline: true,
  },
  "keys.revoke": {
    summary: "Revoke an API key",
    input: { ...KEY_INPUT, properties: { ...KEY_INPUT.properties, version: VERSION_SCHEMA } },
    output: outputSchema("keys"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: "keys revoke",
    accountScope: { keyMember: "id" },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: true,
  },
  "keys.move": {
    summary: "Move an API key to another account or to none",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        account: text("Target account. If unset, none"),
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("keys"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: "keys move",
    accountScope: { keyMember: "id", accountMember: "account", defaultsToOwn: true },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: true,
  },
  "keys.rotate": {
    summary: "Rotate the secret of an API key",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        overlapMs: nonNegativeInteger(
          "Time for which the old secret stays valid, in milliseconds. Default: 0",
        ),
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("secret", "key"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: "keys rotate",
    accountScope: { keyMember: "id" },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: true,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
