// Specifications of the commands for finished requests and request statistics.
import type { CommandSpec } from "./command-spec.ts";
import {
  outputSchema,
  integerUpTo,
  booleanField,
  LEDGER_FILTER,
  text,
  nonNegativeInteger,
} from "./schema-fields.ts";

/** Dimensions of the request statistics. */
const STATS_BY = ["all", "frontend", "model", "provider", "key", "account"] as const;

const ACCOUNT_FIELD = text("Only of this account and the accounts below it");
const STATUS_FIELD = {
  enum: ["ok", "refused", "failed", "canceled"],
  description:
    "How it ended. refused: the request was at fault or a limit was reached. failed: the provider or the gateway failed. canceled: the client went away",
} as const;

export const REQUEST_COMMAND_SPECS = {
  "requests.show": {
    summary: "say all that is known of one request",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: text("Its `x-request-id`, the client's own one, or the id of one of its attempts"),
        account: ACCOUNT_FIELD,
      },
    },
    output: outputSchema("requests"),
    role: "viewer",
    writes: false,
    accountScope: { accountMember: "account", defaultsToOwn: true },
    countsAccess: true,
    cli: "request",
    worksOffline: true,
  },
  "requests.live": {
    summary: "list requests that are not over, the oldest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        account: text("Of one account and of all that stands below it"),
        limit: integerUpTo(500, "How many at most; 100 by default"),
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
    summary: "show requests as they end, refused ones too",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        after: nonNegativeInteger("Behind this place: `next` of the answer before"),
        last: nonNegativeInteger(
          "Without `after`: so many of those that are over, before filters; 500 by default",
        ),
        limit: nonNegativeInteger("How many at most; 100 by default, 500 at most"),
        waitMs: integerUpTo(30_000, "How long to wait where there is nothing new, in milliseconds"),
        key: text("Of one key: its id or its name"),
        model: text("Of one model, as requested or served. Each * stands for any text"),
        account: ACCOUNT_FIELD,
        status: STATUS_FIELD,
        failed: booleanField("Only those that were refused, failed or broke off"),
        from: nonNegativeInteger("From this moment on, in Unix milliseconds"),
      },
    },
    output: outputSchema("items", "next", "missed", "rememberedSince"),
    role: "viewer",
    writes: false,
    cli: "tail",
    accountScope: { accountMember: "account", defaultsToOwn: true, keyMember: "key" },
    worksOffline: false,
  },
  "requests.search": {
    summary: "search the whole ledger for requests, the newest first",
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
          "Of one model. A name with its provider (openai/gpt-5) is that of the model that served the call. Other names, and patterns in which each * stands for any text, match the requested model too",
        ),
        label: LEDGER_FILTER.label,
        frontend: LEDGER_FILTER.frontend,
        credential: LEDGER_FILTER.credential,
        status: STATUS_FIELD,
        outcome: text(
          "How a call ended: ok, an error kind such as rate_limited, or recovered. The ledger has no HTTP status",
        ),
        after: text("The `next` of the page before"),
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
    summary: "watch spend, rate, times and errors",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        windowMs: integerUpTo(3_600_000, "Over the last so many milliseconds; 60000 by default"),
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
    cli: "top",
    worksOffline: false,
  },
  "requests.series": {
    summary: "counts and times of requests, minute by minute or hour by hour",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: nonNegativeInteger("From this moment on, in Unix milliseconds"),
        to: nonNegativeInteger("Up to this moment, in Unix milliseconds"),
        step: { enum: ["minute", "hour"], description: "How long each is: minute or hour" },
        by: {
          enum: STATS_BY,
          description:
            "What is counted separately: all, frontend, model, provider, key or account. By model and by provider, calls are counted",
        },
        account: text("Only of this account and the accounts below it, by all or account"),
        provider: text("Only calls of this provider, by all or model"),
        most: integerUpTo(
          100,
          "So many of them, the largest, and the others as one; 10 by default",
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
