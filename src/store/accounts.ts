// Which change of an account or of a key can be obeyed. Pure: what there is, is asked of the journal, so that the answer holds for the whole batch.
import { fail, type AccountRecord, type KeyRecord } from "../plugin/index.ts";
import { toJson } from "./bigint-json.ts";

/** Where a journal keeps accounts. `put` belongs to the batch's transaction, and `get` sees what the batch has put. */
export interface AccountRepository {
  get(id: string): AccountRecord | undefined;
  put(record: AccountRecord): void;
}

/** False: it is there as it is. Throws `invalid` for what cannot be. */
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
        ? `The account ${record.id} has changed since: it is at version ${before.version}.`
        : `There is no account ${record.id} that could have changed.`,
      { code: "version_conflict" },
    );
  const path = [record.id];
  for (let up = record.parent; up !== undefined; up = get(up)?.parent) {
    path.push(up);
    if (up === record.id)
      fail("invalid", `These accounts would stand in one another: ${path.join(" → ")}.`, {
        code: "account_cycle",
        param: "/parent",
      });
  }
  return true;
}

/** The same of a key that is there. A record without a version takes the place of one without, and of no other. */
export function isKeyChange(record: KeyRecord, before: KeyRecord): boolean {
  if (toJson(before) === toJson(record)) return false;
  const at = before.version ?? 1;
  if (record.version === undefined ? before.version !== undefined : record.version !== at + 1)
    fail("invalid", `The key ${record.id} has changed since: it is at version ${at}.`, {
      code: "version_conflict",
    });
  return true;
}
