// Decides whether a change of an account or a key can be applied. The decision is pure and reads
// current records through the journal, so it is valid within the whole batch.
import {
  fail,
  isMemberScope,
  isReservedScope,
  type AccountRecord,
  type JobReserve,
  type KeyRecord,
  type Reserve,
  type StoreCommand,
} from "../plugin/index.ts";
import { toJson } from "./bigint-json.ts";
import { isCalendarPeriod } from "./meter.ts";

const CHANGE_ID = /^[\w-]{1,64}$/;

/**
 * Storage of accounts in a journal. `put` belongs to the batch's transaction, and `get` returns
 * records that the batch has put.
 */
export interface AccountRepository {
  get(id: string): AccountRecord | undefined;
  put(record: AccountRecord): void;
}

/**
 * Returns whether a record differs from the stored account. Throws `invalid` for a change that is
 * not allowed.
 */
export function isAccountChange(
  record: AccountRecord,
  { get }: Pick<AccountRepository, "get">,
): boolean {
  const before = get(record.id);
  if (before?.version === record.version && toJson(before) === toJson(record)) return false;
  if (record.version !== (before?.version ?? 0) + 1)
    fail(
      "invalid",
      before
        ? `The account ${record.id} was changed by someone else: it is now at version ${before.version}.`
        : `The account ${record.id} does not exist, so it cannot be changed.`,
      { code: "version_conflict" },
    );
  const path = [record.id];
  for (let up = record.parent; up !== undefined; up = get(up)?.parent) {
    path.push(up);
    if (up === record.id)
      fail("invalid", `Accounts cannot be nested in a cycle: ${path.join(" → ")}.`, {
        code: "account_cycle",
        param: "/parent",
      });
  }
  return true;
}

/**
 * Returns whether a record differs from the stored key. Throws `invalid` for a change that is not
 * allowed. A record without a version can only replace another record without a version.
 */
export function isKeyChange(record: KeyRecord, before: KeyRecord): boolean {
  if (toJson(before) === toJson(record)) return false;
  const at = before.version ?? 1;
  if (record.version === undefined ? before.version !== undefined : record.version !== at + 1)
    fail(
      "invalid",
      `The key ${record.id} was changed by someone else: it is now at version ${at}.`,
      {
        code: "version_conflict",
      },
    );
  return true;
}

// Rejects invalid commands before anything changes. A batch with an invalid command has no effect.

/** Amounts are signed 64-bit integers in nano-dollars: up to 9 billion US dollars. */
const MAX_NANO = 2n ** 63n - 1n;
const MIN_NANO = -MAX_NANO;

/**
 * Checks a command. It is called for each command of a batch before the first command is applied.
 * Throws `invalid` with the name of the field.
 */
export function checkCommand(c: StoreCommand): void {
  checkTimestamp(c.at);
  switch (c.do) {
    case "reserve":
      checkAttemptId(c.attempt);
      checkAmount("holdNano", c.holdNano);
      if (c.holdNano !== null && c.holdNano < 0n) rejectField("holdNano", "is negative");
      for (const { max, take, scope, maxMembers } of c.claims) {
        if (take < 0n) rejectField("take", `of ${scope} is negative`);
        if (typeof max === "bigint") {
          if (max < 0n) rejectField("max", `of ${scope} is negative`);
        } else if (!(Number.isSafeInteger(max) && max >= 0))
          rejectField("max", `of ${scope} is ${max}, which is not a whole number`);
        const isReserved = isReservedScope(scope);
        if (isReserved && !isMemberScope(scope))
          rejectField("scope", `${scope} starts with ~, which is reserved`);
        if (maxMembers !== undefined && !isReserved)
          rejectField("maxMembers", `of ${scope} is set, but the scope belongs to no group`);
      }
      if (c.job) checkJobReserve(c, c.job);
      return;
    case "settle":
      checkAttemptId(c.attempt);
      checkAmount("costNano", c.costNano);
      if (c.costNano !== null && c.costNano < 0n) rejectField("costNano", "is negative");
      if (c.state === "external" && c.costNano !== 0n)
        rejectField("costNano", "is not 0, but the client paid the provider");
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
    case "member":
      for (const { scope, per } of c.limits) {
        if (!isMemberScope(scope)) rejectField("scope", `${scope} is not the scope of a member`);
        if (c.change.type === "raise" && !isCalendarPeriod(per))
          rejectField(
            "per",
            `is ${per}, but only windows per day, week, month, and in total can be raised`,
          );
      }
      if (c.change.type === "raise") {
        if (c.change.amount <= 0n) rejectField("amount", "is not positive");
        if (!CHANGE_ID.test(c.change.id)) rejectField("id", "is not the ID of a change");
      }
      return;
    case "price":
    case "heartbeat":
  }
}

/** Checks a reserve of a job or of one of its lines. */
function checkJobReserve({ attempt, claims }: Reserve, job: JobReserve): void {
  checkAttemptId(job.attempt);
  if (job.attempt === attempt) {
    for (const { scope, per } of claims)
      if (!isCalendarPeriod(per))
        rejectField("per", `of ${scope} is ${per}, but a job counts in calendar windows only`);
    if (job.take) rejectField("take", "is set, but the job itself takes from its claims");
  } else if (claims.length > 0)
    rejectField("claims", "is not empty, but a line takes from the reservation of its job");
  for (const [unit, amount] of Object.entries(job.take ?? {}))
    if (amount < 0n) rejectField("take", `of ${unit} is negative`);
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
  if (typeof amount === "bigint" && (amount > MAX_NANO || amount < MIN_NANO))
    rejectField(field, `is ${amount}, which exceeds the ledger's maximum`);
}

const rejectField = (field: string, how: string): never =>
  fail("invalid", `The command's ${field} ${how}.`, { code: "invalid_command", param: field });
