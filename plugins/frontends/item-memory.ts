// What SDKs mean when they send a reference in place of an item: the last answers of each key, in this process only, for
// an hour at most and within a bound. No key finds an item of another key.
import type { JsonObject } from "tollgate/plugin";

export interface ItemMemoryLimits {
  /** Of all keys together. */
  bytes: number;
  /** Of one key. */
  bytesPerKey: number;
  maxAgeMs: number;
}

interface StoredResponse {
  /** An answer as it left; read only when a client refers to one of its items. */
  text: string;
  items: ReadonlyMap<string, JsonObject> | undefined;
  at: number;
}

interface KeyMemory {
  bytes: number;
  /** Oldest first. */
  responses: StoredResponse[];
}

export class ItemMemory {
  /** The key that was heard of longest ago comes first. */
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

  /** `answer`: the text of a whole response, or of the event that carries it. */
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

  /** Forgets what has had its time, also when no client asks. */
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

/** A response object, or the event that carries one. */
function itemsIn(text: string): ReadonlyMap<string, JsonObject> {
  const items = new Map<string, JsonObject>();
  try {
    const json = JSON.parse(text) as { response?: ResponseLike } & ResponseLike;
    for (const item of (json.response ?? json).output ?? [])
      if (typeof item["id"] === "string") items.set(item["id"], item);
  } catch {
    // Not an answer: nothing in it has an id.
  }
  return items;
}
interface ResponseLike {
  output?: readonly JsonObject[];
}

const DATA = Buffer.from("\ndata:");

/**
 * What says all of an answer in what a client got: the whole of it, or the stream's last event, which says everything
 * once more. JSON has no line breaks, so a line that begins with `data:` is one.
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
