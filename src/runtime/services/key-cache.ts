// Which key does a client present? Looked up by its SHA-256, remembered for a minute, forgotten at once when keys change.
// May import: lib, plugin (types). An unknown key takes the same way as a known one.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digestKey, equalDigests, parseKey } from "../../lib/api-key.ts";
import { getFault } from "../../model/error.ts";
import { createUnavailableFault, withTimeout } from "../ledger/queued-command.ts";
import type { KeyRecord } from "../../plugin/store/key.ts";
import type { Store } from "../../plugin/store/store.ts";

export interface KeyCache {
  /** Undefined: unknown, revoked or expired; a client is not told which. At once where it is remembered. */
  find(secret: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** A key was made, changed or revoked: nothing remembered counts any more. */
  invalidate(): void;
}

/** Longer than any key that is issued; more is not worth hashing. */
const MAX_SECRET_LENGTH = 1_024;
/** Unknown digests and known secrets are remembered up to these numbers, the oldest going first. */
const MAX_KNOWN = 10_000;
const MAX_UNKNOWN = 10_000;

/** A client is refused after that, and may come again. */
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
    /** The store has said that it cannot be reached: it is not asked. */
    away?: () => boolean;
  } = {},
): KeyCache {
  /** By the secret itself, so that a known client costs no hash; only secrets that were found get in. */
  const bySecret = new BoundedMap<string, CachedKey>(MAX_KNOWN);
  /** By digest: a flood of invented secrets can push out its own kind only. */
  const unknown = new BoundedMap<string, number>(MAX_UNKNOWN);
  const asking = new Map<string, Promise<KeyRecord | undefined>>();
  /** Answers to questions asked before the last forget() are not remembered. */
  let age = 0;

  // A clock that was set back must not keep anything alive.
  const fresh = (until: number): boolean => until > now() && until - now() <= ttlMs;
  const valid = (record: KeyRecord): KeyRecord | undefined =>
    (record.revoked !== undefined && record.revoked <= now()) ||
    (record.expires !== undefined && record.expires <= now())
      ? undefined
      : record;

  async function ask(hash: string): Promise<KeyRecord | undefined> {
    if (away()) throw createUnavailableFault();
    const record = await withTimeout(patienceMs, store.findKey(hash)).catch((error: unknown) => {
      // What the store stands on is no client's matter.
      throw getFault(error)?.kind === "unavailable" ? createUnavailableFault() : error;
    });
    // An admin token is no key: with it there is nothing to ask a model for.
    return record && record.admin === undefined && equalDigests(record.digest, hash)
      ? record
      : undefined;
  }

  async function look(secret: string, hash: string): Promise<KeyRecord | undefined> {
    const asked = age;
    let answer = asking.get(hash);
    if (!answer) {
      answer = ask(hash).finally(() => {
        if (asking.get(hash) === answer) asking.delete(hash);
      });
      asking.set(hash, answer);
    }
    const record = await answer;
    if (asked === age) {
      if (record) bySecret.set(secret, { record, expiresAt: now() + ttlMs });
      else unknown.set(hash, now() + ttlMs);
    }
    return record && valid(record);
  }

  return {
    find(secret) {
      const known = bySecret.get(secret);
      if (known && fresh(known.expiresAt)) return valid(known.record);
      if (known) bySecret.delete(secret);
      if (secret.length > MAX_SECRET_LENGTH || (secret.startsWith("tg_") && !parseKey(secret)))
        return undefined;
      const hash = digestKey(secret);
      return fresh(unknown.get(hash) ?? 0) ? undefined : look(secret, hash);
    },
    invalidate() {
      age++;
      bySecret.clear();
      unknown.clear();
      asking.clear();
    },
  };
}
