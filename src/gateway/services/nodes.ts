// What gateways on one store ask each other, at the port that clients reach: what a plugin here does not know and its like elsewhere may, and image
// files that another one keeps. Sealed with a secret that the store has decided for all of them: no client can ask, or read what is said.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { wallClock } from "../../lib/wall-clock.ts";
import type { Store } from "../../plugin/store.ts";
import { instancesOf } from "./instances.ts";

/** Where a gateway is asked. */
export const ASKED_AT = "/.tollgate/ask";

/** A question is short; an answer may be an image. */
export const MOST_ASKED = 64 * 1024;
const MOST_SAID = 96 * 1024 * 1024;
/** A client waits for it. */
const ASK_MS = 3_000;
/** The store is asked so often at most which others there are. */
const OTHERS_MS = 2_000;
/** A question that is older was recorded on its way, or comes from a clock that is off. */
const FRESH_MS = 120_000;

const [IV, TAG] = [12, 16];
const CIPHER = "aes-256-gcm";

const own = (secret: Uint8Array): Buffer =>
  createHmac("sha256", secret).update("between gateways").digest();

/** Any plain value, for holders of the same secret. */
export function sealed(secret: Uint8Array, value: unknown): Buffer {
  const iv = randomBytes(IV);
  const cipher = createCipheriv(CIPHER, own(secret), iv);
  const text = JSON.stringify({ at: wallClock(), value });
  return Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined: it was not sealed with this secret, or long ago. */
export function unsealed(secret: Uint8Array, bytes: Buffer): { value?: unknown } | undefined {
  if (bytes.length < IV + TAG) return undefined;
  try {
    const cipher = createDecipheriv(CIPHER, own(secret), bytes.subarray(0, IV));
    cipher.setAuthTag(bytes.subarray(-TAG));
    const text = Buffer.concat([cipher.update(bytes.subarray(IV, -TAG)), cipher.final()]);
    const { at, value } = JSON.parse(text.toString()) as { at: number; value?: unknown };
    return Math.abs(wallClock() - at) < FRESH_MS ? { value } : undefined;
  } catch {
    return undefined;
  }
}

/** What a gateway says when it is asked; undefined: what asked is none of ours. */
export async function answered(
  secret: Uint8Array,
  question: Buffer,
  say: (id: string, question: unknown) => unknown,
): Promise<Buffer | undefined> {
  const asked = unsealed(secret, question)?.value as { id: string; of: unknown } | undefined;
  return asked && sealed(secret, await say(asked.id, asked.of));
}

export class OtherNodes {
  readonly #store: Pick<Store, "instances">;
  readonly #instance: string;
  readonly #secret: Uint8Array;
  #known: { readonly until: number; readonly urls: Promise<readonly string[]> } | undefined;

  constructor(store: Pick<Store, "instances">, instance: string, secret: Uint8Array) {
    this.#store = store;
    this.#instance = instance;
    this.#secret = secret;
  }

  /** All of them at once; what the first says that knows. `near`: other gateways are not meant. */
  async ask(id: string, of: unknown, near = false): Promise<unknown> {
    return near ? undefined : Promise.any(await this.#asked(id, of)).catch(() => undefined);
  }

  /** What each says that knows. */
  async all(id: string, of: unknown): Promise<readonly unknown[]> {
    const answers = await Promise.allSettled(await this.#asked(id, of));
    return answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  }

  async #asked(id: string, of: unknown): Promise<readonly Promise<unknown>[]> {
    return (await this.#others()).map((url) => this.#ask(url, { id, of }));
  }

  async #ask(url: string, question: unknown): Promise<unknown> {
    const answer = await fetch(new URL(ASKED_AT, url), {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: Uint8Array.from(sealed(this.#secret, question)),
      redirect: "error",
      signal: AbortSignal.timeout(ASK_MS),
    });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new Error(`${url} says ${answer.status}`);
    }
    const value = unsealed(this.#secret, await bytesOf(answer))?.value;
    return value ?? Promise.reject(new Error(`${url} does not know`));
  }

  #others(): Promise<readonly string[]> {
    const now = performance.now();
    if (!this.#known || this.#known.until < now)
      this.#known = { until: now + OTHERS_MS, urls: this.#read() };
    return this.#known.urls;
  }

  async #read(): Promise<readonly string[]> {
    const all = (await instancesOf(this.#store)) ?? [];
    return all.flatMap(({ instance, state, about }) =>
      state === "live" && instance !== this.#instance ? (about?.address ?? []) : [],
    );
  }
}

async function bytesOf(answer: Response): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of answer.body ?? []) {
    bytes += part.length;
    if (bytes > MOST_SAID) throw new Error("the answer is too long");
    parts.push(part);
  }
  return Buffer.concat(parts);
}
