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
const MODELS_DESCRIPTION = 'What it may use, as in "openai/*"; everything by default';
const FRONTENDS_DESCRIPTION = "Where it may ask; everywhere by default";
const ACCOUNT_DESCRIPTION = "The account that it draws on";
const EXPIRES_DESCRIPTION = "When it ends, in Unix milliseconds";

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
    summary: "make a key, and print it once",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...GRANT_FIELDS,
        defaults: booleanField(
          "Whether it gets the limits that new keys get there; yes by default",
        ),
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
    summary: "list keys, those of gateway.yaml too",
    input: NO_INPUT,
    output: outputSchema("keys"),
    role: "viewer",
    writes: false,
    cli: "keys list",
    accountScope: { filteredList: ["keys", "account"] },
    worksOffline: true,
  },
  "keys.show": {
    summary: "show all of one",
    input: KEY_INPUT,
    output: outputSchema("keys"),
    role: "viewer",
    writes: false,
    cli: "keys show",
    accountScope: { keyMember: "id" },
    worksOffline: true,
  },
  "keys.update": {
    summary: "change what one may do; its secret stays",
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
    summary: "take in keys of another gateway, by their hashes",
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
                description: "SHA-256 of the key, in hex",
              },
              ...GRANT_FIELDS,
              revoked: booleanField("Whether it is ended already"),
              spent: {
                type: "integer",
                minimum: 0,
                description:
                  "What it had spent elsewhere in the windows that are now, in billionths of a dollar",
              },
            },
          },
          description: "Keys that clients have, as they go on working; 1,000 at most",
        },
        defaults: booleanField(
          "Whether they get the limits that new keys get there; no by default",
        ),
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
    summary: "end one at once",
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
    summary: "put one into another account, or into none",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        account: text("The account; none when absent"),
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
    summary: "put a new secret in place of the old one",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        overlapMs: nonNegativeInteger(
          "How long the old secret still works, in milliseconds; 0 by default",
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
