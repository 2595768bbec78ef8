// Compares each request with the previous one of its conversation, by hashes of prefixes. No text
// of a request is kept. The hashes depend on a random seed of the process.
import type { PromptSections, SectionName } from "./prompt-sections.ts";

/** Characters per hash. The first differing character is found to this precision. */
const BLOCK = 64;
/** Maximum number of hashes of all conversations: 16 MiB. */
const MAX_HASHES = 4 * 1024 * 1024;

/** The first difference between a request and the start of the previous one. */
export interface PrefixChange {
  readonly section: SectionName;
  /** Place in the body, such as `messages[3]`. */
  readonly path: string;
  /** The first differing character is at this position or later, and before `to`. */
  readonly from: number;
  readonly to: number;
  /** Share of the previous request that is repeated, from 0 to 1. */
  readonly kept: number;
}

export class ConversationPrefixes {
  readonly #maxConversations: number;
  readonly #seed: number;
  /** Hashes of the complete blocks of the last request, by conversation. The oldest is first. */
  readonly #hashes = new Map<string, Uint32Array>();
  #total = 0;

  constructor(maxConversations: number, seed: number) {
    this.#maxConversations = maxConversations;
    this.#seed = seed;
  }

  /** Number of hashes in memory. */
  get size(): number {
    return this.#total;
  }

  /** Returns the first change of what was sent before, and keeps the hashes of this request. */
  compare(conversation: string, sections: PromptSections): PrefixChange | undefined {
    const id = `${hashText(conversation, 0, conversation.length, this.#seed)} ${conversation.length}`;
    const before = this.#hashes.get(id);
    const hashes = this.#hash(sections);
    this.#keep(id, hashes, before);
    if (!before) return undefined;
    const shared = Math.min(before.length, hashes.length);
    let same = 0;
    while (same < shared && before[same] === hashes[same]) same++;
    if (same === before.length) return undefined;
    const from = same * BLOCK;
    const { section, path } = itemAt(sections, from);
    const kept = Math.round((same / before.length) * 1_000) / 1_000;
    return { section, path, from, to: from + BLOCK, kept };
  }

  /** Returns the hash of each prefix that ends with a complete block. */
  #hash({ items }: PromptSections): Uint32Array {
    const length = items.reduce((sum, { text }) => sum + text.length, 0);
    const hashes = new Uint32Array(Math.floor(length / BLOCK));
    let [hash, position, block] = [this.#seed, 0, 0];
    for (const { text } of items) {
      for (let i = 0; i < text.length;) {
        const end = Math.min(text.length, i + BLOCK - (position % BLOCK));
        hash = hashText(text, i, end, hash);
        position += end - i;
        i = end;
        if (position % BLOCK === 0) hashes[block++] = hash;
      }
    }
    return hashes;
  }

  #keep(id: string, hashes: Uint32Array, before: Uint32Array | undefined): void {
    this.#hashes.delete(id);
    this.#hashes.set(id, hashes);
    this.#total += hashes.length - (before?.length ?? 0);
    for (const [oldest, { length }] of this.#hashes) {
      if (this.#hashes.size <= this.#maxConversations && this.#total <= MAX_HASHES) break;
      this.#hashes.delete(oldest);
      this.#total -= length;
    }
  }
}

/** Continues a hash with a part of a text (MurmurHash3's mixing function, per character). */
function hashText(text: string, from: number, to: number, start: number): number {
  let hash = start;
  for (let i = from; i < to; i++) {
    let word = Math.imul(text.charCodeAt(i), 0xcc9e2d51);
    word = (word << 15) | (word >>> 17);
    hash ^= Math.imul(word, 0x1b873593);
    hash = (hash << 13) | (hash >>> 19);
    hash = (Math.imul(hash, 5) + 0xe6546b64) >>> 0;
  }
  return hash;
}

/** Returns the item that contains a position. A shorter request ends before it. */
function itemAt({ items }: PromptSections, position: number) {
  let end = 0;
  for (const item of items) {
    end += item.text.length;
    if (position < end) return item;
  }
  return items.at(-1)!;
}
