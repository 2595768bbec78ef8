// The commands about requests that are over, and about counts of them.
import type { CommandFacts } from "./command-facts.ts";
import { answer, atMost, flag, ROWS, text, whole } from "./fields.ts";

/** What counts of requests are kept by. */
const STATS_BY = ["all", "frontend", "model", "provider", "key", "account"] as const;

const ACCOUNT = text("Only of this account and the accounts below it");
const STATUS = {
  enum: ["ok", "refused", "failed", "canceled"],
  description:
    "How it ended. refused: the request was at fault or a limit was reached. failed: the provider or the gateway failed. canceled: the client went away",
} as const;

export const REQUEST_COMMANDS = {
  "requests.show": {
    summary: "say all that is known of one request",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: text("Its `x-request-id`, the client's own one, or the id of one of its attempts"),
        account: ACCOUNT,
      },
    },
    output: answer("requests"),
    role: "viewer",
    writes: false,
    within: { account: "account", fills: true },
    counted: true,
    cli: "request",
    onFiles: true,
  },
  "requests.live": {
    summary: "list requests that are not over, the oldest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        account: text("Of one account and of all that stands below it"),
        limit: atMost(500, "How many at most; 100 by default"),
      },
    },
    output: answer("items", "all"),
    role: "viewer",
    writes: false,
    cli: undefined,
    within: { account: "account", fills: true },
    onFiles: false,
  },
  "requests.list": {
    summary: "show requests as they end, refused ones too",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        after: whole("Behind this place: `next` of the answer before"),
        last: whole(
          "Without `after`: so many of those that are over, before filters; 500 by default",
        ),
        limit: whole("How many at most; 100 by default, 500 at most"),
        waitMs: atMost(30_000, "How long to wait where there is nothing new, in milliseconds"),
        key: text("Of one key: its id or its name"),
        model: text("Of one model, as requested or served. Each * stands for any text"),
        account: ACCOUNT,
        status: STATUS,
        failed: flag("Only those that were refused, failed or broke off"),
        from: whole("From this moment on, in Unix milliseconds"),
      },
    },
    output: answer("items", "next", "missed", "since"),
    role: "viewer",
    writes: false,
    cli: "tail",
    within: { account: "account", fills: true, key: "key" },
    onFiles: false,
  },
  "requests.search": {
    summary: "search the whole ledger for requests, the newest first",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: ROWS.from,
        to: ROWS.to,
        key: ROWS.key,
        account: ACCOUNT,
        provider: ROWS.provider,
        model: text(
          "Of one model. A name with its provider (openai/gpt-5) is that of the model that served the call. Other names, and patterns in which each * stands for any text, match the requested model too",
        ),
        label: ROWS.label,
        frontend: ROWS.frontend,
        credential: ROWS.credential,
        status: STATUS,
        outcome: text(
          "How a call ended: ok, an error kind such as rate_limited, or presumed. The ledger has no HTTP status",
        ),
        after: text("The `next` of the page before"),
        limit: atMost(200, "Number of requests after which a page ends. Default: 50"),
      },
    },
    output: answer("items", "reached"),
    role: "viewer",
    writes: false,
    cli: undefined,
    within: { account: "account", fills: true, key: "key" },
    onFiles: false,
  },
  "stats.recent": {
    summary: "watch spend, rate, times and errors",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        windowMs: atMost(3_600_000, "Over the last so many milliseconds; 60000 by default"),
      },
    },
    output: answer("at", "windowMs", "since", "inFlight", "resting", "models", "keys", "frontends"),
    role: "viewer",
    writes: false,
    cli: "top",
    onFiles: false,
  },
  "stats.series": {
    summary: "counts and times of requests, minute by minute or hour by hour",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        from: whole("From this moment on, in Unix milliseconds"),
        to: whole("Up to this moment, in Unix milliseconds"),
        step: { enum: ["minute", "hour"], description: "How long each is: minute or hour" },
        by: {
          enum: STATS_BY,
          description:
            "What is counted separately: all, frontend, model, provider, key or account. By model and by provider, calls are counted",
        },
        account: text("Only of this account and the accounts below it, by all or account"),
        provider: text("Only calls of this provider, by all or model"),
        most: atMost(100, "So many of them, the largest, and the others as one; 10 by default"),
      },
    },
    output: answer("since", "rows", "totals"),
    role: "viewer",
    writes: false,
    cli: undefined,
    within: { account: "account", fills: true },
    onFiles: false,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;
