// Identifies the key that a client presents. Keys are looked up by their SHA-256 digest and cached
// for 1 minute. The cache is cleared when keys change. May import: lib, plugin (types). Unknown
// keys are handled in the same way as known keys.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digestKey, equalDigests, parseKey } from "../../lib/api-key.ts";
import { getFault } from "../../model/error.ts";
import { createUnavailableFault, withTimeout } from "../ledger/queued-command.ts";
import type { KeyRecord } from "../../plugin/store/account.ts";
import type { Store } from "../../plugin/store/store.ts";

export interface KeyCache {
  /**
   * Returns the key of a secret. Returns undefined if the secret is unknown, revoked, or expired,
   * because clients may not distinguish these. The result is synchronous if the key is cached.
   */
  find(secret: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** Like `find`, by the hash of the secret. */
  findByDigest(digest: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** Clears the cache after a key was created, changed, or revoked. */
  invalidate(): void;
  /** Calls the listener after each `invalidate`. */
  onInvalidated(listener: () => void): void;
}

/** Maximum length of a secret that is hashed, in characters. Longer than any issued key. */
const MAX_SECRET_LENGTH = 1_024;
/**
 * Maximum numbers of cached secrets and of cached unknown digests. The oldest are dropped first.
 */
const MAX_KNOWN = 10_000;
const MAX_UNKNOWN = 10_000;

/** Timeout of a lookup, in milliseconds. Afterwards the client is rejected and may retry. */
const TIMEOUT_MS = 5_000;

interface CachedKey {
  record: KeyRecord;
  expiresAt: number;
}

export function createKeyCache(
  store: Pick<Store, "findKey">,
  {
    now = wallClock,
    ttlMs = 60_000,
    patienceMs = TIMEOUT_MS,
    away = () => false,
  }: {
    now?: () => number;
    ttlMs?: number;
    patienceMs?: number;
    /**
     * Whether the store has reported that it cannot be reached. Lookups then fail without a query.
     */
    away?: () => boolean;
  } = {},
): KeyCache {
  /**
   * Keys by secret, so that a known client costs no hash. Only secrets of existing keys are added.
   */
  const bySecret = new BoundedMap<string, CachedKey>(MAX_KNOWN);
  /** Keys that were looked up by their digest. A client that presents a digest must not find one. */
  const byDigest = new BoundedMap<string, CachedKey>(MAX_KNOWN);
  /**
   * Unknown digests. They have a separate cache, so that a flood of invented secrets cannot
   * displace known keys.
   */
  const unknown = new BoundedMap<string, number>(MAX_UNKNOWN);
  const asking = new Map<string, Promise<KeyRecord | undefined>>();
  /**
   * Number of invalidations. Results of lookups that began before the last invalidation are not
   * cached.
   */
  let age = 0;
  const listeners: (() => void)[] = [];

  // An entry must not stay valid for longer because the clock was set back.
  const fresh = (until: number): boolean => until > now() && until - now() <= ttlMs;
  const valid = (record: KeyRecord): KeyRecord | undefined =>
    (record.revoked !== undefined && record.revoked <= now()) ||
    (record.expires !== undefined && record.expires <= now())
      ? undefined
      : record;

  async function ask(hash: string): Promise<KeyRecord | undefined> {
    if (away()) throw createUnavailableFault();
    const record = await withTimeout(patienceMs, store.findKey(hash)).catch((error: unknown) => {
      // Details about the store are not revealed to clients.
      throw getFault(error)?.kind === "unavailable" ? createUnavailableFault() : error;
    });
    // An admin token is not an API key and cannot be used for model requests.
    return record && record.admin === undefined && equalDigests(record.digest, hash)
      ? record
      : undefined;
  }

  async function look(
    cache: BoundedMap<string, CachedKey>,
    name: string,
    hash: string,
  ): Promise<KeyRecord | undefined> {
    const ageAtStart = age;
    let answer = asking.get(hash);
    if (!answer) {
      answer = ask(hash).finally(() => {
        if (asking.get(hash) === answer) asking.delete(hash);
      });
      asking.set(hash, answer);
    }
    const record = await answer;
    if (ageAtStart === age) {
      if (record) cache.set(name, { record, expiresAt: now() + ttlMs });
      else unknown.set(hash, now() + ttlMs);
    }
    return record && valid(record);
  }

  /** Returns a cached key that is still fresh. */
  function cached(cache: BoundedMap<string, CachedKey>, name: string): CachedKey | undefined {
    const known = cache.get(name);
    if (!known || fresh(known.expiresAt)) return known;
    cache.delete(name);
    return undefined;
  }

  return {
    find(secret) {
      const known = cached(bySecret, secret);
      if (known) return valid(known.record);
      if (secret.length > MAX_SECRET_LENGTH || (secret.startsWith("tg_") && !parseKey(secret)))
        return undefined;
      const hash = digestKey(secret);
      return fresh(unknown.get(hash) ?? 0) ? undefined : look(bySecret, secret, hash);
    },
    findByDigest(digest) {
      const known = cached(byDigest, digest);
      if (known) return valid(known.record);
      return fresh(unknown.get(digest) ?? 0) ? undefined : look(byDigest, digest, digest);
    },
    invalidate() {
      age++;
      bySecret.clear();
      byDigest.clear();
      unknown.clear();
      asking.clear();
      for (const listener of listeners) listener();
    },
    onInvalidated: (listener) => void listeners.push(listener),
  };
}
