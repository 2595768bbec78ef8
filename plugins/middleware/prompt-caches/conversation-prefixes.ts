// Compares each request with the previous one of its conversation, by hashes of prefixes. No text
// of a request is kept. The hashes depend on a random seed of the process.
import type { PromptSections, SectionName } from "./prompt-sections.ts";

/**
 * Characters per hash. The first difference is found to this precision. Finding the exact character
 * would need as much memory as the text. Prompts often change at the same place in every turn, so
 * the block that changed last has a hash for each of its characters.
 */
const BLOCK = 64;
/** Maximum number of hashes of all conversations: 16 MiB. */
const MAX_HASHES = 4 * 1024 * 1024;

/** The first difference between a request and the start of the previous one. */
export interface PrefixChange {
  readonly section: SectionName;
  /** Place in the body, such as `messages[3]`. */
  readonly path: string;
  /**
   * The first differing character is at this position or later, and before `to`. It is exact if the
   * previous change of the conversation was in the same block.
   */
  readonly from: number;
  readonly to: number;
  /** Share of the previous request that is repeated, from 0 to 1. */
  readonly kept: number;
}

/** Hashes of the last request of a conversation. */
interface Prefixes {
  /** Hash of each prefix that ends with a complete block. */
  readonly blocks: Uint32Array;
  /** Number of the block that changed last. */
  readonly watched: number | undefined;
  /** Hash of each prefix that ends in the watched block. */
  readonly characters: Uint32Array;
}

const NONE = new Uint32Array(0);

export class ConversationPrefixes {
  readonly #maxConversations: number;
  readonly #seed: number;
  /** By conversation. The oldest is first. */
  readonly #prefixes = new Map<string, Prefixes>();
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
    const before = this.#prefixes.get(id);
    const blocks = this.#hashBlocks(sections);
    const same = before ? countEqual(before.blocks, blocks) : 0;
    const isChanged = before !== undefined && same < before.blocks.length;
    const watched = isChanged ? same : before?.watched;
    const characters = watched === undefined ? NONE : this.#hashBlock(sections, watched, blocks);
    this.#keep(id, { blocks, watched, characters });
    if (!isChanged) return undefined;
    const isExact = before.watched === same;
    const from = same * BLOCK + (isExact ? countEqual(before.characters, characters) : 0);
    const { section, path } = itemAt(sections, from);
    const kept = Math.round((same / before.blocks.length) * 1_000) / 1_000;
    return { section, path, from, to: isExact ? from + 1 : from + BLOCK, kept };
  }

  /** Returns the hash of each prefix that ends with a complete block. */
  #hashBlocks({ items }: PromptSections): Uint32Array {
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

  /** Returns the hash of each prefix that ends in this block. */
  #hashBlock({ items }: PromptSections, block: number, blocks: Uint32Array): Uint32Array {
    if (block > blocks.length) return NONE;
    const [from, to] = [block * BLOCK, (block + 1) * BLOCK];
    const hashes: number[] = [];
    let hash = block === 0 ? this.#seed : blocks[block - 1]!;
    let start = 0;
    for (const { text } of items) {
      const end = start + text.length;
      for (let i = Math.max(from, start); i < Math.min(to, end); i++)
        hashes.push((hash = hashText(text, i - start, i - start + 1, hash)));
      start = end;
      if (start >= to) break;
    }
    return Uint32Array.from(hashes);
  }

  #keep(id: string, prefixes: Prefixes): void {
    this.#forget(id);
    this.#prefixes.set(id, prefixes);
    this.#total += sizeOf(prefixes);
    for (const oldest of this.#prefixes.keys()) {
      if (this.#prefixes.size <= this.#maxConversations && this.#total <= MAX_HASHES) break;
      this.#forget(oldest);
    }
  }

  #forget(id: string): void {
    const known = this.#prefixes.get(id);
    if (!known) return;
    this.#prefixes.delete(id);
    this.#total -= sizeOf(known);
  }
}

const sizeOf = ({ blocks, characters }: Prefixes): number => blocks.length + characters.length;

/** Returns the number of equal values at the start of two lists. */
function countEqual(a: Uint32Array, b: Uint32Array): number {
  const shared = Math.min(a.length, b.length);
  let same = 0;
  while (same < shared && a[same] === b[same]) same++;
  return same;
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
