// Rejects invalid commands before anything changes. A batch with an invalid command has no effect.
import { fail, type AccountRecord, type StoreCommand } from "../plugin/index.ts";

/** Amounts are signed 64-bit integers in nano-dollars: up to 9 billion US dollars. */
const MAX_NANO = 2n ** 63n - 1n;

/**
 * Checks a command. Called for each command of a batch before the first is applied. Throws
 * `invalid` and names the field.
 */
export function checkCommand(c: StoreCommand): void {
  checkTimestamp(c.at);
  switch (c.do) {
    case "reserve":
      checkAttemptId(c.attempt);
      checkAmount("holdNano", c.holdNano);
      if (c.holdNano !== null && c.holdNano < 0n) rejectField("holdNano", "is negative");
      for (const { max, take, scope } of c.claims) {
        if (take < 0n) rejectField("take", `of ${scope} is negative`);
        if (typeof max === "number" && !(Number.isSafeInteger(max) && max >= 0))
          rejectField("max", `of ${scope} is ${max}, which is not a whole number`);
        if (max < 0) rejectField("max", `of ${scope} is negative`);
      }
      return;
    case "settle":
      checkAttemptId(c.attempt);
      checkAmount("costNano", c.costNano);
      if (c.costNano !== null && c.costNano < 0n) rejectField("costNano", "is negative");
      checkAmount("upstreamCostNano", c.upstreamCostNano);
      return;
    case "progress":
      checkAmount("costNano", c.costNano);
      return;
    case "adjust":
      checkAmount("costNano", c.costNano);
      return;
    case "key":
      if (!c.key.digest) rejectField("digest", "is empty");
      checkTimestamp(c.key.created);
      return;
    case "account":
      checkAccount(c.account);
      return;
    case "price":
    case "heartbeat":
  }
}

function checkTimestamp(at: number): void {
  if (!(Number.isFinite(at) && Math.abs(at) <= 8.64e15))
    rejectField("at", `is ${at}, not a moment`);
}

function checkAccount({ id, created, version, limits = [] }: AccountRecord): void {
  // Rows join account ids with a slash.
  if (!id || id.includes("/"))
    rejectField("id", `is ${JSON.stringify(id)}, which is not a valid account ID`);
  checkTimestamp(created);
  if (!(Number.isSafeInteger(version) && version > 0)) rejectField("version", `is ${version}`);
  for (const { max, scope } of limits)
    if (max < 0 || (typeof max === "number" && !Number.isSafeInteger(max)))
      rejectField("max", `of ${scope} is ${max}, which is not a whole number`);
}

function checkAttemptId(attempt: string): void {
  if (!attempt) rejectField("attempt", "is empty");
  // The id is a lookup key and must be the same text in every store.
  if (attempt.includes("\0") || !attempt.isWellFormed()) rejectField("attempt", "is not a string");
}

function checkAmount(field: string, amount: bigint | null | undefined): void {
  if (typeof amount === "bigint" && (amount > MAX_NANO || amount < -MAX_NANO))
    rejectField(field, `is ${amount}, which exceeds the ledger's maximum`);
}

const rejectField = (field: string, how: string): never =>
  fail("invalid", `The command's ${field} ${how}.`, { code: "invalid_command", param: field });
