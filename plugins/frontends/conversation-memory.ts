// Stores the conversations of WebSocket clients, which continue a response by its ID and send only
// new items. The memory is per process, has a maximum size, and keeps a response for up to 1 hour.
// A key never finds a response of another key.
import type { Json, JsonObject } from "tollgate/plugin";
import type { ItemMemoryLimits } from "./item-memory.ts";

/** A response with the input that is new in it. Earlier turns are shared with other responses. */
interface Turn {
  readonly id: string;
  readonly parent: Turn | undefined;
  /** JSON texts of lists of items: the new input, and the output. */
  readonly input: string;
  readonly output: string;
  readonly at: number;
  /** The only connection that can find the turn. Undefined: all connections of the key. */
  readonly connection: object | undefined;
  /** Turns that continue it, and 1 if it is in the memory. */
  references: number;
}

interface KeyMemory {
  bytes: number;
  /** Turns by ID, ordered by last use. The least recently used turn comes first. */
  readonly turns: Map<string, Turn>;
}

export interface NewTurn {
  readonly id: string;
  /** ID of the response that it continues. */
  readonly parent: string | undefined;
  readonly input: readonly Json[];
  readonly output: readonly Json[];
  /** The only connection that may continue it. */
  readonly connection: object | undefined;
}

export class ConversationMemory {
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
   * Adds a response. Its parent must still be stored, because the conversation would otherwise have
   * a gap.
   */
  add(key: string, { id, parent: parentId, input, output, connection }: NewTurn): void {
    const owner = this.#touch(key);
    const parent = parentId === undefined ? undefined : owner.turns.get(parentId);
    if (parentId !== undefined && !parent) return;
    const turn: Turn = {
      id,
      parent,
      input: JSON.stringify(input),
      output: JSON.stringify(output),
      at: this.#now(),
      connection,
      references: 1,
    };
    if (parent) parent.references++;
    const known = owner.turns.get(id);
    owner.turns.delete(id);
    owner.turns.set(id, turn);
    this.#count(owner, sizeOf(turn));
    if (known) this.#release(owner, known);
    while (owner.bytes > this.#bounds.bytesPerKey && owner.turns.size > 0)
      this.#forgetOldest(key, owner);
    for (const [oldest, other] of this.#owners) {
      if (this.#bytes <= this.#bounds.bytes) return;
      while (other.turns.size > 0 && this.#bytes > this.#bounds.bytes)
        this.#forgetOldest(oldest, other);
    }
  }

  /**
   * Returns all items of a conversation up to this response. Undefined if the response is not
   * stored, or belongs to another connection.
   */
  find(key: string, id: string, connection?: object): JsonObject[] | undefined {
    const owner = this.#owners.get(key);
    const turn = owner?.turns.get(id);
    if (!owner || !turn || turn.at <= this.#now() - this.#bounds.maxAgeMs) return undefined;
    if (turn.connection !== undefined && turn.connection !== connection) return undefined;
    this.#touch(key);
    owner.turns.delete(id);
    owner.turns.set(id, turn);
    const all: JsonObject[][] = [];
    // The turns are collected from the newest, because adding at the front would take quadratic
    // time in the number of turns.
    for (let at: Turn | undefined = turn; at; at = at.parent)
      all.push(JSON.parse(at.output) as JsonObject[], JSON.parse(at.input) as JsonObject[]);
    return all.reverse().flat();
  }

  /** Removes turns that only this connection could find. */
  forgetConnection(key: string, connection: object): void {
    const owner = this.#owners.get(key);
    for (const turn of owner?.turns.values() ?? [])
      if (turn.connection === connection) this.#forget(key, owner!, turn);
  }

  /**
   * Removes expired responses. It runs periodically, so that the removal does not depend on
   * requests.
   */
  removeExpired(): void {
    const oldest = this.#now() - this.#bounds.maxAgeMs;
    for (const [key, owner] of this.#owners)
      for (const turn of owner.turns.values())
        if (turn.at <= oldest) this.#forget(key, owner, turn);
  }

  #touch(key: string): KeyMemory {
    const owner = this.#owners.get(key) ?? { bytes: 0, turns: new Map<string, Turn>() };
    this.#owners.delete(key);
    this.#owners.set(key, owner);
    return owner;
  }

  #forgetOldest(key: string, owner: KeyMemory): void {
    for (const turn of owner.turns.values()) return this.#forget(key, owner, turn);
  }

  #forget(key: string, owner: KeyMemory, turn: Turn): void {
    owner.turns.delete(turn.id);
    this.#release(owner, turn);
    if (owner.turns.size === 0) this.#owners.delete(key);
  }

  /** Frees a turn when neither the memory nor a later turn needs it. */
  #release(owner: KeyMemory, turn: Turn): void {
    for (let at: Turn | undefined = turn; at && --at.references === 0; at = at.parent)
      this.#count(owner, -sizeOf(at));
  }

  #count(owner: KeyMemory, bytes: number): void {
    owner.bytes += bytes;
    this.#bytes += bytes;
  }
}

/**
 * Bytes of an entry in addition to its texts, so that the number of small entries is limited too.
 */
const OVERHEAD_BYTES = 256;
const sizeOf = ({ input, output }: Turn): number => input.length + output.length + OVERHEAD_BYTES;
