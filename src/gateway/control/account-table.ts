// Commands of accounts, as the table has them.
import type { CommandFacts } from "./command-facts.ts";
import { LIMIT } from "../../plugin/limit.ts";
import {
  answer,
  flag,
  LABELS,
  LIMITS,
  orNone,
  printed,
  privacy,
  text,
  VERSION,
  words,
} from "./fields.ts";

const id = {
  type: "string",
  pattern: "^[a-z0-9][a-z0-9._-]*$",
  maxLength: 100,
  "x-expects": "lower-case letters, digits, dashes, dots and underscores",
} as const;
const ACCOUNT = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: text("The account") },
} as const;
const PARENT = "The account that it stands in; none by default";
const name = printed("What people call it");
const MODELS = 'Models that its keys may use, as in "openai/*"; all by default';
const FRONTENDS = "Where its keys may ask; everywhere by default";
const defaults = {
  type: "object",
  additionalProperties: false,
  required: ["limits"],
  properties: { limits: { type: "array", minItems: 1, items: LIMIT } },
  description: "What new keys get that are made in it without it",
} as const;
const TELLS = "What clients are told of its limits: numbers, or nothing but when to come again";

export const ACCOUNT_COMMANDS = {
  "accounts.list": {
    summary: "list accounts, those of gateway.yaml too",
    input: {
      type: "object",
      additionalProperties: false,
      properties: { ended: flag("Ended ones too") },
    },
    output: answer("accounts"),
    role: "viewer",
    writes: false,
    cli: "accounts list",
    within: { keeps: ["accounts", "id"] },
    onFiles: true,
  },
  "accounts.show": {
    summary: "show all of one: what it stands in, what stands in it, what is left",
    input: ACCOUNT,
    output: answer("account", "above", "accounts", "keys"),
    role: "viewer",
    writes: false,
    cli: "accounts show",
    within: { account: "id", empties: ["above"] },
    onFiles: true,
  },
  "accounts.create": {
    summary: "make an account, which keys may draw on",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["id"],
      properties: {
        id: { ...id, description: "What keys and the ledger call it, for good" },
        parent: text(PARENT),
        name,
        limits: LIMITS,
        defaults,
        models: words(MODELS),
        frontends: words(FRONTENDS),
        privacy,
        labels: LABELS,
        tells: { enum: ["numbers", "nothing"], description: TELLS },
      },
    },
    output: answer("account", "warnings"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "accounts create",
    changes: { target: "id" },
    onFiles: true,
  },
  "accounts.update": {
    summary: "change what an account says, or where it stands",
    input: {
      ...ACCOUNT,
      properties: {
        ...ACCOUNT.properties,
        parent: orNone(text(PARENT)),
        name: orNone(name),
        limits: orNone(LIMITS),
        defaults: orNone(defaults),
        models: orNone(words(MODELS)),
        frontends: orNone(words(FRONTENDS)),
        privacy: { enum: ["off", "required", "strict", null], description: privacy.description },
        labels: orNone(LABELS),
        tells: { enum: ["numbers", "nothing", null], description: TELLS },
        version: VERSION,
      },
    },
    output: answer("account", "warnings"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "accounts update",
    changes: { target: "id", read: "accounts.show" },
    onFiles: true,
  },
  "accounts.end": {
    summary: "end one: its keys, and those of all in it, are refused",
    input: { ...ACCOUNT, properties: { ...ACCOUNT.properties, version: VERSION } },
    output: answer("account"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "accounts end",
    changes: { target: "id", read: "accounts.show" },
    onFiles: true,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;
