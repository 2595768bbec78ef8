// What cannot be obeyed is refused before anything is touched: a batch with such a command did not happen.
import { fail, type AccountRecord, type StoreCommand } from "../plugin/index.ts";

/** Money is a signed 64-bit number of nano-dollars: nine billion dollars are enough for one call. */
const LARGEST = 2n ** 63n - 1n;

/** For each command of a batch, before the first is applied. Throws `invalid`, with what is wrong. */
export function checkCommand(c: StoreCommand): void {
  moment(c.at);
  switch (c.do) {
    case "reserve":
      named(c.attempt);
      money("holdNano", c.holdNano);
      if (c.holdNano !== null && c.holdNano < 0n) wrong("holdNano", "is negative");
      for (const { max, take, scope } of c.claims) {
        if (take < 0n) wrong("take", `of ${scope} is negative`);
        if (typeof max === "number" && !(Number.isSafeInteger(max) && max >= 0))
          wrong("max", `of ${scope} is ${max}, not a whole number`);
        if (max < 0) wrong("max", `of ${scope} is negative`);
      }
      return;
    case "settle":
      named(c.attempt);
      money("costNano", c.costNano);
      if (c.costNano !== null && c.costNano < 0n) wrong("costNano", "is negative");
      money("upstreamCostNano", c.upstreamCostNano);
      return;
    case "progress":
      money("costNano", c.costNano);
      return;
    case "adjust":
      money("costNano", c.costNano);
      return;
    case "key":
      if (!c.key.digest) wrong("digest", "is empty");
      moment(c.key.created);
      return;
    case "account":
      account(c.account);
      return;
    case "price":
    case "alive":
  }
}

function moment(at: number): void {
  if (!(Number.isFinite(at) && Math.abs(at) <= 8.64e15)) wrong("at", `is ${at}, not a moment`);
}

function account({ id, created, version, limits = [] }: AccountRecord): void {
  // Rows join ids with a slash.
  if (!id || id.includes("/")) wrong("id", `is ${JSON.stringify(id)}, which is no account's`);
  moment(created);
  if (!(Number.isSafeInteger(version) && version > 0)) wrong("version", `is ${version}`);
  for (const { max, scope } of limits)
    if (max < 0 || (typeof max === "number" && !Number.isSafeInteger(max)))
      wrong("max", `of ${scope} is ${max}, not a whole number`);
}

function named(attempt: string): void {
  if (!attempt) wrong("attempt", "is empty");
  // What it is looked up by must be the same text in every store.
  if (attempt.includes("\0") || !attempt.isWellFormed()) wrong("attempt", "is no text");
}

function money(field: string, amount: bigint | null | undefined): void {
  if (typeof amount === "bigint" && (amount > LARGEST || amount < -LARGEST))
    wrong(field, `is ${amount}, more than a ledger holds`);
}

const wrong = (field: string, how: string): never =>
  fail("invalid", `The command's ${field} ${how}.`, { code: "bad_command", param: field });
