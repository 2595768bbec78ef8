// Specifications of the commands for finished requests and request statistics.
import type { CommandSpec } from "./command-spec.ts";
import {
  outputSchema,
  integerUpTo,
  booleanField,
  nameOf,
  timeOf,
  withCli,
  LEDGER_FILTER,
  text,
  nonNegativeInteger,
} from "./schema-fields.ts";

/** Dimensions of the request statistics. */
const STATS_BY = ["all", "frontend", "model", "provider", "key", "account"] as const;

const ACCOUNT_FIELD = nameOf("Account whose requests are included, with nested accounts");
const STATUS_FIELD = {
  enum: ["ok", "refused", "failed", "canceled"],
  description:
    "Result of the request. refused: the request was invalid or a limit was reached. " +
    "failed: the provider or the gateway failed. canceled: the client disconnected",
} as const;

export const REQUEST_COMMAND_SPECS = {
  "requests.show": {
    summary: "Show a request",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: text("`x-request-id`, the client's own ID, or the ID of an attempt"),
        account: ACCOUNT_FIELD,
      },
    },
    output: outputSchema("requests"),
    role: "viewer",
    writes: false,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    countsAccess: true,
    cli: {
      words: "request",
      description:
        "Shows all known data about a request: the client, the routing decision, each " +
        "attempt with its times, hooks, translation warnings, cost, and ledger rows. " +
        "A running gateway keeps the last requests, including rejected requests " +
        "(`request_history` in gateway.yaml). For older requests, only ledger data is " +
        "" +
        "available. Prompts and responses are never stored.",
      args: ["id"],
      examples: ["tollgate request 4RkzQGd0m0000f3", "tollgate request my-own-id --json"],
      exits: "Exits with 1 if the request is not found.",
    },
    worksOffline: "store",
  },
  "requests.live": {
    summary: "List open requests, oldest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        account: ACCOUNT_FIELD,
        limit: integerUpTo(500, "Maximum number of requests. Default: 100"),
      },
    },
    output: outputSchema("items", "total"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    worksOffline: false,
  },
  "requests.list": {
    summary: "Show requests as they end, including rejected requests",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        after: nonNegativeInteger("Cursor: `next` of the previous response"),
        last: nonNegativeInteger(
          "Without `after`: number of finished requests to start with, before filters. " +
            "Default: 500",
        ),
        limit: nonNegativeInteger("Maximum number of requests. Default: 100. Maximum: 500"),
        waitMs: integerUpTo(30_000, "Maximum wait for new requests, in milliseconds"),
        key: LEDGER_FILTER.key,
        model: withCli(text("Requested or served model. Each * matches any text"), {
          value: "model",
        }),
        account: ACCOUNT_FIELD,
        status: STATUS_FIELD,
        failed: booleanField("Whether to include only rejected, failed, and truncated requests"),
        from: timeOf("Start time, inclusive", "since"),
      },
    },
    output: outputSchema("items", "next", "missed", "rememberedSince"),
    role: "viewer",
    writes: false,
    cli: {
      words: "tail",
      description:
        "Shows requests as they finish, including rejected requests, until you press " +
        "Ctrl-C. It starts with the last 10 minutes. Each line has the time, ID, " +
        "status, duration, key, model, usage, cost, and error. For details of a " +
        "request, use tollgate request <id>. With --json, each request is a line of " +
        "JSON. If the reader falls behind, the output reports the number of dropped " +
        "lines. With --rows, the command shows one line of the ledger for each call " +
        "and each correction instead. The option --rows also works while no gateway " +
        "is running.",
      examples: [
        "tollgate tail --failed",
        "tollgate tail --key laptop --model 'openai/*' --since 1h --once --json",
        "tollgate tail --rows --since 24h",
      ],
    },
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: false,
  },
  "requests.search": {
    summary: "Search the ledger for requests, newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: LEDGER_FILTER.from,
        to: LEDGER_FILTER.to,
        key: LEDGER_FILTER.key,
        account: ACCOUNT_FIELD,
        provider: LEDGER_FILTER.provider,
        model: text(
          "Model. A name with its provider (openai/gpt-5) matches the model that served " +
            "the call. Other names, and patterns in which each * matches any text, also " +
            "match the requested model",
        ),
        label: LEDGER_FILTER.label,
        frontend: LEDGER_FILTER.frontend,
        credential: LEDGER_FILTER.credential,
        status: STATUS_FIELD,
        outcome: text(
          "How a call ended: ok, an error kind such as rate_limited, or recovered. The ledger has no HTTP status",
        ),
        after: text("Cursor: `next` of the previous page"),
        limit: integerUpTo(200, "Number of requests after which a page ends. Default: 50"),
      },
    },
    output: outputSchema("items", "searchedBackTo"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: false,
  },
  "requests.stats": {
    summary: "Show spending, rates, latency, and errors",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        windowMs: integerUpTo(3_600_000, "Length of the window in milliseconds. Default: 60000"),
      },
    },
    output: outputSchema(
      "at",
      "windowMs",
      "countedSince",
      "inFlight",
      "cooldowns",
      "models",
      "keys",
      "frontends",
    ),
    role: "viewer",
    writes: false,
    cli: {
      words: "top",
      description:
        "Shows live activity until you press Ctrl-C: spend, requests, time to first token, errors, open requests, and cooldowns, by model and by key. On a terminal, the view is redrawn in place. In a pipe, views are printed one after another. With --json, each view is a line of JSON.",
      examples: ["tollgate top", "tollgate top --window 10m", "tollgate top --interval 10s --json"],
    },
    worksOffline: false,
  },
  "requests.series": {
    summary: "Report requests and latency by minute or hour",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: nonNegativeInteger("Start time, inclusive, in Unix milliseconds"),
        to: nonNegativeInteger("End time, exclusive, in Unix milliseconds"),
        step: {
          enum: ["minute", "hour"],
          description: "Length of each interval: minute or hour. Default: minute",
        },
        by: {
          enum: STATS_BY,
          description:
            "Grouping: all, frontend, model, provider, key, or account. Default: all. " +
            "Groups by model and provider count calls. The other groups count " +
            "requests",
        },
        account: text(
          "Account whose requests are included, with nested accounts. Only with grouping " +
            "by all or account",
        ),
        provider: text("Provider whose calls are included. Only with grouping by all or model"),
        most: integerUpTo(
          100,
          "Number of largest groups. All others are combined into one. Default: 10",
        ),
      },
    },
    output: outputSchema("countedSince", "rows", "totals"),
    role: "viewer",
    writes: false,
    cli: undefined,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    worksOffline: false,
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
