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
    summary: "show the state of the running gateway",
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
    summary: "list the gateways that share the store",
    input: NO_INPUT,
    output: outputSchema("nodes", "warnings"),
    role: "viewer",
    writes: false,
    cli: "fleet",
    worksOffline: false,
  },
  attention: {
    summary: "list what needs attention: budgets, models that retire, certificates, providers",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { account: text("Only of this account and the accounts below it") },
    },
    output: outputSchema("items", "omitted"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    worksOffline: false,
  },
  stats: {
    summary: "show what happens in all processes",
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
    summary: "read gateway.yaml again",
    input: NO_INPUT,
    output: outputSchema("ok", "generation", "problems"),
    role: "operator",
    writes: true,
    cli: "reload",
    worksOffline: false,
  },
  explain: {
    summary: "say what a request for a model would meet",
    input: {
      ...MODEL_INPUT,
      properties: {
        ...MODEL_INPUT.properties,
        frontend: text("As if it were asked there"),
        key: text("As if this key asked: its id or its name"),
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
    summary: "list those that exist, with their prices",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        operation: text("Of one operation"),
        provider: text("Of one provider"),
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
    summary: "say all that is known of one",
    input: MODEL_INPUT,
    output: outputSchema("name", "models", "suggestions"),
    role: "viewer",
    writes: false,
    cli: "models explain",
    accountScope: {},
    worksOffline: true,
  },
  "models.refresh": {
    summary: "ask providers for their lists now",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { provider: text("Only this provider") },
    },
    output: outputSchema("modelLists"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: "models refresh",
    worksOffline: false,
  },
  "policy.explain": {
    summary: "say what becomes of data on every way to a model",
    input: { ...MODEL_INPUT, properties: { ...MODEL_INPUT.properties, privacy } },
    output: outputSchema("model", "requestedPrivacy", "routes", "blockedBy"),
    role: "viewer",
    writes: false,
    cli: "policy explain",
    accountScope: {},
    worksOffline: true,
  },
  "plugins.list": {
    summary: "list the plugins that are mounted, and the commands that they bring",
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
    summary: "sum up what was used and what it cost",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        by: {
          type: "array",
          items: { enum: DIMENSIONS },
          description: `What it is summed up by: ${DIMENSIONS.join(", ")}`,
        },
        tz: text("Whose days and hours they are, as in Europe/Berlin; UTC by default"),
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
    summary: "read the rows of the ledger",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        after: text("Behind this one: `next` of the page before"),
        limit: nonNegativeInteger("How many at most"),
      },
    },
    output: outputSchema("items"),
    role: "viewer",
    writes: false,
    cli: "tail",
    worksOffline: true,
  },
  "ledger.verify": {
    summary: "whether every row is what was written",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { hash: text("A hash that was noted down, and must still be in it") },
    },
    output: outputSchema("problems", "isVerifiable"),
    role: "viewer",
    writes: false,
    cli: "ledger verify",
    worksOffline: true,
  },
  "ledger.adjust": {
    summary: "correct what a call has cost, as a row of its own",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["attempt", "usd", "reason"],
      properties: {
        attempt: text("The call, as its rows name it; it must be settled"),
        usd: text("Dollars on top of its cost: -0.25 takes a quarter off"),
        reason: text("Why; it stands in the row"),
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
