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

/** Maximum number of cached scopes, which need not be hashed again. */
const MAX_CACHED_SCOPES = 10_000;
/** Number of characters of a hash in base64url: 128 bits. */
const HASH_LENGTH = 22;
/** Number of characters of an owner's hash. It only has to separate the owners of one gateway. */
const OWNER_LENGTH = 16;

export class Scopes {
  readonly configs: readonly ScopeConfig[];
  readonly hasDowngrades: boolean;
  readonly #secret: Uint8Array;
  readonly #cache = new BoundedMap<string, string>(MAX_CACHED_SCOPES);
  /** Limits by scope and by the options that they depend on. */
  readonly #limits = new BoundedMap<string, (readonly Limit[] | undefined)[]>(MAX_CACHED_SCOPES);

  /**
   * @param secret Secret that all gateways of a store share. The hashes of values depend on it.
   */
  constructor(configs: Iterable<ScopeConfig>, secret: Uint8Array) {
    this.configs = [...configs];
    this.hasDowngrades = this.configs.some(({ downgrade }) => downgrade !== undefined);
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
   * Returns the scope of a member's limits.
   * @param owner ID of the key or account within which the value is unique. Empty: the gateway.
   */
  scopeOf(config: ScopeConfig, owner: string, value: string | undefined): string {
    if (value === undefined) return `scope:${config.name}${owner === "" ? "" : `:${owner}`}`;
    const id = `${config.name}\0${owner}\0${value}`;
    let scope = this.#cache.get(id);
    if (scope === undefined) {
      const group = `${config.name}.${this.#hash(owner).slice(0, OWNER_LENGTH)}`;
      scope = formatMemberScope(group, config.idleMs, this.#hash(id).slice(0, HASH_LENGTH));
      this.#cache.set(id, scope);
    }
    return scope;
  }

  /**
   * Returns the limits of a scope that `scopeOf` returned. Later calls of the same scope share the
   * objects.
   */
  limitsOf(config: ScopeConfig, scope: string, of: LimitOptions): readonly Limit[] {
    let variants = this.#limits.get(scope);
    if (!variants) this.#limits.set(scope, (variants = []));
    const variant = (of.countsOnly ? 1 : 0) + (of.isFirst ? 2 : 0);
    return (variants[variant] ??= createLimits(config, scope, of));
  }

  /** Returns the hash with which ledger rows can contain a value. */
  hashOf(config: ScopeConfig, value: string): string {
    return this.#hash(`${config.name}\0${value}`).slice(0, HASH_LENGTH);
  }

  #hash(text: string): string {
    return createHmac("sha256", this.#secret).update(text).digest("base64url");
  }
}

/** Options of the limits of one call. */
interface LimitOptions {
  readonly limits: ScopeConfig["limits"];
  readonly countsOnly: boolean;
  /** Whether the call counts as a request. A second attempt belongs to the same request. */
  readonly isFirst: boolean;
}

const createLimits = (
  { from, maxMembers }: ScopeConfig,
  scope: string,
  { limits, countsOnly, isFirst }: LimitOptions,
): readonly Limit[] =>
  limits
    .filter(({ unit }) => isFirst || unit !== "requests")
    .map((limit) => ({
      scope,
      ...limit,
      ...(from.length > 0 && { maxMembers }),
      ...(countsOnly && { countsOnly }),
    }));

/** Returns the name of the scope that a limit belongs to. Undefined for limits of keys and accounts. */
export function scopeNameOf(scope: string): string | undefined {
  const member = parseMemberScope(scope);
  if (member) return member.group.slice(0, member.group.lastIndexOf("."));
  return /^scope:([^:]+)/.exec(scope)?.[1];
}

/** Readable forms of members' scopes. */
const READABLE_SCOPES = new BoundedMap<string, string>(MAX_CACHED_SCOPES);

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
