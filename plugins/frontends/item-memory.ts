// Stores the last responses of each key, to resolve the references that SDKs send instead of items.
// The memory is per process, has a maximum size, and keeps responses for up to 1 hour. A key never
// finds items of another key.
import type { JsonObject } from "tollgate/plugin";

export interface ItemMemoryLimits {
  /** Maximum size for all keys together. */
  bytes: number;
  /** Maximum size for one key. */
  bytesPerKey: number;
  maxAgeMs: number;
}

interface StoredResponse {
  /**
   * Text of a response as the client received it. It is parsed only when a client refers to one of
   * its items.
   */
  text: string;
  items: ReadonlyMap<string, JsonObject> | undefined;
  at: number;
}

interface KeyMemory {
  bytes: number;
  /** Responses of the key, oldest first. */
  responses: StoredResponse[];
}

export class ItemMemory {
  /** Keys ordered by last use. The least recently used key comes first. */
  readonly #owners = new Map<string, KeyMemory>();
  readonly #bounds: ItemMemoryLimits;
  readonly #now: () => number;
  #bytes = 0;

  constructor(bounds: ItemMemoryLimits, now: () => number = () => performance.now()) {
    this.#bounds = bounds;
    this.#now = now;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Adds a response.
   * @param answer Text of a complete response, or of the event that contains it.
   */
  add(key: string, answer: string): void {
    const size = answer.length;
    if (size > this.#bounds.bytesPerKey) return;
    const owner = this.#touch(key);
    owner.responses.push({ text: answer, items: undefined, at: this.#now() });
    owner.bytes += size;
    this.#bytes += size;
    while (owner.bytes > this.#bounds.bytesPerKey) this.#forgetOne(key, owner);
    for (const [oldest, other] of this.#owners) {
      if (this.#bytes <= this.#bounds.bytes) return;
      while (other.responses.length > 0 && this.#bytes > this.#bounds.bytes)
        this.#forgetOne(oldest, other);
    }
  }

  find(key: string, id: string): JsonObject | undefined {
    if (!this.#owners.has(key)) return undefined;
    this.#expire(key, this.#touch(key));
    for (const answer of this.#owners.get(key)?.responses.toReversed() ?? []) {
      const item = (answer.items ??= itemsIn(answer.text)).get(id);
      if (item) return item;
    }
    return undefined;
  }

  /**
   * Removes expired responses. It runs periodically, so that the removal does not depend on
   * requests.
   */
  removeExpired(): void {
    for (const [key, owner] of this.#owners) this.#expire(key, owner);
  }

  #touch(key: string): KeyMemory {
    const owner = this.#owners.get(key) ?? { bytes: 0, responses: [] };
    this.#owners.delete(key);
    this.#owners.set(key, owner);
    return owner;
  }

  #expire(key: string, owner: KeyMemory): void {
    const oldest = this.#now() - this.#bounds.maxAgeMs;
    while (owner.responses.length > 0 && owner.responses[0]!.at <= oldest)
      this.#forgetOne(key, owner);
  }

  #forgetOne(key: string, owner: KeyMemory): void {
    const size = owner.responses.shift()!.text.length;
    owner.bytes -= size;
    this.#bytes -= size;
    if (owner.responses.length === 0) this.#owners.delete(key);
  }
}

/** Returns the items of a response object, or of the event that contains one. */
function itemsIn(text: string): ReadonlyMap<string, JsonObject> {
  const items = new Map<string, JsonObject>();
  try {
    const json = JSON.parse(text) as { response?: ResponseLike } & ResponseLike;
    for (const item of (json.response ?? json).output ?? [])
      if (typeof item["id"] === "string") items.set(item["id"], item);
  } catch {
    // The text is not a response, so it contains no items.
  }
  return items;
}
interface ResponseLike {
  output?: readonly JsonObject[];
}

const DATA = Buffer.from("\ndata:");

/**
 * Returns the text that contains the complete response: the whole body, or the last event of a
 * stream, which repeats the whole response. JSON text contains no line breaks, so every line that
 * begins with `data:` starts an event's data.
 */
export function finalResponseText(mime: string, body: Buffer): string | undefined {
  if (!mime.startsWith("text/event-stream")) return body.toString("utf8");
  for (let at = body.length; at > 0;) {
    at = body.lastIndexOf(DATA, at - 1);
    if (at < 0) return undefined;
    const from = at + DATA.length;
    const end = body.indexOf(10, from);
    const line = body.toString("utf8", from, end < 0 ? body.length : end).trim();
    if (line.startsWith("{")) return line;
  }
  return undefined;
}
