// Commands to create, list, update, revoke, and rotate keys. The same commands work on the control
// socket of a running gateway and directly on the store. No result contains a digest. The secret of
// a new key is shown only once.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { mintKey } from "../../lib/api-key.ts";
import { fail } from "../../model/error.ts";
import type { LimitUsage } from "../../plugin/store/limit.ts";
import type { Identity } from "../../plugin/identity.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import { type AccountTree, readAccountTree } from "../access/account-tree.ts";
import {
  type GrantTargets,
  mergeConverted,
  toLabels,
  toScopedLimits,
  parseLimits,
  assertVersion,
  assertAccountExists,
  mergeValue,
  type ShownLimitUsage,
  toLimitUsage,
  shownLimits,
  unknownGrantWarnings,
} from "../access/grants.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import { createOpeningRows, type KeyRepository } from "../access/key-repository.ts";
import type { InputOf } from "../schema/command-specs.ts";

/**
 * Finds a key by its ID, or by its name if only one key has that name. The newest record is first,
 * because a rotated key temporarily has two records.
 */
function findKeyVersions(keys: readonly KeyRecord[], id: string): [KeyRecord, ...KeyRecord[]] {
  const named = keys.filter((key) => key.name === id);
  const same = keys.filter((key) => key.id === id);
  const meant = same.length > 0 ? same : named;
  if (new Set(meant.map((key) => key.id)).size > 1)
    fail(
      "invalid",
      `Several keys are named "${id}": use an ID. ${named.map((key) => key.id).join(", ")}`,
    );
  const [first, ...rest] = meant.sort((a, b) => b.created - a.created);
  return first
    ? [first, ...rest]
    : fail("not_found", `Key "${id}" not found.`, { code: "no_such_key" });
}

/** A key as commands return it. Times are in Unix milliseconds. */
export interface ShownKey extends Omit<KeyRecord, "digest" | "limits"> {
  /** Limits as texts: "usd=5/month". */
  readonly limits?: readonly string[];
  readonly state: "valid" | "expired" | "revoked";
  readonly version: number;
  /**
   * Usage of its limits. If a single key is shown, the limits of its accounts are included. Unset
   * if the store does not support it.
   */
  readonly limitUsage?: readonly ShownLimitUsage[];
}

export const createKeyCommands = (
  repository: KeyRepository,
  targets: () => GrantTargets,
  now: () => number = wallClock,
) => new KeyCommands(repository, targets, now).commands();

class KeyCommands {
  readonly #repository: KeyRepository;
  readonly #grantTargets: () => GrantTargets;
  readonly #now: () => number;

  constructor(repository: KeyRepository, targets: () => GrantTargets, now: () => number) {
    this.#repository = repository;
    this.#grantTargets = targets;
    this.#now = now;
  }

  commands() {
    return withInputChecks({
      "keys.list": () => this.#list(),
      "keys.show": (input) => this.#show(input),
      "keys.create": (input, _giver, id) => this.#create(input, id),
      "keys.import": (input) => this.#import(input),
      "keys.update": (input) => this.#update(input),
      "keys.revoke": (input) => this.#revoke(input),
      "keys.move": (input) => this.#move(input),
      "keys.rotate": (input) => this.#rotate(input),
    });
  }

  async #list() {
    const keys = await this.#repository.listKeys();
    const counted = await this.#repository.readLimits(keys.flatMap(({ limits }) => limits ?? []));
    let at = 0;
    return {
      keys: keys.map((key) => {
        const own = counted.slice(at, (at += key.limits?.length ?? 0));
        return this.#toShown(key, own);
      }),
    };
  }

  async #show({ id }: InputOf<"keys.show">) {
    const keys = await this.#getKey(id);
    const { account, limits = [] } = keys[0];
    const tree = await this.#readTree();
    const outer = account === undefined ? [] : tree.ancestry(account);
    const all = [...limits, ...outer.flatMap((each) => each.limits ?? [])];
    const counted = await this.#repository.readLimits(all);
    return { keys: keys.map((key) => this.#toShown(key, counted)) };
  }

  async #create(input: InputOf<"keys.create">, id?: string) {
    const key = mintKey(id);
    const { record, warned } = this.#createRecord(
      input,
      key.id,
      key.digest,
      await this.#readTree(),
      true,
    );
    const warnings = [...(await this.#sameNameWarnings(record)), ...warned];
    await this.#repository.writeKey(record);
    this.#notify("created", record.id);
    return { secret: key.secret, key: this.#toShown(record), warnings };
  }

  /** Imports keys. Existing keys are not changed, so an import can be repeated. */
  async #import({ keys, defaults = false }: InputOf<"keys.import">) {
    const there = new Set((await this.#repository.listKeys()).map(({ digest }) => digest));
    const tree = await this.#readTree();
    const made = keys
      .filter(({ digest }) => !there.has(digest) && there.add(digest))
      .map(({ digest, revoked, spent: _, ...grants }) => {
        const of = this.#createRecord({ ...grants, defaults }, mintKey().id, digest, tree, false);
        return revoked ? { ...of, record: { ...of.record, revoked: this.#now() } } : of;
      });
    for (const { record } of made) {
      await this.#repository.writeKey(record);
      this.#notify("created", record.id);
    }
    await this.#writeOpenings(
      new Map(keys.map(({ digest, spent = 0 }) => [digest, BigInt(spent)])),
      tree,
    );
    return {
      keys: made.map(({ record }) => this.#toShown(record)),
      existing: keys.length - made.length,
      warnings: [...new Set(made.flatMap(({ warned }) => warned))],
    };
  }

  /**
   * Writes the opening balances of all imported keys, including keys that existed before. Writing a
   * balance again has no effect.
   */
  async #writeOpenings(spent: ReadonlyMap<string, bigint>, tree: AccountTree): Promise<void> {
    for (const key of await this.#repository.listKeys()) {
      const spentNano = spent.get(key.digest) ?? 0n;
      if (spentNano === 0n) continue;
      const outer = key.account === undefined ? [] : tree.ancestry(key.account);
      const limits = [...(key.limits ?? []), ...outer.flatMap((each) => each.limits ?? [])];
      const account = key.account === undefined ? undefined : tree.path(key.account);
      const opening = createOpeningRows({ key, limits, account, spentNano, at: this.#now() });
      await this.#repository.writeOpening(opening);
    }
  }

  async #update({ id, version, ...input }: InputOf<"keys.update">) {
    const [latest, ...older] = await this.#getKey(id);
    assertVersion(version, `key "${id}"`, versionOf(latest));
    if (input.account !== undefined && input.account !== null)
      assertAccountExists(input.account, await this.#readTree(), "/account");
    const change = (key: KeyRecord, expires: number | undefined): KeyRecord => ({
      ...key,
      name: mergeValue(input.name, key.name),
      models: mergeValue(input.models, key.models),
      frontends: mergeValue(input.frontends, key.frontends),
      tools: mergeValue(input.tools, key.tools),
      privacy: mergeValue(input.privacy, key.privacy),
      account: mergeValue(input.account, key.account),
      limits: mergeConverted(input.limits, key.limits, (limits) =>
        toScopedLimits(parseLimits(limits), `key:${key.id}`),
      ),
      labels: mergeConverted(input.labels, key.labels, toLabels),
      expires,
    });
    const keys = [
      change(latest, mergeValue(input.expires, latest.expires)),
      // A replaced secret must not live longer than planned.
      ...older.map((key) =>
        change(key, input.expires ? Math.min(input.expires, key.expires ?? Infinity) : key.expires),
      ),
    ];
    const written = await this.#write(keys, input.account === undefined ? "updated" : "moved");
    return { keys: written, warnings: unknownGrantWarnings(keys[0]!, this.#grantTargets()) };
  }

  async #revoke({ id, version }: InputOf<"keys.revoke">) {
    const keys = await this.#getKey(id);
    assertVersion(version, `key "${id}"`, versionOf(keys[0]));
    const ended = keys.map((key) => ({ ...key, revoked: key.revoked ?? this.#now() }));
    return { keys: await this.#write(ended, "revoked") };
  }

  /** Moves a key to another account. Rows that it has written keep the previous account. */
  async #move({ id, account, version }: InputOf<"keys.move">) {
    assertAccountExists(account, await this.#readTree(), "/account");
    const keys = await this.#getKey(id);
    assertVersion(version, `key "${id}"`, versionOf(keys[0]));
    return {
      keys: await this.#write(
        keys.map((key) => ({ ...key, account })),
        "moved",
      ),
    };
  }

  /**
   * Replaces the secret of a key. The ledger and limits treat it as the same key. The previous
   * secret remains valid for the overlap.
   */
  async #rotate({ id, overlapMs = 0, version }: InputOf<"keys.rotate">) {
    const [latest, ...older] = await this.#getKey(id);
    assertVersion(version, `key "${id}"`, versionOf(latest));
    if (this.#hasEnded(latest.revoked))
      fail("conflict", `The key "${latest.id}" is revoked. Create a new key.`, {
        code: "key_revoked",
      });
    const key = mintKey(latest.id);
    const until = this.#now() + overlapMs;
    // The newest record is identified by its creation time.
    const created = Math.max(this.#now(), latest.created + 1);
    const record = nextVersion({ ...latest, digest: key.digest, created });
    await this.#repository.writeKey(record);
    for (const old of [latest, ...older].filter((each) => !this.#hasEnded(each.revoked)))
      await this.#repository.writeKey(
        nextVersion({ ...old, expires: Math.min(old.expires ?? Infinity, until) }),
      );
    this.#notify("rotated", record.id);
    return { secret: key.secret, key: this.#toShown(record) };
  }

  /** Creates a record, with the default limits of its account. */
  #createRecord(
    input: InputOf<"keys.create">,
    id: string,
    digest: string,
    tree: AccountTree,
    defaults: boolean,
  ): { record: KeyRecord; warned: string[] } {
    const { name, models, frontends, tools, privacy, account, expires, labels } = input;
    const limits = parseLimits(input.limits ?? []);
    assertAccountExists(account, tree, "/account");
    const usual =
      (input.defaults ?? defaults)
        ? tree.defaultLimits(account, this.#grantTargets().keyDefaults)
        : [];
    const more = usual.filter(({ unit }) => !limits.some((own) => own.unit === unit));
    const record: KeyRecord = {
      name,
      models,
      frontends,
      tools,
      privacy,
      account,
      limits: toScopedLimits([...limits, ...more], `key:${id}`),
      labels: toLabels(labels),
      id,
      digest,
      created: this.#now(),
      expires,
    };
    return { record, warned: unknownGrantWarnings(record, this.#grantTargets()) };
  }

  async #write(keys: readonly KeyRecord[], change: "moved" | "updated" | "revoked") {
    const written = keys.map(nextVersion);
    for (const key of written) await this.#repository.writeKey(key);
    this.#notify(change, written[0]!.id);
    return written.map((key) => this.#toShown(key));
  }

  #readTree(): Promise<AccountTree> {
    return readAccountTree(this.#repository, this.#grantTargets().fileAccounts);
  }

  async #getKey(id: string): Promise<[KeyRecord, ...KeyRecord[]]> {
    return findKeyVersions(await this.#repository.listKeys(), id);
  }

  /** A command that uses this name would then need the ID. */
  async #sameNameWarnings({ id, name }: KeyRecord): Promise<string[]> {
    if (name === undefined) return [];
    const same = (await this.#repository.listKeys()).find(
      (key) => key.name === name && this.#toShown(key).state === "valid",
    );
    return same
      ? [`the key ${same.id} is also named "${name}", so commands need the ID ${id}`]
      : [];
  }

  #toShown(
    { digest: _, limits, ...key }: KeyRecord,
    counted: readonly LimitUsage[] = [],
  ): ShownKey {
    const { revoked, expires } = key;
    return {
      ...key,
      ...shownLimits({ limits }),
      state: this.#hasEnded(revoked) ? "revoked" : this.#hasEnded(expires) ? "expired" : "valid",
      version: key.version ?? 1,
      ...(counted.length > 0 && { limitUsage: counted.map(toLimitUsage) }),
    };
  }

  #hasEnded(at: number | undefined): boolean {
    return at !== undefined && at <= this.#now();
  }

  #notify(change: "created" | "moved" | "updated" | "rotated" | "revoked", id: string): void {
    this.#repository.onChanged?.({ type: "key", change }, id);
  }
}

/**
 * Returns the identity of a client with this key. Throws if the key does not exist or has ended.
 */
export async function identityOfKey(
  repository: Pick<KeyRepository, "listKeys">,
  idOrName: string,
  now: number,
): Promise<Identity> {
  const [key] = findKeyVersions(await repository.listKeys(), idOrName);
  const { id, name, models, frontends, tools, privacy, limits, labels, account } = key;
  if ([key.revoked, key.expires].some((end) => end !== undefined && end <= now))
    fail(
      "conflict",
      `The key "${idOrName}" has expired or is revoked, so its requests are rejected.`,
      {
        code: "key_ended",
      },
    );
  return { id, name, models, frontends, tools, privacy, limits, labels, account };
}

const versionOf = ({ version = 1 }: KeyRecord): number => version;
const nextVersion = (key: KeyRecord): KeyRecord => ({ ...key, version: versionOf(key) + 1 });
