// Commands of keys, as the table has them.
import type { CommandFacts } from "./command-facts.ts";
import { newId } from "../../lib/key.ts";
import {
  answer,
  flag,
  KEY,
  LABELS,
  LIMITS,
  NONE,
  orNone,
  printed,
  privacy,
  text,
  VERSION,
  whole,
  words,
} from "./fields.ts";

const name = printed("What people call it");
const MODELS = 'What it may use, as in "openai/*"; everything by default';
const FRONTENDS = "Where it may ask; everywhere by default";
const ACCOUNT = "The account that it draws on";
const EXPIRES = "When it ends, in Unix milliseconds";

const GRANTS = {
  name,
  models: words(MODELS),
  frontends: words(FRONTENDS),
  privacy,
  account: text(ACCOUNT),
  expires: whole(EXPIRES),
  limits: LIMITS,
  labels: LABELS,
} as const;

export const KEY_COMMANDS = {
  "keys.create": {
    summary: "make a key, and print it once",
    input: {
      type: "object",
      additionalProperties: false,
      properties: {
        ...GRANTS,
        defaults: flag("Whether it gets the limits that new keys get there; yes by default"),
      },
    },
    output: answer("secret", "key", "warnings"),
    role: "operator",
    writes: true,
    inTurn: true,
    creates: newId,
    cli: "keys create",
    within: { account: "account", fills: true, empties: ["warnings"] },
    onFiles: true,
  },
  "keys.list": {
    summary: "list keys, those of gateway.yaml too",
    input: NONE,
    output: answer("keys"),
    role: "viewer",
    writes: false,
    cli: "keys list",
    within: { keeps: ["keys", "account"] },
    onFiles: true,
  },
  "keys.show": {
    summary: "show all of one",
    input: KEY,
    output: answer("keys"),
    role: "viewer",
    writes: false,
    cli: "keys show",
    within: { key: "id" },
    onFiles: true,
  },
  "keys.update": {
    summary: "change what one may do; its secret stays",
    input: {
      ...KEY,
      properties: {
        ...KEY.properties,
        name: orNone(name),
        models: orNone(words(MODELS)),
        frontends: orNone(words(FRONTENDS)),
        privacy: { enum: ["off", "required", "strict", null], description: privacy.description },
        account: orNone(text(ACCOUNT)),
        expires: orNone(whole(EXPIRES)),
        limits: orNone(LIMITS),
        labels: orNone(LABELS),
        version: VERSION,
      },
    },
    output: answer("keys", "warnings"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "keys update",
    within: { key: "id", account: "account", empties: ["warnings"] },
    changes: { target: "id", read: "keys.show" },
    onFiles: true,
  },
  "keys.import": {
    summary: "take in keys of another gateway, by their hashes",
    input: {
      type: "object",
      additionalProperties: false,
      required: ["keys"],
      properties: {
        keys: {
          type: "array",
          minItems: 1,
          maxItems: 1_000,
          items: {
            type: "object",
            additionalProperties: false,
            required: ["digest"],
            properties: {
              digest: {
                type: "string",
                pattern: "^[0-9a-f]{64}$",
                description: "SHA-256 of the key, in hex",
              },
              ...GRANTS,
              revoked: flag("Whether it is ended already"),
              spent: {
                type: "integer",
                minimum: 0,
                description:
                  "What it had spent elsewhere in the windows that are now, in billionths of a dollar",
              },
            },
          },
          description: "Keys that clients have, as they go on working; 1,000 at most",
        },
        defaults: flag("Whether they get the limits that new keys get there; no by default"),
      },
    },
    output: answer("keys", "there", "warnings"),
    role: "owner",
    writes: true,
    inTurn: true,
    cli: "keys import",
    onFiles: true,
  },
  "keys.revoke": {
    summary: "end one at once",
    input: { ...KEY, properties: { ...KEY.properties, version: VERSION } },
    output: answer("keys"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "keys revoke",
    within: { key: "id" },
    changes: { target: "id", read: "keys.show" },
    onFiles: true,
  },
  "keys.move": {
    summary: "put one into another account, or into none",
    input: {
      ...KEY,
      properties: {
        ...KEY.properties,
        account: text("The account; none when absent"),
        version: VERSION,
      },
    },
    output: answer("keys"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "keys move",
    within: { key: "id", account: "account", fills: true },
    changes: { target: "id", read: "keys.show" },
    onFiles: true,
  },
  "keys.rotate": {
    summary: "put a new secret in place of the old one",
    input: {
      ...KEY,
      properties: {
        ...KEY.properties,
        overlapMs: whole("How long the old secret still works, in milliseconds; 0 by default"),
        version: VERSION,
      },
    },
    output: answer("secret", "key"),
    role: "operator",
    writes: true,
    inTurn: true,
    cli: "keys rotate",
    within: { key: "id" },
    changes: { target: "id", read: "keys.show" },
    onFiles: true,
  },
} as const satisfies Readonly<Record<string, CommandFacts>>;
