// People who signed in. Each has one key, whose permissions come from the claims of the identity
// provider. Revoking the key ends all sessions of the person.
import {
  fail,
  getFault,
  identityOfClaims,
  claimAt,
  type AccessTokens,
  type ClaimAccounts,
  type ClaimMap,
  type Claims,
  type Context,
  type KeyRecord,
  type Limit,
} from "tollgate/plugin";
import type { Seal, SealedRecords } from "./sealed-records.ts";

/** A person, as the identity provider last reported. */
export interface PersonData {
  readonly keyId: string;
  readonly subject: string;
  readonly email: string | undefined;
  readonly name: string | undefined;
  readonly groups: readonly string[];
  readonly seenAt: number;
  /** Limits that were last set, as text. An operator's own limits are not replaced. */
  readonly limits: string;
}

export interface PeopleOptions {
  readonly ctx: Pick<Context, "keys">;
  /** Name of the frontend, with which the IDs of keys begin. */
  readonly prefix: string;
  readonly tokens: AccessTokens;
  readonly records: SealedRecords<PersonData>;
  readonly seal: Seal;
  readonly map: ClaimMap;
  readonly accounts: ClaimAccounts;
  readonly groupsClaim: string;
  /** Returns the limits of a person. */
  readonly limitsOf: (person: Pick<PersonData, "keyId" | "subject" | "groups">) => Promise<Limit[]>;
  readonly now: () => number;
}

const MAX_GROUPS = 200;
const MAX_ENDED_SESSIONS = 100;
const MAX_TRIES = 10;

export class People {
  readonly #of: PeopleOptions;

  constructor(of: PeopleOptions) {
    this.#of = of;
  }

  /**
   * Applies the claims to the person's key. Throws the fault `forbidden` if the claims give no
   * access, or if an operator revoked the person's key.
   */
  async admit(claims: Claims): Promise<PersonData> {
    const { prefix, map, accounts, now } = this.#of;
    const who = identityOfClaims(claims, prefix, map, accounts, () => undefined);
    const groups = this.#groupsOf(claims);
    const subject = who.id.slice(prefix.length + 1);
    const email = textOf(claimAt(claims, "email"));
    const person = { keyId: who.id, subject, groups };
    const limits = await this.#of.limitsOf(person);
    const before = await this.#of.records.find(this.#recordId(who.id));
    await this.#change(who.id, (key) => {
      if (key?.revoked !== undefined)
        fail("forbidden", "An operator has revoked your access to this gateway.", {
          code: "key_revoked",
        });
      const own = key && textOfLimits(key.limits) !== (before?.data.limits ?? "[]");
      return {
        ...key,
        id: who.id,
        digest: this.#of.tokens.keyDigest(who.id),
        created: key?.created ?? now(),
        name: who.name ?? email ?? subject,
        account: who.account,
        models: who.models,
        privacy: who.privacy,
        labels: who.labels,
        limits: own ? key.limits : limits,
      };
    });
    const data: PersonData = {
      ...person,
      email,
      name: textOf(who.name),
      seenAt: now(),
      limits: textOfLimits(limits),
    };
    await this.#save(data);
    return data;
  }

  /** Returns whether the person's key exists and is not revoked. */
  async isAdmitted(keyId: string): Promise<boolean> {
    const key = await this.#of.ctx.keys.read(this.#of.tokens.keyDigest(keyId));
    return key !== undefined && key.revoked === undefined;
  }

  /** Rejects the access tokens of a session until they have expired. */
  async endSession(keyId: string, id: string, until: number): Promise<void> {
    const now = this.#of.now();
    await this.#change(keyId, (key) => {
      if (!key) return undefined;
      const ended = (key.endedSessions ?? []).filter((one) => one.until > now && one.id !== id);
      return { ...key, endedSessions: [...ended, { id, until }].slice(-MAX_ENDED_SESSIONS) };
    });
  }

  /** Accepts a person again whose key was revoked. Returns false if the person is unknown. */
  async restore(keyId: string): Promise<boolean> {
    const digest = this.#of.tokens.keyDigest(keyId);
    if (!(await this.#of.ctx.keys.read(digest))) return false;
    await this.#change(keyId, (key) => key && { ...key, revoked: undefined });
    return true;
  }

  /** Applies new limits to a person who has signed in before. */
  async applyLimits(person: PersonData): Promise<void> {
    const limits = await this.#of.limitsOf(person);
    await this.#change(person.keyId, (key) =>
      key && textOfLimits(key.limits) === person.limits ? { ...key, limits } : undefined,
    );
    await this.#save({ ...person, limits: textOfLimits(limits) });
  }

  async *list(): AsyncGenerator<PersonData, void> {
    for await (const { data } of this.#of.records.list()) yield data;
  }

  find(keyId: string): Promise<PersonData | undefined> {
    return this.#of.records.find(this.#recordId(keyId)).then((record) => record?.data);
  }

  #recordId(keyId: string): string {
    return `per_${this.#of.seal.hide(`person ${keyId}`)}`;
  }

  async #save(data: PersonData): Promise<void> {
    const id = this.#recordId(data.keyId);
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const record = await this.#of.records.find(id);
      const saved = record
        ? await this.#of.records.replace(record, data)
        : await this.#of.records.create(id, { key: data.keyId, data });
      if (saved) return;
    }
  }

  /** @param change Returns the new record. Undefined: unchanged. */
  async #change(
    keyId: string,
    change: (key: KeyRecord | undefined) => KeyRecord | undefined,
  ): Promise<void> {
    const { keys } = this.#of.ctx;
    for (let tries = 0; ; tries++) {
      const before = await keys.read(this.#of.tokens.keyDigest(keyId));
      const after = change(before);
      if (!after || (before && textOfKey(before) === textOfKey(after))) return;
      try {
        return await keys.write(
          before ? { ...after, version: (before.version ?? 1) + 1 } : { ...after, version: 1 },
        );
      } catch (error) {
        if (tries >= MAX_TRIES || getFault(error)?.code !== "version_conflict") throw error;
      }
    }
  }

  #groupsOf(claims: Claims): readonly string[] {
    const value = claimAt(claims, this.#of.groupsClaim);
    return (Array.isArray(value) ? value : [value])
      .filter((one): one is string => typeof one === "string" && one.length <= 256)
      .slice(0, MAX_GROUPS);
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= 256 ? value : undefined;

/** Returns a text that differs if a member differs, whatever the order of the members. */
const textOfKey = (key: KeyRecord): string =>
  JSON.stringify(
    Object.entries(key)
      .filter(([, value]) => value !== undefined && value !== null)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
    (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value),
  );

const textOfLimits = (limits: KeyRecord["limits"]): string =>
  JSON.stringify((limits ?? []).map(({ unit, max, per }) => [unit, String(max), per]));
