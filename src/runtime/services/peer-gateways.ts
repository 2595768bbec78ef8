// Queries between gateways on one store, over their public ports: data of a plugin's other
// instances, and image files that another gateway stores. Messages are encrypted with a secret that
// the store shares with all gateways, so no client can send or read them.
import { createHmac } from "node:crypto";
import { decrypt, encrypt } from "../../lib/encryption.ts";
import { readBoundedBody } from "../../lib/net/bounded-body.ts";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { Store } from "../../plugin/store/store.ts";
import { readInstances } from "./fleet.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";

/** Path at which a gateway receives queries. */
export const PEER_PATH = "/.tollgate/peer";

/** A query is short, but a response may contain an image. */
export const MAX_REQUEST_BYTES = 64 * 1024;
const MAX_RESPONSE_BYTES = 96 * 1024 * 1024;
/** Timeout of a query, in milliseconds. A client waits for it. */
const TIMEOUT_MS = 3_000;
/** How long the list of other gateways is cached, in milliseconds. */
const PEERS_TTL_MS = 2_000;
/**
 * Maximum age of a query, in milliseconds. An older query was replayed or comes from a gateway with
 * a wrong clock.
 */
const MAX_MESSAGE_AGE_MS = 120_000;

const deriveKey = (secret: Uint8Array): Buffer =>
  createHmac("sha256", secret).update("between gateways").digest();

/** Encrypts a plain value for holders of the same secret. */
export function encryptMessage(secret: Uint8Array, value: unknown): Buffer {
  return encrypt(deriveKey(secret), JSON.stringify({ at: wallClock(), value }));
}

/**
 * Returns the decrypted value, or undefined if it was encrypted with another secret or is too old.
 */
export function decryptMessage(secret: Uint8Array, bytes: Buffer): { value?: unknown } | undefined {
  const text = decrypt(deriveKey(secret), bytes);
  if (text === undefined) return undefined;
  try {
    const { at, value } = JSON.parse(text.toString()) as { at: number; value?: unknown };
    return Math.abs(wallClock() - at) < MAX_MESSAGE_AGE_MS ? { value } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the encrypted answer to a query from another gateway. Returns undefined if the sender is
 * not a gateway on the store.
 */
export async function answerPeerRequest(
  secret: Uint8Array,
  message: Buffer,
  respond: (id: string, message: unknown) => unknown,
): Promise<Buffer | undefined> {
  const request = decryptMessage(secret, message)?.value as { id: string; of: unknown } | undefined;
  return request && encryptMessage(secret, await respond(request.id, request.of));
}

export class PeerGateways {
  readonly #store: Pick<Store, "listInstances">;
  readonly #instance: string;
  readonly #secret: Uint8Array;
  #cachedUrls: { readonly until: number; readonly urls: Promise<readonly string[]> } | undefined;

  constructor(store: Pick<Store, "listInstances">, instance: string, secret: Uint8Array) {
    this.#store = store;
    this.#instance = instance;
    this.#secret = secret;
  }

  /**
   * Queries all gateways in parallel and returns the first answer. `near`: other gateways are not
   * queried.
   */
  async askFirst(id: string, of: unknown, near = false): Promise<unknown> {
    return near ? undefined : Promise.any(await this.#askEach(id, of)).catch(() => undefined);
  }

  /** Returns the answers of all gateways that respond without an error. */
  async askAll(id: string, of: unknown): Promise<readonly unknown[]> {
    const answers = await Promise.allSettled(await this.#askEach(id, of));
    return answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  }

  async #askEach(id: string, of: unknown): Promise<readonly Promise<unknown>[]> {
    return (await this.#peerUrls()).map((url) => this.#request(url, { id, of }));
  }

  async #request(url: string, question: unknown): Promise<unknown> {
    const answer = await fetch(new URL(PEER_PATH, url), {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
      body: Uint8Array.from(encryptMessage(this.#secret, question)),
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new Error(`${url} says ${answer.status}`);
    }
    const body = await readBoundedBody(answer.body, MAX_RESPONSE_BYTES);
    if (!body) throw new Error("the response is too large");
    const { value } = decryptMessage(this.#secret, body) ?? {};
    return value ?? Promise.reject(new Error(`${url} has no answer`));
  }

  #peerUrls(): Promise<readonly string[]> {
    const now = performance.now();
    if (!this.#cachedUrls || this.#cachedUrls.until < now)
      this.#cachedUrls = { until: now + PEERS_TTL_MS, urls: this.#readPeerUrls() };
    return this.#cachedUrls.urls;
  }

  async #readPeerUrls(): Promise<readonly string[]> {
    const all = (await readInstances(this.#store)) ?? [];
    return all.flatMap(({ instance, state, info }) =>
      state === "live" && instance !== this.#instance ? (info?.address ?? []) : [],
    );
  }
}

// Connects a plugin with its instances in the gateway's other processes. With one process, there
// are no other instances.

type PeerHandler = (question: never) => unknown;

export interface PluginPeers {
  /** Registers the handler of a topic, until its scope ends or a newer handler replaces it. */
  register(scope: LifetimeScope, topic: string, answer: PeerHandler): void;
  /** Answers a query from another process. */
  handle(topic: string, question: unknown): unknown;
  /**
   * Queries other instances. `near`: only processes of this gateway are queried, and no other
   * gateways on the store.
   */
  ask(topic: string, question: unknown, near?: boolean): Promise<unknown>;
}

export function createPluginPeers(ask: PluginPeers["ask"] = async () => undefined): PluginPeers {
  const here = new Map<string, PeerHandler>();
  return {
    ask,
    handle: (topic, question) => here.get(topic)?.(question as never),
    register(scope, topic, answer) {
      here.set(topic, answer);
      scope.defer(() => here.get(topic) === answer && here.delete(topic));
    },
  };
}
