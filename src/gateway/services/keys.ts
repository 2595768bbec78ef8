// Which key does a client present? Looked up by its SHA-256, remembered for a minute, forgotten at once when keys change.
// May import: lib, plugin (types). An unknown key takes the same way as a known one.
import { wallClock } from "../../lib/wall-clock.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import { digest, equal, parse } from "../../lib/key.ts";
import { faultOf } from "../../model/error.ts";
import { unavailable, within } from "./queued-command.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import type { Store } from "../../plugin/store.ts";

export interface Keys {
  /** Undefined: unknown, revoked or expired; a client is not told which. At once where it is remembered. */
  find(secret: string): KeyRecord | undefined | Promise<KeyRecord | undefined>;
  /** A key was made, changed or revoked: nothing remembered counts any more. */
  forget(): void;
}

/** Longer than any key that is issued; more is not worth hashing. */
const LONGEST = 1_024;
/** Unknown digests and known secrets are remembered up to these numbers, the oldest going first. */
const MOST_KNOWN = 10_000;
const MOST_UNKNOWN = 10_000;

/** A client is refused after that, and may come again. */
const PATIENCE_MS = 5_000;

interface KnownKey {
  record: KeyRecord;
  until: number;
}

export function createKeys(
  store: Pick<Store, "key">,
  {
    now = wallClock,
    ttlMs = 60_000,
    patienceMs = PATIENCE_MS,
    away = () => false,
  }: {
    now?: () => number;
    ttlMs?: number;
    patienceMs?: number;
    /** The store has said that it cannot be reached: it is not asked. */
    away?: () => boolean;
  } = {},
): Keys {
  /** By the secret itself, so that a known client costs no hash; only secrets that were found get in. */
  const bySecret = new BoundedMap<string, KnownKey>(MOST_KNOWN);
  /** By digest: a flood of invented secrets can push out its own kind only. */
  const unknown = new BoundedMap<string, number>(MOST_UNKNOWN);
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
    if (away()) throw unavailable();
    const record = await within(patienceMs, store.key(hash)).catch((error: unknown) => {
      // What the store stands on is no client's matter.
      throw faultOf(error)?.kind === "unavailable" ? unavailable() : error;
    });
    // An admin token is no key: with it there is nothing to ask a model for.
    return record && record.admin === undefined && equal(record.digest, hash) ? record : undefined;
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
      if (record) bySecret.set(secret, { record, until: now() + ttlMs });
      else unknown.set(hash, now() + ttlMs);
    }
    return record && valid(record);
  }

  return {
    find(secret) {
      const known = bySecret.get(secret);
      if (known && fresh(known.until)) return valid(known.record);
      if (known) bySecret.delete(secret);
      if (secret.length > LONGEST || (secret.startsWith("tg_") && !parse(secret))) return undefined;
      const hash = digest(secret);
      return fresh(unknown.get(hash) ?? 0) ? undefined : look(secret, hash);
    },
    forget() {
      age++;
      bySecret.clear();
      unknown.clear();
      asking.clear();
    },
  };
}
