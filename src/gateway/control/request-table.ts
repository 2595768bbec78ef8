// The commands about requests that are over, and about counts of them.
import { answer, atMost, flag, text, whole } from "./fields.ts";

/** What counts of requests are kept by. */
const STATS_BY = ["all", "frontend", "model", "key", "account"] as const;

export const REQUEST_COMMANDS = {
  "requests.show": {
    summary: "say all that is known of one request",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: text("Its `x-request-id`, the client's own one, or the id of one of its attempts"),
      },
    },
    output: answer("requests"),
    role: "viewer",
    writes: false,
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
        model: text("Of one model, as it was asked for or served; one star stands for anything"),
        failed: flag("Only those that were refused, failed or broke off"),
        from: whole("From this moment on, in Unix milliseconds"),
      },
    },
    output: answer("items", "next", "missed", "since"),
    role: "viewer",
    writes: false,
    cli: "tail",
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
          description: "What is counted apart: all, frontend, model, key or account",
        },
        account: text("Of one account and of all that stands below it, by all or by account"),
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
} as const;
