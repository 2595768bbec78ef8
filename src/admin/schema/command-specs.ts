// Table of all gateway commands: purpose, input, output, role, and whether a command changes
// anything. The control socket, the admin API, and the command line all use this table.
import { ACCOUNT_COMMAND_SPECS } from "./account-command-specs.ts";
import { ADMIN_COMMAND_SPECS } from "./admin-command-specs.ts";
import type { CommandSpec } from "./command-spec.ts";
import {
  outputSchema,
  MODEL_INPUT,
  NO_INPUT,
  privacy,
  LEDGER_FILTER,
  text,
  nonNegativeInteger,
} from "./schema-fields.ts";
import { KEY_COMMAND_SPECS } from "./key-command-specs.ts";
import { MAINTENANCE_COMMAND_SPECS } from "./maintenance-command-specs.ts";
import { CONFIG_COMMAND_SPECS } from "./config-command-specs.ts";
import { PROVIDER_COMMAND_SPECS } from "./provider-command-specs.ts";
import { REQUEST_COMMAND_SPECS } from "./request-command-specs.ts";
import { DIMENSIONS, USAGE_COMMAND_SPECS } from "./usage-command-specs.ts";
import type { Infer } from "../../plugin/schema.ts";

export const COMMAND_SPECS = {
  status: {
    summary: "Show the status of the running gateway",
    input: NO_INPUT,
    output: outputSchema("version", "url", "state", "startedAt", "generation", "frontends"),
    role: "viewer",
    writes: false,
    cli: "status",
    accountScope: {
      shownMembers: ["version", "url", "state", "startedAt", "generation", "frontends"],
    },
    worksOffline: false,
  },
  fleet: {
    summary: "List the gateways that share the store",
    input: NO_INPUT,
    output: outputSchema("nodes", "warnings"),
    role: "viewer",
    writes: false,
    cli: "fleet",
    worksOffline: false,
  },
  attention: {
    summary: "List issues that need attention",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { account: text("Account whose data is included, with nested accounts") },
    },
    output: outputSchema("items", "omitted"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    worksOffline: false,
  },
  stats: {
    summary: "Show live stats of all processes",
    input: NO_INPUT,
    output: outputSchema(
      "processes",
      "inFlight",
      "ledger",
      "memory",
      "rejections",
      "droppedRecords",
    ),
    role: "metrics",
    writes: false,
    cli: "stats",
    worksOffline: false,
  },
  reload: {
    summary: "Reload gateway.yaml",
    input: NO_INPUT,
    output: outputSchema("ok", "generation", "problems"),
    role: "operator",
    writes: true,
    cli: "reload",
    worksOffline: false,
  },
  explain: {
    summary: "Explain how a request for a model is routed",
    input: {
      ...MODEL_INPUT,
      properties: {
        ...MODEL_INPUT.properties,
        frontend: text("Frontend for the simulated request"),
        key: text("ID or name of the key for the simulated request"),
        privacy,
      },
    },
    output: outputSchema("model", "frontend", "candidates", "hooks", "timeouts"),
    role: "viewer",
    writes: false,
    cli: "explain",
    accountScope: { keyMember: "key" },
    worksOffline: true,
  },
  "models.list": {
    summary: "List models with their prices",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        operation: text("Operation of the models"),
        provider: text("Provider of the models"),
        privacy,
      },
    },
    output: outputSchema("models"),
    role: "viewer",
    writes: false,
    cli: "models list",
    accountScope: {},
    worksOffline: true,
  },
  "models.explain": {
    summary: "Show the metadata of a model",
    input: MODEL_INPUT,
    output: outputSchema("name", "models", "suggestions"),
    role: "viewer",
    writes: false,
    cli: "models explain",
    accountScope: {},
    worksOffline: true,
  },
  "models.refresh": {
    summary: "Refresh the providers' model lists",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { provider: text("Provider to refresh") },
    },
    output: outputSchema("modelLists"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: "models refresh",
    worksOffline: false,
  },
  "policy.explain": {
    summary: "Show the data policy of each route to a model",
    input: { ...MODEL_INPUT, properties: { ...MODEL_INPUT.properties, privacy } },
    output: outputSchema("model", "requestedPrivacy", "routes", "blockedBy"),
    role: "viewer",
    writes: false,
    cli: "policy explain",
    accountScope: {},
    worksOffline: true,
  },
  "plugins.list": {
    summary: "List active plugins and their commands",
    input: NO_INPUT,
    output: outputSchema("plugins"),
    role: "viewer",
    writes: false,
    cli: "plugin",
    worksOffline: true,
  },
  ...CONFIG_COMMAND_SPECS,
  ...PROVIDER_COMMAND_SPECS,
  ...REQUEST_COMMAND_SPECS,
  "ledger.totals": {
    summary: "Summarize usage and cost",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        by: {
          type: "array",
          items: { enum: DIMENSIONS },
          description: `Grouping: ${DIMENSIONS.join(", ")}`,
        },
        tz: text("Time zone of days and hours, as in Europe/Berlin. Default: UTC"),
      },
    },
    output: outputSchema("rows", "total", "keyNames"),
    role: "viewer",
    writes: false,
    cli: "usage",
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: true,
  },
  ...USAGE_COMMAND_SPECS,
  "ledger.entries": {
    summary: "List rows of the ledger",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        after: text("Cursor: `next` of the previous page"),
        limit: nonNegativeInteger("Maximum number of rows"),
      },
    },
    output: outputSchema("items"),
    role: "viewer",
    writes: false,
    cli: "tail",
    worksOffline: true,
  },
  "ledger.verify": {
    summary: "Verify that no ledger row was altered",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { hash: text("Previously recorded hash that the ledger must contain") },
    },
    output: outputSchema("problems", "isVerifiable"),
    role: "viewer",
    writes: false,
    cli: "ledger verify",
    worksOffline: true,
  },
  "ledger.adjust": {
    summary: "Adjust the cost of a call",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["attempt", "usd", "reason"],
      properties: {
        attempt: text("ID of the call, which must be settled"),
        usd: text("US dollars to add to the cost. -0.25 subtracts a quarter"),
        reason: text("Reason, which is stored in the row"),
      },
    },
    output: outputSchema("attempt", "costNano"),
    role: "owner",
    writes: true,
    cli: "ledger adjust",
    changedRecord: { idMember: "attempt" },
    worksOffline: true,
  },
  ...MAINTENANCE_COMMAND_SPECS,
  ...KEY_COMMAND_SPECS,
  ...ACCOUNT_COMMAND_SPECS,
  ...ADMIN_COMMAND_SPECS,
} as const satisfies Readonly<Record<string, CommandSpec>>;

export type CommandName = keyof typeof COMMAND_SPECS;
export type InputOf<N extends CommandName> = Infer<(typeof COMMAND_SPECS)[N]["input"]>;
