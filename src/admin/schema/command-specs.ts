// Table of all gateway commands: purpose, input, output, role, and whether a command can change
// data. The control socket, the admin API, and the command line all use this table.
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
  nameOf,
  withCli,
} from "./schema-fields.ts";
import { JOB_COMMAND_SPECS } from "./job-command-specs.ts";
import { KEY_COMMAND_SPECS } from "./key-command-specs.ts";
import { MAINTENANCE_COMMAND_SPECS } from "./maintenance-command-specs.ts";
import { CONFIG_COMMAND_SPECS, PROVIDER_COMMAND_SPECS } from "./config-command-specs.ts";
import { REQUEST_COMMAND_SPECS } from "./request-command-specs.ts";
import { SCOPE_COMMAND_SPECS } from "./scope-command-specs.ts";
import { SOCKET_COMMAND_SPECS } from "./socket-command-specs.ts";
import { BUILT_IN_OPERATIONS } from "../../model/operations/built-in-operations.ts";
import {
  CACHE_DIMENSIONS,
  DIMENSIONS,
  TIME_ZONE_FIELD,
  USAGE_COMMAND_SPECS,
} from "./usage-command-specs.ts";
import type { Infer } from "../../plugin/schema.ts";

export const COMMAND_SPECS = {
  status: {
    summary: "Show the status of the running gateway",
    input: NO_INPUT,
    output: outputSchema("version", "url", "state", "startedAt", "generation", "frontends"),
    role: "viewer",
    writes: false,
    cli: {
      words: "status",
      description:
        "Shows the status of the running gateway: address, start time, config generation, open requests, and the last reload.",
      examples: [
        "tollgate status",
        "tollgate status --quiet",
        "tollgate status --state-dir /var/lib/tollgate --json",
      ],
      exits: "With --quiet, exits with 1 until the gateway accepts requests.",
    },
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
    cli: {
      words: "fleet",
      description:
        "Lists the gateways that share the running gateway's store, which is marked " +
        "with a star. Shows the version of each gateway, the difference between its " +
        "clock and the store's clock, and the time for which it has missed key " +
        "changes.",
      examples: ["tollgate fleet", "tollgate fleet --json"],
    },
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
    cli: {
      words: "stats",
      description:
        "Shows live stats of all processes of the running gateway: requests, provider connections, ledger, memory, and requests that were rejected before routing.",
      examples: ["tollgate stats", "tollgate stats --json"],
    },
    worksOffline: false,
  },
  reload: {
    summary: "Reload gateway.yaml",
    input: NO_INPUT,
    output: outputSchema("ok", "generation", "problems"),
    role: "operator",
    writes: true,
    cli: {
      words: "reload",
      description:
        "Reloads gateway.yaml in the running gateway, and waits until all processes " +
        "of the gateway use it. If the file is invalid, the previous config stays in " +
        "use.",
      examples: ["tollgate reload", "tollgate reload --state-dir /var/lib/tollgate --json"],
      exits:
        "Exits with 78 if the file has errors, and with 1 if keys changed that need a restart.",
    },
    worksOffline: false,
  },
  explain: {
    summary: "Explain how a request for a model is routed",
    input: {
      ...MODEL_INPUT,
      properties: {
        ...MODEL_INPUT.properties,
        frontend: withCli(text("Frontend for the simulated request"), {
          short: "f",
          value: "name",
        }),
        key: withCli(text("ID or name of the key for the simulated request"), {
          value: "key",
          description: "ID or name of the key for the simulated request (needs a running gateway)",
        }),
        privacy,
      },
    },
    output: outputSchema("model", "frontend", "candidates", "hooks", "timeouts"),
    role: "viewer",
    writes: false,
    cli: {
      words: "explain",
      description:
        "Explains how a request for a model would be routed: the candidates in order, the excluded candidates with reasons, passthrough or translation, and the plugins that see the request. It sends no request.",
      args: ["model"],
      examples: [
        "tollgate explain demo/echo",
        "tollgate explain fast --frontend messages --zdr --json",
      ],
      exits: "Exits with 1 if there is no candidate.",
    },
    accountScope: { keyMember: "key" },
    worksOffline: "config",
  },
  "models.list": {
    summary: "List models with their prices",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        operation: withCli(text("Operation of the models"), {
          value: "operation",
          description: `Operation: ${[...BUILT_IN_OPERATIONS.keys()].join(", ")}, or one that a package adds`,
        }),
        provider: nameOf("Provider of the models"),
        privacy: withCli(privacy, {
          flag: "zdr",
          value: "level",
          description: "Only models with zero data retention: required or strict",
        }),
      },
    },
    output: outputSchema("models"),
    role: "viewer",
    writes: false,
    cli: {
      words: "models list",
      description: "Lists models with their prices.",
      examples: [
        "tollgate models --operation image",
        "tollgate models list --provider demo --json",
      ],
    },
    accountScope: {},
    worksOffline: "config",
  },
  "models.explain": {
    summary: "Show the metadata of a model",
    input: MODEL_INPUT,
    output: outputSchema("name", "models", "suggestions"),
    role: "viewer",
    writes: false,
    cli: {
      words: "models explain",
      description:
        "Explains a model: each fact with its source, the price of a request, and the retirement date.",
      args: ["model"],
      examples: ["tollgate models explain demo/echo --json"],
      exits: "Exits with 1 if no model list has the model.",
    },
    accountScope: {},
    worksOffline: "config",
  },
  "models.refresh": {
    summary: "Refresh the providers' model lists",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { provider: nameOf("Provider to refresh") },
    },
    output: outputSchema("modelLists"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "provider" },
    cli: {
      words: "models refresh",
      description: "Refreshes the model lists of all providers, or of one provider.",
      args: ["provider"],
      examples: ["tollgate models refresh openai"],
      exits: "Exits with 1 if a list cannot be refreshed.",
    },
    worksOffline: false,
  },
  "models.diff": {
    summary: "Show the changes of the price feed",
    input: NO_INPUT,
    output: outputSchema("feed", "version", "changes", "held", "truncated"),
    role: "operator",
    writes: false,
    cli: {
      words: "models diff",
      description:
        "Reads the price document again, and shows what it would change and what the calls of the last 30 days would have cost. Changes nothing. Also shows the prices that wait for approval.",
      examples: ["tollgate models diff", "tollgate models diff --json"],
      exits: "Exits with 1 if prices wait for approval.",
    },
    worksOffline: false,
  },
  "models.accept": {
    summary: "Accept prices that wait for approval",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["version"],
      properties: {
        version: { type: "integer", minimum: 1, description: "Version of the price document" },
        model: nameOf("Only the price of this model, such as openai/gpt-6"),
      },
    },
    output: outputSchema("accepted"),
    role: "operator",
    writes: true,
    changedRecord: { idMember: "model" },
    cli: {
      words: "models accept",
      description:
        "Accepts prices of the price feed that differ too much from the ones before. They apply to new calls from now on. Each gateway of a fleet accepts its own prices.",
      args: ["version"],
      examples: ["tollgate models accept 12", "tollgate models accept 12 --model openai/gpt-6"],
    },
    worksOffline: false,
  },
  "policy.explain": {
    summary: "Show the data policy of each route to a model",
    input: { ...MODEL_INPUT, properties: { ...MODEL_INPUT.properties, privacy } },
    output: outputSchema("model", "requestedPrivacy", "routes", "blockedBy"),
    role: "viewer",
    writes: false,
    cli: {
      words: "policy explain",
      description:
        "Explains the data policy of every candidate for a model: each level with its evidence, your own declaration, the fields that are sent, and the expiry date. Also shows whether Service-ZDR admits the candidate.",
      args: ["model"],
      examples: [
        "tollgate policy explain openai/gpt-5 --zdr",
        "tollgate policy explain fast --strict --json",
      ],
      exits: "Exits with 1 if --zdr or --strict is set and no candidate qualifies.",
    },
    accountScope: {},
    worksOffline: "config",
  },
  "plugins.list": {
    summary: "List active plugins and their commands",
    input: NO_INPUT,
    output: outputSchema("plugins"),
    role: "viewer",
    writes: false,
    cli: {
      words: "plugin",
      description: "Lists the mounted plugins with their commands.",
      examples: ["tollgate plugin"],
    },
    worksOffline: "config",
  },
  ...CONFIG_COMMAND_SPECS,
  ...PROVIDER_COMMAND_SPECS,
  ...REQUEST_COMMAND_SPECS,
  ...SOCKET_COMMAND_SPECS,
  ...JOB_COMMAND_SPECS,
  ...SCOPE_COMMAND_SPECS,
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
        tz: TIME_ZONE_FIELD,
      },
    },
    output: outputSchema("rows", "total", "keyNames"),
    role: "viewer",
    writes: false,
    cli: {
      words: "usage",
      description:
        "Summarizes usage and cost. Unpriced and estimated calls are counted separately.",
      examples: [
        "tollgate usage --since 30d",
        "tollgate usage --by day,model --key laptop --json",
        "tollgate usage --focus --since 2026-11-01 --until 2026-12-01 > november.csv",
      ],
    },
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: "store",
  },
  ...USAGE_COMMAND_SPECS,
  "ledger.caches": {
    summary: "Report the use of prompt caches",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...LEDGER_FILTER,
        by: withCli(
          {
            enum: CACHE_DIMENSIONS,
            description: `One of ${CACHE_DIMENSIONS.join(", ")} (default: key)`,
          },
          { value: "what" },
        ),
        scope: withCli(
          text("Group by the members of a scope, such as session. Replaces the grouping by key"),
          { value: "name" },
        ),
      },
    },
    output: outputSchema("by", "rows", "keyNames"),
    role: "viewer",
    writes: false,
    cli: {
      words: "caches",
      description:
        "Shows which share of the input providers read from their prompt caches, and how many tokens were written to a cache and never read. With the middleware prompt-caches, it also shows how many calls changed what their conversation sent before, and the most frequent place of the first difference.",
      examples: [
        "tollgate caches",
        "tollgate caches --scope session --since 24h",
        "tollgate caches --by model --json",
      ],
    },
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: "store",
  },
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
    cli: {
      words: "tail",
      description: "Shows rows of the ledger.",
      examples: ["tollgate tail --rows"],
    },
    worksOffline: "store",
  },
  "ledger.verify": {
    summary: "Verify that no ledger row was altered",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        hash: withCli(text("Previously recorded hash that the ledger must contain"), {
          flag: "head",
          value: "hash",
        }),
      },
    },
    output: outputSchema("problems", "isVerifiable"),
    role: "viewer",
    writes: false,
    cli: {
      words: "ledger verify",
      description:
        "Verifies that no row was changed, and prints the newest hash. Store that hash: with --head, a later run detects whether the ledger was truncated.",
      examples: ["tollgate ledger verify"],
      exits: "Exits with 1 if a row was changed or removed.",
    },
    worksOffline: "store",
  },
  "ledger.adjust": {
    summary: "Adjust the cost of a call",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["attempt", "usd", "reason"],
      properties: {
        attempt: text("ID of the call, which must be settled"),
        usd: withCli(text("US dollars to add to the cost. -0.25 subtracts a quarter"), {
          value: "amount",
        }),
        reason: text("Reason, which is stored in the row"),
      },
    },
    output: outputSchema("attempt", "costNano"),
    role: "owner",
    writes: true,
    cli: {
      words: "ledger adjust",
      description:
        "Adds a correction to the cost of a call, such as a refund, with the reason. " +
        "The rows of the call are unchanged, and its budgets include the correction. " +
        "A call is identified by `attempt`, which tollgate request shows.",
      args: ["attempt"],
      examples: ["tollgate ledger adjust r1x7-1 --usd=-0.25 --reason refund"],
    },
    changedRecord: { idMember: "attempt" },
    worksOffline: "store",
  },
  ...MAINTENANCE_COMMAND_SPECS,
  ...KEY_COMMAND_SPECS,
  ...ACCOUNT_COMMAND_SPECS,
  ...ADMIN_COMMAND_SPECS,
} as const satisfies Readonly<Record<string, CommandSpec>>;

export type CommandName = keyof typeof COMMAND_SPECS;
export type InputOf<N extends CommandName> = Infer<(typeof COMMAND_SPECS)[N]["input"]>;
