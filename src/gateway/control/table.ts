// Every command of a gateway: what it is for, what it takes and answers, which role may give it, and whether it changes
// anything. The control socket and the command line read this one table, so none of them can know a command otherwise.
import { ACCOUNT_COMMANDS } from "./account-table.ts";
import { ADMIN_COMMANDS } from "./admin-table.ts";
import type { CommandFacts } from "./command-facts.ts";
import { answer, MODEL, NONE, privacy, ROWS, text, whole } from "./fields.ts";
import { KEY_COMMANDS } from "./key-table.ts";
import { KEEPING_COMMANDS } from "./keeping-table.ts";
import { CONFIG_COMMANDS } from "./config-table.ts";
import { PROVIDER_COMMANDS } from "./provider-table.ts";
import { REQUEST_COMMANDS } from "./request-table.ts";
import { DIMENSIONS, USAGE_COMMANDS } from "./usage-table.ts";
import type { Infer } from "../../plugin/schema.ts";

export const COMMANDS = {
  status: {
    summary: "show the state of the running gateway",
    input: NONE,
    output: answer("version", "url", "state", "startedAt", "generation", "frontends"),
    role: "viewer",
    writes: false,
    cli: "status",
    within: { shows: ["version", "url", "state", "startedAt", "generation", "frontends"] },
    onFiles: false,
  },
  fleet: {
    summary: "list the gateways that share the store",
    input: NONE,
    output: answer("nodes", "remarks"),
    role: "viewer",
    writes: false,
    cli: "fleet",
    onFiles: false,
  },
  attention: {
    summary: "list what needs attention: budgets, models that retire, certificates, providers",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { account: text("Only of this account and the accounts below it") },
    },
    output: answer("items", "omitted"),
    role: "viewer",
    writes: false,
    cli: undefined,
    within: { account: "account", fills: true },
    onFiles: false,
  },
  readings: {
    summary: "show what happens in all processes",
    input: NONE,
    output: answer("processes", "inFlight", "ledger", "memory", "refusals", "dropped"),
    role: "metrics",
    writes: false,
    cli: "readings",
    onFiles: false,
  },
  reload: {
    summary: "read gateway.yaml again",
    input: NONE,
    output: answer("ok", "generation", "problems"),
    role: "operator",
    writes: true,
    cli: "reload",
    onFiles: false,
  },
  explain: {
    summary: "say what a request for a model would meet",
    input: {
      ...MODEL,
      properties: {
        ...MODEL.properties,
        frontend: text("As if it were asked there"),
        key: text("As if this key asked: its id or its name"),
        privacy,
      },
    },
    output: answer("model", "frontend", "candidates", "hooks", "timeouts"),
    role: "viewer",
    writes: false,
    cli: "explain",
    within: { key: "key" },
    onFiles: true,
  },
  "models.list": {
    summary: "list those that exist, with their prices",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { kind: text("Of one kind"), provider: text("Of one provider"), privacy },
    },
    output: answer("models"),
    role: "viewer",
    writes: false,
    cli: "models list",
    within: {},
    onFiles: true,
  },
  "models.explain": {
    summary: "say all that is known of one",
    input: MODEL,
    output: answer("name", "models", "near"),
    role: "viewer",
    writes: false,
    cli: "models explain",
    within: {},
    onFiles: true,
  },
  "models.refresh": {
    summary: "ask providers for their lists now",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { provider: text("Only this provider") },
    },
    output: answer("lists"),
    role: "operator",
    writes: true,
    changes: { target: "provider" },
    cli: "models refresh",
    onFiles: false,
  },
  "policy.explain": {
    summary: "say what becomes of data on every way to a model",
    input: { ...MODEL, properties: { ...MODEL.properties, privacy } },
    output: answer("model", "wanted", "ways", "closed"),
    role: "viewer",
    writes: false,
    cli: "policy explain",
    within: {},
    onFiles: true,
  },
  "plugins.list": {
    summary: "list the plugins that are mounted, and the commands that they bring",
    input: NONE,
    output: answer("plugins"),
    role: "viewer",
    writes: false,
    cli: "plugin",
    onFiles: true,
  },
  ...CONFIG_COMMANDS,
  ...PROVIDER_COMMANDS,
  ...REQUEST_COMMANDS,
  "ledger.totals": {
    summary: "sum up what was used and what it cost",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...ROWS,
        by: {
          type: "array",
          items: { enum: DIMENSIONS },
          description: `What it is summed up by: ${DIMENSIONS.join(", ")}`,
        },
        tz: text("Whose days and hours they are, as in Europe/Berlin; UTC by default"),
      },
    },
    output: answer("rows", "total", "names"),
    role: "viewer",
    writes: false,
    cli: "usage",
    within: { account: "account", fills: true, key: "key" },
    onFiles: true,
  },
  ...USAGE_COMMANDS,
  "ledger.entries": {
    summary: "read the rows of the ledger",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...ROWS,
        after: text("Behind this one: `next` of the page before"),
        limit: whole("How many at most"),
      },
    },
    output: answer("items"),
    role: "viewer",
    writes: false,
    cli: "tail",
    onFiles: true,
  },
  "ledger.verify": {
    summary: "whether every row is what was written",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { hash: text("A hash that was noted down, and must still be in it") },
    },
    output: answer("problems", "verifiable"),
    role: "viewer",
    writes: false,
    cli: "ledger verify",
    onFiles: true,
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
    output: answer("attempt", "costNano"),
    role: "owner",
    writes: true,
    cli: "ledger adjust",
    changes: { target: "attempt" },
    onFiles: true,
  },
  ...KEEPING_COMMANDS,
  ...KEY_COMMANDS,
  ...ACCOUNT_COMMANDS,
  ...ADMIN_COMMANDS,
} as const satisfies Readonly<Record<string, CommandFacts>>;

export type CommandName = keyof typeof COMMANDS;
export type InputOf<N extends CommandName> = Infer<(typeof COMMANDS)[N]["input"]>;
