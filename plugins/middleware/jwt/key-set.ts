// An issuer's public keys: fetched when the first token comes, kept, and looked for again when a token names one that is not among
// them. However many such tokens come, the issuer is asked once in half a minute.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { fail, type Context } from "tollgate/plugin";

const PATIENCE_MS = 5_000;
/** An issuer has a handful of keys. */
const MOST_BYTES = 256 * 1024;
const MOST_KEYS = 100;
/** Keys that are older are fetched anew beside the work. */
const FRESH_MS = 600_000;
const PAUSE_MS = 30_000;
/** A secret among public keys would let its readers sign; nothing is verified with one. */
const PUBLIC = ["RSA", "EC", "OKP"];

/** What outlives a reload. */
export interface KnownKeys {
  find: JWTVerifyGetKey | undefined;
  /** When it was fetched, and when it was last asked for, well or not. */
  at: number;
  askedAt: number;
}

export const noKeys = (): KnownKeys => ({ find: undefined, at: -Infinity, askedAt: -Infinity });

export interface KeySource {
  /** The text of a JWKS. */
  read(): Promise<string>;
}

export class KeySet {
  readonly #known: KnownKeys;
  readonly #source: KeySource;
  readonly #log: Context["log"];
  readonly #now: () => number;
  #asking: Promise<void> | undefined;

  constructor(
    known: KnownKeys,
    source: KeySource,
    log: Context["log"],
    now: () => number = () => performance.now(),
  ) {
    this.#known = known;
    this.#source = source;
    this.#log = log;
    this.#now = now;
  }

  /** The key that a token's head names. Rejects as jose does where there is none, and as `unavailable` where there are no keys yet. */
  readonly get: JWTVerifyGetKey = async (head, token) => {
    if (!this.#known.find) await this.#ask();
    else if (this.#now() - this.#known.at > FRESH_MS && this.#may()) void this.#ask();
    const find =
      this.#known.find ??
      fail("unavailable", "The issuer's keys are not known yet.", {
        code: "issuer_unavailable",
      });
    try {
      return await find(head, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(this.#asking || this.#may()))
        throw error;
      await this.#ask();
      return this.#known.find!(head, token);
    }
  };

  #may(): boolean {
    return this.#now() - this.#known.askedAt >= PAUSE_MS;
  }

  /** One question at a time, and where nothing is known yet one a second. Never rejects: what is known goes on. */
  #ask(): Promise<void> {
    if (!this.#known.find && this.#now() - this.#known.askedAt < 1_000 && !this.#asking)
      return Promise.resolve();
    return (this.#asking ??= this.#fetch().finally(() => (this.#asking = undefined)));
  }

  async #fetch(): Promise<void> {
    this.#known.askedAt = this.#now();
    try {
      this.#known.find = createLocalJWKSet(keysIn(await this.#source.read()));
      this.#known.at = this.#now();
    } catch (error) {
      this.#log.warn({ err: error }, "an issuer's keys cannot be read");
    }
  }
}

function keysIn(text: string): JSONWebKeySet {
  const { keys } = JSON.parse(text) as JSONWebKeySet;
  const usable = keys.filter(({ kty }) => PUBLIC.includes(kty ?? "")).slice(0, MOST_KEYS);
  if (usable.length === 0) throw new Error("It has no public key.");
  return { keys: usable };
}

export const fromUrl = (url: string, fetch: Context["fetch"]): KeySource => ({
  async read() {
    const answer = await fetch(url, {
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(PATIENCE_MS),
    });
    if (!answer.ok) throw new Error(`It answers ${answer.status}.`);
    return bounded(answer);
  },
});

export const fromFile = (path: string, readFile: Context["readFile"]): KeySource => ({
  read: async () => (await readFile(path)).toString("utf8"),
});

async function bounded(answer: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of answer.body ?? []) {
    length += part.length;
    if (length > MOST_BYTES) throw new Error(`It is larger than ${MOST_BYTES} bytes.`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
