// Short-lived state that all gateways on the store share, encrypted, as records of jobs. A change
// succeeds only if no other gateway has changed the record in the meantime.
import { createHmac, hkdfSync } from "node:crypto";
import { decrypt, encrypt, fail, getFault, type JobRecord, type JobStore } from "tollgate/plugin";

/** Encrypts texts with a secret of all gateways on the store. */
export class Seal {
  readonly #key: Buffer;
  readonly #nameKey: Buffer;

  constructor(secret: Uint8Array) {
    this.#key = Buffer.from(hkdfSync("sha256", secret, "", "content", 32));
    this.#nameKey = Buffer.from(hkdfSync("sha256", secret, "", "names", 32));
  }

  /** @param purpose A text with which the result can be opened, and with no other. */
  seal(purpose: string, text: string): string {
    return encrypt(this.#key, text, purpose).toString("base64url");
  }

  /** Returns undefined if the text was not sealed for this purpose. */
  open(purpose: string, sealed: string): string | undefined {
    return decrypt(this.#key, Buffer.from(sealed, "base64url"), purpose)?.toString();
  }

  /** Returns a name from which the text cannot be found. */
  hide(text: string): string {
    return createHmac("sha256", this.#nameKey).update(text).digest("hex").slice(0, 40);
  }
}

/** A record as it was read. */
export interface Sealed<Data> {
  readonly id: string;
  readonly version: number;
  /** Key that the record belongs to. */
  readonly key: string;
  /** In Unix milliseconds. */
  readonly createdAt: number;
  /** In Unix milliseconds. Unset if the record does not expire. */
  readonly expiresAt: number | undefined;
  readonly data: Data;
}

export interface SealedRecordsOptions {
  /** Undefined if the store keeps no jobs. */
  readonly jobs: () => JobStore | null | undefined;
  readonly seal: Seal;
  readonly kind: string;
  readonly now: () => number;
}

/** The records of one kind. */
export class SealedRecords<Data> {
  readonly #of: SealedRecordsOptions;

  constructor(of: SealedRecordsOptions) {
    this.#of = of;
  }

  /** Returns undefined if there is a record with this ID. */
  async create(
    id: string,
    of: { readonly key: string; readonly data: Data; readonly expiresAt?: number | undefined },
  ): Promise<Sealed<Data> | undefined> {
    const { key, data, expiresAt } = of;
    return this.#put({ id, version: 1, key, createdAt: this.#of.now(), expiresAt, data });
  }

  /** Returns a record that has not expired. */
  async find(id: string): Promise<Sealed<Data> | undefined> {
    const record = await this.#jobs.find(id);
    return record && this.#read(record);
  }

  /** Returns all records that have not expired, the newest first. */
  async *list(key?: string): AsyncGenerator<Sealed<Data>, void> {
    for (let after: string | undefined; ;) {
      const page = await this.#jobs.list({ kind: this.#of.kind, key }, { limit: 500, after });
      for (const record of page.items) {
        const read = this.#read(record);
        if (read) yield read;
      }
      after = page.next ?? undefined;
      if (after === undefined) return;
    }
  }

  /** Returns undefined if the record has been changed since it was read. */
  replace(record: Sealed<Data>, data: Data, expiresAt = record.expiresAt) {
    return this.#put({ ...record, version: record.version + 1, data, expiresAt });
  }

  /**
   * Deletes a record, even if it was changed since it was read.
   * @param isDeletable Whether a record with this content may be deleted. Default: every record.
   */
  async delete(id: string, isDeletable?: (data: Data) => boolean): Promise<void> {
    for (let tries = 0; tries < 10; tries++) {
      const record = await this.#jobs.find(id);
      if (record?.kind !== this.#of.kind) return;
      if (isDeletable) {
        const read = this.#read(record);
        if (!read || !isDeletable(read.data)) return;
      }
      try {
        return await this.#jobs.delete(id, record.version);
      } catch (error) {
        if (!isConflict(error)) throw error;
      }
    }
  }

  /** Deletes up to 100 expired records. */
  async sweep(owner: string): Promise<void> {
    const { now, kind } = this.#of;
    const due = await this.#jobs.lease({
      at: now(),
      owner,
      leaseMs: 60_000,
      limit: 100,
      kinds: [kind],
    });
    for (const { id, version } of due) await this.#jobs.delete(id, version);
  }

  async #put(record: Sealed<Data>): Promise<Sealed<Data> | undefined> {
    const { data, expiresAt, ...fields } = record;
    const { seal, kind } = this.#of;
    try {
      await this.#jobs.put({
        ...fields,
        kind,
        state: "stored",
        dueAt: expiresAt,
        data: seal.seal(`${kind} ${record.id}`, JSON.stringify({ data, expiresAt })),
      });
      return record;
    } catch (error) {
      if (isConflict(error)) return undefined;
      throw error;
    }
  }

  #read({ id, version, key, createdAt, kind, data }: JobRecord): Sealed<Data> | undefined {
    if (kind !== this.#of.kind) return undefined;
    const text = this.#of.seal.open(`${kind} ${id}`, data);
    if (text === undefined) return undefined;
    const content = JSON.parse(text) as { data: Data; expiresAt?: number };
    const { expiresAt } = content;
    if (expiresAt !== undefined && expiresAt <= this.#of.now()) return undefined;
    return { id, version, key, createdAt, expiresAt, data: content.data };
  }

  get #jobs(): JobStore {
    return (
      this.#of.jobs() ??
      fail("unavailable", "This gateway's store cannot keep sign-ins.", { code: "no_jobs" })
    );
  }
}

const isConflict = (error: unknown): boolean => getFault(error)?.code === "version_conflict";
