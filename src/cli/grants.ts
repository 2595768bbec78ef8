// What a key or an account may use, as the command line says it: the same options for both, to make one and to change one.
import { expiryOf } from "./expiry.ts";
import { fail } from "../model/error.ts";
import type { JsonObject, Json } from "../model/values.ts";
import type { CliInput, Options } from "./command.ts";
import { checkLimit } from "./limit.ts";

/** Of keys and accounts. */
export const GRANTS: Options = {
  name: { value: "words", about: "what people call it" },
  models: {
    value: "pattern",
    about: 'what it may use, as in "openai/*"; everything by default',
    many: true,
  },
  frontends: { value: "name", about: "where it may ask; everywhere by default", many: true },
  privacy: { value: "level", about: "the least privacy of its requests: off, required or strict" },
  limit: {
    value: "limit",
    about: "requests=60/minute, tokens=1000000/day, usd=5/month, concurrent=4",
    many: true,
  },
  label: { value: "name=value", about: "kept with every ledger row of it", many: true },
};
export const OF_KEY: Options = {
  account: { value: "name", about: "the account that it draws on" },
  expires: { value: "when", about: "after 30d, or on 2027-01-31" },
};
export const OF_ACCOUNT: Options = {
  parent: { value: "name", about: "the account that it stands in" },
  "default-limit": {
    value: "limit",
    about: "what new keys get that are made in it without it",
    many: true,
  },
  tells: {
    value: "what",
    about: "what clients are told of its limits: numbers, or nothing but when to come again",
  },
};
export const VERSION: Options = {
  version: { value: "number", about: "only while it is at this version" },
};

/** Takes away what there was. */
const NONE = "none";

/** What was given of these, as the command's input; `none` is said as null. */
export function grantsOf(given: CliInput): JsonObject {
  const said = (name: string, of: (text: string) => Json = (text) => text): Json | undefined => {
    const text = given.text(name);
    return text === undefined ? undefined : text === NONE ? null : of(text);
  };
  const list = (name: string, of: (texts: readonly string[]) => Json): Json | undefined => {
    const texts = given.texts(name).filter(Boolean);
    return texts.length === 0
      ? undefined
      : texts.length === 1 && texts[0] === NONE
        ? null
        : of(texts);
  };
  const names = (texts: readonly string[]) =>
    texts.flatMap((text) => text.split(",")).filter(Boolean);
  const found: { [name: string]: Json | undefined } = {
    name: said("name"),
    models: list("models", names),
    frontends: list("frontends", names),
    privacy: said("privacy"),
    account: said("account"),
    parent: said("parent"),
    expires: said("expires", expiryOf),
    limits: list("limit", (texts) => texts.map(checkLimit)),
    labels: list("label", (texts) => Object.fromEntries(texts.map(parseLabel))),
    defaults: list("default-limit", (texts) => ({ limits: texts.map(checkLimit) })),
    tells: said("tells"),
    version: said("version", (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text)),
  };
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  );
}

function parseLabel(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  return name === undefined
    ? fail("invalid", `--label is name=value, not "${text}".`, { code: "usage" })
    : [name, value!];
}
