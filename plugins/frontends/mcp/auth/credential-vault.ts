// Encrypted credentials of users, one record for each user and server, in the store of the gateway.
// The store sees ciphertext only. A record cannot be moved to another user or server, because both
// are authenticated with it.
import { createHash } from "node:crypto";
import {
  fail,
  getFault,
  type Context,
  type Json,
  type JobRecord,
  type JobStore,
} from "tollgate/plugin";
import { seal, unseal, type SealKeys } from "./sealed-data.ts";

/** Kind of the records. Erasing the data of a key deletes its records. */
const KIND = "user_credential";

/** The credential of a user for one server. */
export interface UserCredential {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** End of the access token, in Unix milliseconds. */
  readonly expiresAt: number;
  /** Issuer that issued the tokens, and its token endpoint. */
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly clientAuth: "client_secret_basic" | "client_secret_post" | "none" | undefined;
  /** Resource that the tokens are for. */
  readonly resource: string;
}

/** User whose credentials are stored. */
export interface CredentialOwner {
  /** ID of the client, as in the ledger. */
  readonly id: string;
  readonly account: string | undefined;
}

/**
 * A stored credential. `connected`: usable. `refreshing`: a gateway refreshes it. `expired`: the user
 * has to connect again.
 */
export interface StoredCredential {
  readonly state: "connected" | "refreshing" | "expired";
  readonly credential: UserCredential;
  readonly record: JobRecord;
}

/** Derives the keys of the vault from the operator's secrets, or from a secret of the store. */
export const vaultKeys = (
  ctx: Pick<Context, "deriveSecret">,
  secrets: readonly string[],
): SealKeys =>
  secrets.length === 0
    ? [ctx.deriveSecret("credentials of users")]
    : secrets.map((secret) =>
        createHash("sha256").update("tollgate credentials of users\n").update(secret).digest(),
      );

/** Stores credentials. Every change follows the version that was read, so that none is lost. */
export class CredentialVault {
  readonly #jobs: JobStore;
  readonly #keys: SealKeys;
  /** Name of the frontend, so that two frontends share no credentials. */
  readonly #scope: string;

  constructor(jobs: JobStore, keys: SealKeys, scope: string) {
    this.#jobs = jobs;
    this.#keys = keys;
    this.#scope = scope;
  }

  /** Returns the credential of a user. Undefined if there is none, or if no key decrypts it. */
  async find(owner: string, server: string): Promise<StoredCredential | undefined> {
    const record = await this.#jobs.find(this.#idOf(owner, server));
    if (!record) return undefined;
    const credential = this.#open(record, server);
    return credential && { state: record.state as StoredCredential["state"], credential, record };
  }

  /** Stores a new credential, in place of the earlier credential. */
  async save(owner: CredentialOwner, server: string, credential: UserCredential): Promise<void> {
    const id = this.#idOf(owner.id, server);
    for (let attempt = 1; ; attempt++) {
      const before = await this.#jobs.find(id);
      const record: JobRecord = {
        id,
        kind: KIND,
        key: owner.id,
        account: owner.account,
        version: (before?.version ?? 0) + 1,
        createdAt: before?.createdAt ?? Date.now(),
        state: "connected",
        data: this.#seal(id, owner.id, server, credential),
      };
      try {
        return await this.#jobs.put(record);
      } catch (error) {
        if (!isVersionConflict(error) || attempt === 5) throw error;
      }
    }
  }

  /**
   * Takes the right to refresh a credential, until `until`. Returns undefined if another gateway
   * changed the record first.
   */
  async lease(
    { record, credential }: StoredCredential,
    instance: string,
    until: number,
  ): Promise<StoredCredential | undefined> {
    return this.#replace(
      { ...record, state: "refreshing", owner: instance, dueAt: until },
      credential,
    );
  }

  /** Ends a lease. Returns undefined if the lease was lost. */
  async finish(
    { record }: StoredCredential,
    server: string,
    state: "connected" | "expired",
    credential: UserCredential,
  ): Promise<StoredCredential | undefined> {
    const { owner: _, dueAt: __, ...rest } = record;
    const data = this.#seal(record.id, record.key, server, credential);
    return this.#replace({ ...rest, state, data }, credential);
  }

  /** Deletes a credential. */
  async delete(owner: string, server: string): Promise<void> {
    const id = this.#idOf(owner, server);
    for (let attempt = 1; ; attempt++) {
      const before = await this.#jobs.find(id);
      if (!before) return;
      try {
        return await this.#jobs.delete(id, before.version);
      } catch (error) {
        if (!isVersionConflict(error) || attempt === 5) throw error;
      }
    }
  }

  async #replace(
    record: JobRecord,
    credential: UserCredential,
  ): Promise<StoredCredential | undefined> {
    const next = { ...record, version: record.version + 1 };
    try {
      await this.#jobs.put(next);
    } catch (error) {
      if (isVersionConflict(error)) return undefined;
      throw error;
    }
    return { state: next.state as StoredCredential["state"], credential, record: next };
  }

  #idOf(owner: string, server: string): string {
    const text = JSON.stringify([this.#scope, server, owner]);
    return `cred_${createHash("sha256").update(text).digest("base64url")}`;
  }

  #seal(id: string, owner: string, server: string, credential: UserCredential): string {
    return seal(this.#keys, [id, owner, server], credential as unknown as Json);
  }

  #open({ id, key: owner, data }: JobRecord, server: string): UserCredential | undefined {
    return unseal(this.#keys, [id, owner, server], data) as unknown as UserCredential | undefined;
  }
}

const isVersionConflict = (error: unknown): boolean => getFault(error)?.code === "version_conflict";

/** Throws the fault for a store that keeps no records. */
export const requireJobs = ({ jobs }: Pick<Context, "jobs">): JobStore =>
  jobs ??
  fail("invalid", "The store keeps no credentials of users. Use the store sqlite or postgres.", {
    code: "no_jobs",
  });
