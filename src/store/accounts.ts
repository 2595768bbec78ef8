// Decides whether a change of an account or a key can be applied. Pure: current records are read
// through the journal, so the decision is valid within the whole batch.
import { fail, type AccountRecord, type KeyRecord } from "../plugin/index.ts";
import { toJson } from "./bigint-json.ts";

/**
 * Storage of accounts in a journal. `put` belongs to the batch's transaction, and `get` sees what
 * the batch has put.
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
 * allowed. A record without a version can only replace one without a version.
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
