// Options for what a key or an account may use, shared by the commands that create and update them.
import { parseExpiry } from "../format/expiry.ts";
import { fail } from "../../model/error.ts";
import type { JsonObject, Json } from "../../model/values.ts";
import type { CliInput, Options } from "./command.ts";
import { checkLimit } from "../format/limit-output.ts";

/** Options of keys and accounts. */
export const GRANT_OPTIONS: Options = {
  name: { placeholder: "words", description: "Display name" },
  models: {
    placeholder: "pattern",
    description: 'Models that may be used, such as "openai/*" (default: all)',
    isRepeatable: true,
  },
  frontends: {
    placeholder: "name",
    description: "Frontends that may be used (default: all)",
    isRepeatable: true,
  },
  privacy: {
    placeholder: "level",
    description: "Minimum privacy of requests: off, required, or strict",
  },
  limit: {
    placeholder: "limit",
    description: "requests=60/minute, tokens=1000000/day, usd=5/month, concurrent=4",
    isRepeatable: true,
  },
  label: {
    placeholder: "name=value",
    description: "Label that is recorded in every ledger row",
    isRepeatable: true,
  },
};
export const KEY_OPTIONS: Options = {
  account: { placeholder: "name", description: "Account that usage is charged to" },
  expires: {
    placeholder: "when",
    description: "Expiry, as a duration (30d) or a date (2027-01-31)",
  },
};
export const ACCOUNT_OPTIONS: Options = {
  parent: { placeholder: "name", description: "Parent account" },
  "default-limit": {
    placeholder: "limit",
    description: "Default limits for new keys in this account",
    isRepeatable: true,
  },
  "disclose-limits": {
    placeholder: "how",
    description: "Limit visibility for clients: full, or hidden (only when to retry)",
  },
};
export const VERSION_OPTION: Options = {
  version: { placeholder: "number", description: "Update only if the version is still this one" },
};

/** Value that clears a setting. */
const CLEAR_VALUE = "none";

/** Returns the given options as the command's input. `none` becomes null. */
export function parseGrants(given: CliInput): JsonObject {
  const said = (name: string, of: (text: string) => Json = (text) => text): Json | undefined => {
    const text = given.getText(name);
    return text === undefined ? undefined : text === CLEAR_VALUE ? null : of(text);
  };
  const list = (name: string, of: (texts: readonly string[]) => Json): Json | undefined => {
    const texts = given.getTexts(name).filter(Boolean);
    return texts.length === 0
      ? undefined
      : texts.length === 1 && texts[0] === CLEAR_VALUE
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
    expires: said("expires", parseExpiry),
    limits: list("limit", (texts) => texts.map(checkLimit)),
    labels: list("label", (texts) => Object.fromEntries(texts.map(parseLabel))),
    defaults: list("default-limit", (texts) => ({ limits: texts.map(checkLimit) })),
    discloseLimits: said("disclose-limits"),
    version: said("version", (text) => (/^\d{1,15}$/.test(text) ? Number(text) : text)),
  };
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, Json] => entry[1] !== undefined),
  );
}

function parseLabel(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  return name === undefined
    ? fail("invalid", `Invalid --label "${text}". It must be name=value.`, { code: "usage" })
    : [name, value!];
}
