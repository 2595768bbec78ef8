// Every command of a gateway: what it is for, what it takes and answers, which role may give it, and whether it changes
// anything. The control socket and the command line read this one table, so none of them can know a command otherwise.
import { answer, KEY, LIMIT, MODEL, NONE, privacy, ROWS, text, whole, words } from "./fields.ts";
import { KEEPING_COMMANDS } from "./keeping-table.ts";
import { REQUEST_COMMANDS } from "./request-table.ts";
import type { PluginCommand, Role } from "../../plugin/plugin.ts";
import type { TotalsBy } from "../../plugin/store.ts";
import type { Infer } from "../../plugin/schema.ts";

/** A plugin's command and one of the gateway's are described by the same words. */
interface CommandFacts extends Required<Omit<PluginCommand, "run">> {
  readonly role: Role;
  /** The words of the command line that give it; undefined: it has none. */
  readonly cli: string | undefined;
  /** Whether the command line answers it from the files while no gateway runs. */
  readonly onFiles: boolean;
}

/** What usage can be summed up by. */
export const DIMENSIONS = [
  "key",
  "account",
  "provider",
  "model",
  "credential",
  "frontend",
  "outcome",
  "state",
  "day",
  "hour",
  "label",
  "price",
  "accounts",
  "labels",
] as const satisfies readonly TotalsBy[];

export const COMMANDS = {
  status: {
    summary: "show the state of the running gateway",
    input: NONE,
    output: answer("version", "pid", "url", "stateDir", "state", "generation", "lists"),
    role: "viewer",
    writes: false,
    cli: "status",
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
      properties: { ...MODEL.properties, frontend: text("As if it were asked there") },
    },
    output: answer("model", "frontend", "candidates", "hooks", "timeouts"),
    role: "viewer",
    writes: false,
    cli: "explain",
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
    onFiles: true,
  },
  "models.explain": {
    summary: "say all that is known of one",
    input: MODEL,
    output: answer("name", "models", "near"),
    role: "viewer",
    writes: false,
    cli: "models explain",
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
    onFiles: true,
  },
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
    onFiles: true,
  },
  ...KEEPING_COMMANDS,
  "keys.create": {
    summary: "make a key, and print it once",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        name: { ...text("What people call it"), maxLength: 200 },
        models: words('What it may use, as in "openai/*"; everything by default'),
        frontends: words("Where it may ask; everywhere by default"),
        privacy,
        account: text("The account that it draws on, as gateway.yaml names it"),
        expires: whole("When it ends, in Unix milliseconds"),
        limits: { type: "array", items: LIMIT, description: "What it may use up" },
        labels: {
          type: "object",
          additionalProperties: { type: "string" },
          description: "Kept with every ledger row of it",
        },
      },
    },
    output: answer("secret", "key", "warnings"),
    role: "operator",
    writes: true,
    cli: "keys create",
    onFiles: true,
  },
  "keys.list": {
    summary: "list keys, those of gateway.yaml too",
    input: NONE,
    output: answer("keys"),
    role: "viewer",
    writes: false,
    cli: "keys list",
    onFiles: true,
  },
  "keys.show": {
    summary: "show all of one",
    input: KEY,
    output: answer("keys"),
    role: "viewer",
    writes: false,
    cli: "keys show",
    onFiles: true,
  },
  "keys.revoke": {
    summary: "end one at once",
    input: KEY,
    output: answer("keys"),
    role: "operator",
    writes: true,
    cli: "keys revoke",
    onFiles: true,
  },
  "keys.move": {
    summary: "put one into another account, or into none",
    input: {
      ...KEY,
      properties: {
        ...KEY.properties,
        account: text("The account, as gateway.yaml names it; none when absent"),
      },
    },
    output: answer("keys"),
    role: "operator",
    writes: true,
    cli: "keys move",
    onFiles: true,
  },
  "keys.rotate": {
    summary: "put a new secret in place of the old one",
    input: {
      ...KEY,
      properties: {
        ...KEY.properties,
        overlapMs: whole("How long the old secret still works, in milliseconds; 0 by default"),
      },
    },
    output: answer("secret", "key"),
    role: "operator",
    writes: true,
    cli: "keys rotate",
    onFiles: true,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;

export type CommandName = keyof typeof COMMANDS;
export type InputOf<N extends CommandName> = Infer<(typeof COMMANDS)[N]["input"]>;
