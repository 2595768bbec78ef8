// Files and uploads as records of jobs, which every store keeps for its gateways. A record that
// expires is due at that time.
import {
  fail,
  type JobQuery,
  type JobRecord,
  type JobStore,
  type Opt,
  type RequestHead,
} from "tollgate/plugin";
import { jobCursor } from "tollgate/store";
import { createdAtOfId } from "./file-secrets.ts";
import { isVersionConflict } from "./stored-jobs.ts";

/** An owner of files: an account, or a key that has none. */
export interface Owner {
  /** Name of the owner in IDs and keys. */
  readonly name: string;
  readonly key: string;
  readonly account: string | undefined;
}

/** Data of a record. */
interface ExpiringData {
  /** In Unix milliseconds. */
  readonly expiresAt?: number | undefined;
}

/** A record of an owner. */
export type Owned<Data> = Data & {
  /** ID without its prefix. */
  readonly id: string;
  /** In Unix milliseconds. */
  readonly createdAt: number;
};

export function ownerOf({ identity }: RequestHead): Owner {
  const { id, account } = identity ?? fail("unauthenticated", "Missing API key.");
  return { key: id, account: account ?? undefined, name: ownerNameOf(id, account) };
}

/** Returns the name of an owner in IDs and keys. */
export const ownerNameOf = (key: string, account: Opt<string>): string =>
  account == null ? `key:${key}` : `account:${account}`;

/** Whether the record belongs to the owner. A key that left its account left its files there. */
export const isOwned = (record: JobRecord, { key, account }: Owner): boolean =>
  record.account === account && (account !== undefined || record.key === key);

/** Returns the query for the records of an owner. It can return those of a key that left its account. */
export const queryOf = (kind: string, { key, account }: Owner): JobQuery => ({
  kind,
  ...(account === undefined ? { key } : { account }),
});

/** Maximum number of records in one page of the store. Each has up to 64 KiB. */
const PAGE_RECORDS = 100;

/** A page of jobs, for a list of a client. */
export interface JobPageOptions<T> {
  readonly kind: string;
  readonly limit: number;
  /**
   * ID of the job before the page. If the job was deleted, the time in its ID applies. IDs of jobs that
   * old versions created contain none.
   */
  readonly after?: string | undefined;
  readonly isAscending?: boolean;
  /** Returns the item of a record. Undefined if the list does not contain it. */
  readonly read: (record: JobRecord) => T | undefined;
}

/** Returns a page of the owner's jobs. */
export async function listOwned<T>(
  jobs: JobStore,
  owner: Owner,
  { kind, limit, after, isAscending = false, read }: JobPageOptions<T>,
): Promise<{ readonly items: readonly T[]; readonly hasMore: boolean }> {
  const query: JobQuery = {
    ...queryOf(kind, owner),
    order: isAscending ? "oldest_first" : "newest_first",
  };
  const found: T[] = [];
  let cursor: string | undefined;
  if (after !== undefined) {
    const last = await jobs.find(after);
    const isListed = last?.kind === kind && isOwned(last, owner);
    const createdAt = isListed ? last.createdAt : createdAtOfId(after);
    cursor = jobCursor({ createdAt, id: after });
  }
  do {
    const page = await jobs.list(query, { limit: PAGE_RECORDS, after: cursor });
    for (const record of page.items) {
      const item = isOwned(record, owner) ? read(record) : undefined;
      if (item !== undefined) found.push(item);
      if (found.length > limit) return { items: found.slice(0, limit), hasMore: true };
    }
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return { items: found, hasMore: false };
}

/** The records of one kind, of all owners. */
export class OwnedRecords<Data extends ExpiringData> {
  readonly #jobs: JobStore;
  readonly #kind: string;

  constructor(jobs: JobStore, kind: string) {
    this.#jobs = jobs;
    this.#kind = kind;
  }

  /** Creates a record. Returns the existing one if it has been created before. */
  async create(owner: Owner, id: string, createdAt: number, data: Data): Promise<Owned<Data>> {
    try {
      await this.#jobs.put({
        id,
        kind: this.#kind,
        key: owner.key,
        account: owner.account,
        version: 1,
        createdAt,
        state: "stored",
        dueAt: data.expiresAt,
        data: JSON.stringify(data),
      });
      return { ...data, id, createdAt };
    } catch (error) {
      const existing = isVersionConflict(error) && (await this.find(owner, id, createdAt));
      if (existing) return existing;
      throw error;
    }
  }

  /** Returns a record of the owner that has not expired. */
  async find(owner: Owner, id: string, now: number): Promise<Owned<Data> | undefined> {
    const record = await this.#read(id);
    return record && isOwned(record, owner) ? this.#parse(record, now) : undefined;
  }

  /** Returns all records of the owner that have not expired, the newest first. */
  async list(owner: Owner, now: number): Promise<readonly Owned<Data>[]> {
    const query = queryOf(this.#kind, owner);
    const found: Owned<Data>[] = [];
    for (let after: string | undefined; ;) {
      const page = await this.#jobs.list(query, { limit: 1_000, after });
      for (const record of page.items) {
        const owned = isOwned(record, owner) ? this.#parse(record, now) : undefined;
        if (owned) found.push(owned);
      }
      after = page.next ?? undefined;
      if (after === undefined) return found;
    }
  }

  /**
   * Changes a record. Returns undefined if it does not exist any more.
   * @param change Returns the new data. Called again if another request changed the record.
   */
  async update(
    id: string,
    now: number,
    change: (data: Owned<Data>) => Data,
  ): Promise<Owned<Data> | undefined> {
    for (;;) {
      const record = await this.#read(id);
      const before = record && this.#parse(record, now);
      if (!record || !before) return undefined;
      const changed = change(before);
      try {
        await this.#jobs.put({
          ...record,
          version: record.version + 1,
          dueAt: changed.expiresAt,
          data: JSON.stringify({ ...changed, id: undefined, createdAt: undefined }),
        });
        return { ...changed, id, createdAt: record.createdAt };
      } catch (error) {
        if (!isVersionConflict(error)) throw error;
      }
    }
  }

  /** Deletes a record. The content is unreadable from then on. Returns false if it is gone. */
  async delete(id: string): Promise<boolean> {
    for (;;) {
      const record = await this.#read(id);
      if (!record) return false;
      try {
        await this.#jobs.delete(id, record.version);
        return true;
      } catch (error) {
        if (!isVersionConflict(error)) throw error;
      }
    }
  }

  /** Deletes up to 100 expired records, and returns them. */
  async deleteExpired(now: number, owner: string): Promise<readonly Owned<Data>[]> {
    const kinds = [this.#kind];
    const due = await this.#jobs.lease({ at: now, owner, leaseMs: 60_000, limit: 100, kinds });
    for (const { id, version } of due) await this.#jobs.delete(id, version);
    return due.map((record) => this.#parse(record, -Infinity)!);
  }

  async #read(id: string): Promise<JobRecord | undefined> {
    const record = await this.#jobs.find(id);
    return record?.kind === this.#kind ? record : undefined;
  }

  #parse({ id, createdAt, data }: JobRecord, now: number): Owned<Data> | undefined {
    const parsed = JSON.parse(data) as Data;
    const { expiresAt } = parsed;
    return expiresAt !== undefined && expiresAt <= now ? undefined : { ...parsed, id, createdAt };
  }
}
