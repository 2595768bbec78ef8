// Output items while they are being written. An item is announced, written piece by piece, and
// repeated as a whole when it is done. The finished response repeats the same object.
import type {
  ResponseContext,
  JsonObject,
  ModelEvent,
  OpenBlock,
} from "../../../../plugin/index.ts";
import type { ResponsesDialect } from "../../constants.ts";
import type { ToolName } from "../../tools.ts";
import { itemId } from "../response-object.ts";

export interface OutputContext {
  to: ResponseContext;
  dialect: ResponsesDialect;
  restoreName(flat: string): ToolName;
  write(type: string, fields: JsonObject): void;
  /**
   * Writes a delta, which most of a stream consists of. `head` is the position of the text, encoded
   * once, and `tail` follows the text.
   */
  delta(type: string, head: string, text: string, tail: string): void;
}

/** Returns the members that every delta of one position contains after its type and number. */
export const headOf = (place: JsonObject): string =>
  `${JSON.stringify(place).slice(1, -1)},"delta":`;

type InnerEvent = Extract<ModelEvent, { type: "delta" | "media" | "proof" | "cite" }>;

/** An output item. Only a message can have several blocks. They are written one after another. */
export interface OutputItem {
  readonly index: number;
  /** Returns whether a further block belongs to this item. */
  accepts(block: OpenBlock): boolean;
  open(block: OpenBlock): void;
  inside(event: InnerEvent): void;
  close(): void;
  /**
   * Ends the item. Returns undefined if the item has no content and was never announced.
   * @param cut Whether a limit truncated the response in this item.
   */
  done(cut: boolean): JsonObject | undefined;
  /**
   * Proofs that have no member in this item. Each proof is written as a separate item after this
   * item.
   */
  readonly pendingProofs: readonly string[];
  /** Whether a partial item may be shown, because clients do not act on it. */
  readonly isPartialSafe: boolean;
}

export const addItem = (index: number, item: JsonObject, { write }: OutputContext) =>
  write("response.output_item.added", { output_index: index, item });
export const finishItem = (
  index: number,
  item: JsonObject,
  { write }: OutputContext,
): JsonObject => {
  write("response.output_item.done", { output_index: index, item });
  return item;
};

/**
 * Writes a proof of the item before it. It is sent in a reasoning item, the only item whose
 * encrypted content all clients send back.
 */
export function proofCarrierItem(
  encrypted: string,
  index: number,
  desk: OutputContext,
): JsonObject {
  const id = itemId(desk.to, "rs", index);
  addItem(index, { id, type: "reasoning", summary: [] }, desk);
  return finishItem(
    index,
    { id, type: "reasoning", summary: [], encrypted_content: encrypted },
    desk,
  );
}
