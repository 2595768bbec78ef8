// Caches an issuer's public keys. They are fetched for the first token, and again when a token
// refers to an unknown key. The issuer gets at most one request per 30 s, even if many such tokens
// arrive.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { fail, readBoundedBody, type Context } from "tollgate/plugin";

const FETCH_TIMEOUT_MS = 5_000;
/** Maximum size of a key set, in bytes. An issuer has only a few keys. */
const MAX_BYTES = 256 * 1024;
const MAX_KEYS = 100;
/** Age in milliseconds at which keys are refreshed in the background. */
const MAX_AGE_MS = 600_000;
const MIN_REFRESH_INTERVAL_MS = 30_000;
/**
 * Types of public keys. A symmetric key in the set is never used, because everyone who can read it
 * could sign tokens.
 */
const PUBLIC_KEY_TYPES = ["RSA", "EC", "OKP"];

/** State that survives a reload. */
export interface CachedKeys {
  find: JWTVerifyGetKey | undefined;
  /** Time of the last successful fetch, and of the last attempt. */
  fetchedAt: number;
  lastAttemptAt: number;
}

export const emptyKeyCache = (): CachedKeys => ({
  find: undefined,
  fetchedAt: -Infinity,
  lastAttemptAt: -Infinity,
});

export interface KeySource {
  /** Returns the text of a JWKS. */
  read(): Promise<string>;
}

export class KeySet {
  readonly #cache: CachedKeys;
  readonly #source: KeySource;
  readonly #log: Context["log"];
  readonly #now: () => number;
  #fetching: Promise<void> | undefined;

  constructor(
    known: CachedKeys,
    source: KeySource,
    log: Context["log"],
    now: () => number = () => performance.now(),
  ) {
    this.#cache = known;
    this.#source = source;
    this.#log = log;
    this.#now = now;
  }

  /**
   * Returns the key that a token's header names. Rejects as jose does if the key does not exist,
   * and as `unavailable` if no keys have been fetched yet.
   */
  readonly get: JWTVerifyGetKey = async (head, token) => {
    if (!this.#cache.find) await this.#refresh();
    else if (this.#now() - this.#cache.fetchedAt > MAX_AGE_MS && this.#mayRefresh())
      void this.#refresh();
    const find =
      this.#cache.find ??
      fail("unavailable", "The issuer's public keys are not loaded yet. Retry later.", {
        code: "issuer_unavailable",
      });
    try {
      return await find(head, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(this.#fetching || this.#mayRefresh()))
        throw error;
      await this.#refresh();
      return this.#cache.find!(head, token);
    }
  };

  #mayRefresh(): boolean {
    return this.#now() - this.#cache.lastAttemptAt >= MIN_REFRESH_INTERVAL_MS;
  }

  /**
   * Fetches the keys. One request is sent at a time, and at most one per second if no keys are
   * known yet. Never rejects: if the request fails, the known keys are still used.
   */
  #refresh(): Promise<void> {
    if (!this.#cache.find && this.#now() - this.#cache.lastAttemptAt < 1_000 && !this.#fetching)
      return Promise.resolve();
    return (this.#fetching ??= this.#fetch().finally(() => (this.#fetching = undefined)));
  }

  async #fetch(): Promise<void> {
    this.#cache.lastAttemptAt = this.#now();
    try {
      this.#cache.find = createLocalJWKSet(parseKeySet(await this.#source.read()));
      this.#cache.fetchedAt = this.#now();
    } catch (error) {
      this.#log.warn({ err: error }, "issuer keys unavailable");
    }
  }
}

function parseKeySet(text: string): JSONWebKeySet {
  const { keys } = JSON.parse(text) as JSONWebKeySet;
  const usable = keys.filter(({ kty }) => PUBLIC_KEY_TYPES.includes(kty ?? "")).slice(0, MAX_KEYS);
  if (usable.length === 0) throw new Error("The key set contains no public key.");
  return { keys: usable };
}

export const fromUrl = (url: string, fetch: Context["fetch"]): KeySource => ({
  async read() {
    const answer = await fetch(url, {
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
    });
    if (!answer.ok) throw new Error(`The issuer returned status ${answer.status}.`);
    const body = await readBoundedBody(answer.body, MAX_BYTES);
    if (!body) throw new Error(`The key set is larger than ${MAX_BYTES} bytes.`);
    return body.toString("utf8");
  },
});

export const fromFile = (path: string, readFile: Context["readFile"]): KeySource => ({
  read: async () => (await readFile(path)).toString("utf8"),
});
