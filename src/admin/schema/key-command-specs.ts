// Specifications of the key commands.
import type { CommandSpec } from "./command-spec.ts";
import { newKeyId } from "../../lib/api-key.ts";
import {
  outputSchema,
  booleanField,
  EXPIRES_FIELD,
  nameOf,
  withCli,
  KEY_INPUT,
  LABELS_SCHEMA,
  LIMITS_SCHEMA,
  NO_INPUT,
  nullable,
  printed,
  privacy,
  NULLABLE_PRIVACY,
  VERSION_SCHEMA,
  nonNegativeInteger,
  textList,
} from "./schema-fields.ts";

const nameField = printed("Display name");
const MODELS_DESCRIPTION = 'Models that the key may use, as in "openai/*". Default: all';
const FRONTENDS_DESCRIPTION = "Frontends that the key may use. Default: all";
const TOOLS_DESCRIPTION = "Tools. Default: all";
const ACCOUNT_DESCRIPTION = "Account that the key is charged to";

const GRANT_FIELDS = {
  name: nameField,
  models: textList(MODELS_DESCRIPTION, "pattern"),
  frontends: textList(FRONTENDS_DESCRIPTION, "name"),
  tools: textList(TOOLS_DESCRIPTION, "server/tool"),
  privacy,
  account: nameOf(ACCOUNT_DESCRIPTION),
  expires: EXPIRES_FIELD,
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
        defaults: withCli(
          booleanField("Whether the key gets the account's default limits. Default: true"),
          {
            flag: "no-defaults",
            form: "negated",
            description: "Skip the account's default limits for new keys",
          },
        ),
      },
    },
    output: outputSchema("secret", "key", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    createId: newKeyId,
    cli: {
      words: "keys create",
      description: "Creates an API key and prints it once. The key itself is not stored.",
      examples: [
        "tollgate keys create --name laptop --models 'demo/*' --limit requests=60/minute",
        "tollgate keys create --name ci --expires 30d --label team=web --account research",
      ],
    },
    accountScope: { accountMember: "account", defaultsToOwn: true, emptiedLists: ["warnings"] },
    worksOffline: "store",
  },
  "keys.list": {
    summary: "List API keys, including keys of gateway.yaml",
    input: NO_INPUT,
    output: outputSchema("keys"),
    role: "viewer",
    writes: false,
    cli: {
      words: "keys list",
      description: "Lists API keys with their permissions.",
      examples: ["tollgate keys list", "tollgate keys list --json"],
    },
    accountScope: { filteredList: ["keys", "account"] },
    worksOffline: "store",
  },
  "keys.show": {
    summary: "Show an API key",
    input: KEY_INPUT,
    output: outputSchema("keys"),
    role: "viewer",
    writes: false,
    cli: {
      words: "keys show",
      description: "Shows an API key by its ID, or by its name if the name is unique.",
      args: ["id"],
      examples: ["tollgate keys show laptop"],
    },
    accountScope: { keyMember: "id" },
    worksOffline: "store",
  },
  "keys.update": {
    summary: "Update the settings of an API key",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        name: nullable(nameField),
        models: nullable(textList(MODELS_DESCRIPTION, "pattern")),
        frontends: nullable(textList(FRONTENDS_DESCRIPTION, "name")),
        tools: nullable(textList(TOOLS_DESCRIPTION, "server/tool")),
        privacy: NULLABLE_PRIVACY,
        account: nullable(nameOf(ACCOUNT_DESCRIPTION)),
        expires: nullable(EXPIRES_FIELD),
        limits: nullable(LIMITS_SCHEMA),
        labels: nullable(LABELS_SCHEMA),
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("keys", "warnings"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "keys update",
      description:
        'Updates the permissions of an API key from its next request on. The secret is unchanged. Options that you omit are unchanged. Pass "none" to clear a value.',
      args: ["id"],
      examples: [
        "tollgate keys update laptop --limit usd=20/month --limit requests=60/minute",
        "tollgate keys update laptop --models none --expires 90d",
      ],
    },
    accountScope: { keyMember: "id", accountMember: "account", emptiedLists: ["warnings"] },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: "store",
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
    cli: {
      words: "keys import",
      description:
        "Imports the keys of another gateway by their SHA-256 hashes, from its JSON or CSV export. Clients keep their existing keys.",
      examples: ["tollgate keys import keys.csv", "tollgate keys import keys.json --account acme"],
    },
    worksOffline: "store",
  },
  "keys.revoke": {
    summary: "Revoke an API key",
    input: { ...KEY_INPUT, properties: { ...KEY_INPUT.properties, version: VERSION_SCHEMA } },
    output: outputSchema("keys"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "keys revoke",
      description: "Revokes an API key immediately. Open requests are finished.",
      args: ["id"],
      examples: ["tollgate keys revoke laptop"],
    },
    accountScope: { keyMember: "id" },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: "store",
  },
  "keys.move": {
    summary: "Move an API key to another account, or out of its account",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        account: nameOf("Target account. If unset, none"),
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("keys"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "keys move",
      description:
        "Moves an API key to another account. Later requests count toward that account. Existing ledger rows are unchanged.",
      args: ["id"],
      examples: ["tollgate keys move laptop --account research"],
    },
    accountScope: { keyMember: "id", accountMember: "account", defaultsToOwn: true },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: "store",
  },
  "keys.rotate": {
    summary: "Rotate the secret of an API key",
    input: {
      ...KEY_INPUT,
      properties: {
        ...KEY_INPUT.properties,
        overlapMs: withCli(
          nonNegativeInteger(
            "Time for which the old secret stays valid, in milliseconds. Default: 0",
          ),
          {
            flag: "overlap",
            value: "time",
            form: "duration",
            description: "Time for which the old secret stays valid (default: 24h)",
          },
        ),
        version: VERSION_SCHEMA,
      },
    },
    output: outputSchema("secret", "key"),
    role: "operator",
    writes: true,
    isSerialized: true,
    cli: {
      words: "keys rotate",
      description:
        "Prints a new secret for an API key. The old secret stays valid for the overlap.",
      args: ["id"],
      examples: ["tollgate keys rotate laptop --overlap 1h"],
    },
    accountScope: { keyMember: "id" },
    changedRecord: { idMember: "id", readCommand: "keys.show" },
    worksOffline: "store",
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
