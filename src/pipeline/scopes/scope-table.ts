// The scopes of a config generation, and the scopes of limits that they create. The scope of a
// member contains hashes, so no counter contains a value of a client.
import { createHmac } from "node:crypto";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { ScopeConfig } from "../../config/gateway-config.ts";
import type { Limit } from "../../plugin/store/limit.ts";
import {
  formatMemberScope,
  isReservedScope,
  parseMemberScope,
} from "../../plugin/store/member-scope.ts";
import { ScopeHeaderReader } from "./scope-headers.ts";

/** Maximum number of cached members, which need not be hashed again. */
const MAX_CACHED_MEMBERS = 10_000;
/** Number of characters of a hash in base64url: 128 bits. */
const HASH_LENGTH = 22;
/** Number of characters of an owner's hash. It only has to separate the owners of one gateway. */
const OWNER_LENGTH = 16;

export class Scopes {
  readonly configs: readonly ScopeConfig[];
  readonly hasDowngrades: boolean;
  /** Whether a scope depends on the labels of a call. */
  readonly readsLabels: boolean;
  /** Reads the headers of requests. */
  readonly headers: ScopeHeaderReader;
  readonly #secret: Uint8Array;
  /** Members by config, owner, and value. */
  readonly #members = new Map<ScopeConfig, Map<string, Map<string | undefined, ScopeMember>>>();
  #memberCount = 0;
  /** Owners that are keys, by the ID of the key. */
  readonly #keyOwners = new BoundedMap<string, string>(MAX_CACHED_MEMBERS);

  /**
   * @param secret Secret that all gateways of a store share. The hashes of values depend on it.
   */
  constructor(configs: Iterable<ScopeConfig>, secret: Uint8Array) {
    this.configs = [...configs];
    this.hasDowngrades = this.configs.some(({ downgrade }) => downgrade !== undefined);
    this.readsLabels = this.configs.some(
      ({ from, labels }) =>
        Object.keys(labels).length > 0 || from.some(({ kind }) => kind === "label"),
    );
    this.headers = new ScopeHeaderReader(this.configs);
    this.#secret = secret;
  }

  get isEmpty(): boolean {
    return this.configs.length === 0;
  }

  /** Returns the scope with this name. */
  find(name: string | undefined): ScopeConfig | undefined {
    return this.configs.find((config) => config.name === name);
  }

  /**
   * Returns a member of a scope, or the scope itself if there is no value. Calls of the same member
   * share the object.
   * @param owner ID of the key or account within which the value is unique. Empty: the gateway.
   */
  memberOf(config: ScopeConfig, owner: string, value: string | undefined): ScopeMember {
    const known = this.#members.get(config)?.get(owner)?.get(value);
    return known ?? this.#addMember(config, owner, value);
  }

  /** Returns the scope of a member's limits. */
  scopeOf(config: ScopeConfig, owner: string, value: string | undefined): string {
    return this.memberOf(config, owner, value).scope;
  }

  /** Returns the owner that is a key. Calls of the same key share the text. */
  keyOwner(id: string): string {
    let owner = this.#keyOwners.get(id);
    if (owner === undefined) this.#keyOwners.set(id, (owner = `key:${id}`));
    return owner;
  }

  #addMember(config: ScopeConfig, owner: string, value: string | undefined): ScopeMember {
    if (++this.#memberCount > MAX_CACHED_MEMBERS) {
      this.#members.clear();
      this.#memberCount = 1;
    }
    let owners = this.#members.get(config);
    if (!owners) this.#members.set(config, (owners = new Map()));
    let members = owners.get(owner);
    if (!members) owners.set(owner, (members = new Map()));
    const member = new ScopeMember(
      config,
      this.#createScope(config, owner, value),
      value === undefined ? undefined : this.hashOf(config, value),
    );
    // A copy, because the value may be a part of a request body and keep it in memory.
    members.set(value === undefined ? undefined : Buffer.from(value).toString(), member);
    return member;
  }

  #createScope(config: ScopeConfig, owner: string, value: string | undefined): string {
    if (value === undefined) return `scope:${config.name}${owner === "" ? "" : `:${owner}`}`;
    const group = `${config.name}.${this.#hash(owner).slice(0, OWNER_LENGTH)}`;
    return formatMemberScope(
      group,
      config.idleMs,
      this.#hash(`${config.name}\0${owner}\0${value}`),
    );
  }

  /** Returns the hash with which ledger rows can contain a value. */
  hashOf(config: ScopeConfig, value: string): string {
    return this.#hash(`${config.name}\0${value}`);
  }

  #hash(text: string): string {
    const hash = createHmac("sha256", this.#secret).update(text).digest("base64url");
    return hash.slice(0, HASH_LENGTH);
  }
}

/** A member of a scope, or a scope without members. Its calls share the objects of its limits. */
export class ScopeMember {
  /** Scope of the limits. */
  readonly scope: string;
  /** Hash with which ledger rows can contain the value. Undefined if there is no value. */
  readonly hash: string | undefined;
  readonly #config: ScopeConfig;
  readonly #limits: (readonly Limit[] | undefined)[] = [];

  constructor(config: ScopeConfig, scope: string, hash: string | undefined) {
    this.#config = config;
    this.scope = scope;
    this.hash = hash;
  }

  /** Returns the limits of one call. */
  limits({ of, countsOnly, isFirst }: LimitOptions): readonly Limit[] {
    const variant = (of === this.#config.limits ? 0 : 4) + (countsOnly ? 1 : 0) + (isFirst ? 2 : 0);
    return (this.#limits[variant] ??= this.#createLimits({ of, countsOnly, isFirst }));
  }

  #createLimits({ of, countsOnly, isFirst }: LimitOptions): readonly Limit[] {
    const { from, maxMembers } = this.#config;
    return of
      .filter(({ unit }) => isFirst || unit !== "requests")
      .map((limit) => ({
        scope: this.scope,
        ...limit,
        ...(from.length > 0 && { maxMembers }),
        ...(countsOnly && { countsOnly }),
      }));
  }
}

/** Options of the limits of one call. */
interface LimitOptions {
  /** The limits of the scope, or the limits of its downgrade. */
  readonly of: ScopeConfig["limits"];
  readonly countsOnly: boolean;
  /** Whether the call counts as a request. A second attempt belongs to the same request. */
  readonly isFirst: boolean;
}

/** Returns the name of the scope that a limit belongs to. Undefined for limits of keys and accounts. */
export function scopeNameOf(scope: string): string | undefined {
  const member = parseMemberScope(scope);
  if (member) return member.group.slice(0, member.group.lastIndexOf("."));
  return /^scope:([^:]+)/.exec(scope)?.[1];
}

/** Readable forms of members' scopes. */
const READABLE_SCOPES = new BoundedMap<string, string>(MAX_CACHED_MEMBERS);

/** Returns a limit with a scope that people can read. The hash of a member is left out. */
export function withScopeName<L extends Pick<Limit, "scope">>(limit: L): L {
  if (!isReservedScope(limit.scope)) return limit;
  let scope = READABLE_SCOPES.get(limit.scope);
  if (scope === undefined) {
    scope = `scope:${scopeNameOf(limit.scope)}`;
    READABLE_SCOPES.set(limit.scope, scope);
  }
  return { ...limit, scope };
}
