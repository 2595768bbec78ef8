// Output items while they are written. An item announces itself, gives what it has piece by piece, and says it all once
// more when it is done; what it says at the end is what the finished response repeats.
import type {
  ResponseContext,
  JsonObject,
  ModelEvent,
  OpenBlock,
} from "../../../../plugin/index.ts";
import type { ResponsesDialect } from "../../dialect.ts";
import type { ToolName } from "../../tool-names.ts";
import { itemId } from "../response-object.ts";

export interface OutputContext {
  to: ResponseContext;
  dialect: ResponsesDialect;
  restoreName(flat: string): ToolName;
  write(type: string, fields: JsonObject): void;
  /** Most of a stream is this: `head` is where the text belongs, written once, `tail` what follows it. */
  delta(type: string, head: string, text: string, tail: string): void;
}

/** The place of a delta as it stands in each of its events, after their type and number. */
export const headOf = (place: JsonObject): string =>
  `${JSON.stringify(place).slice(1, -1)},"delta":`;

type InnerEvent = Extract<ModelEvent, { type: "delta" | "media" | "proof" | "cite" }>;

/** One item. Its blocks come one after the other; only a message takes more than one. */
export interface OutputItem {
  readonly index: number;
  /** A block that belongs in here as well. */
  accepts(block: OpenBlock): boolean;
  open(block: OpenBlock): void;
  inside(event: InnerEvent): void;
  close(): void;
  /** `cut`: the answer ended at its limit, and this item with it. Undefined: it has come to nothing, and was never told of. */
  done(cut: boolean): JsonObject | undefined;
  /** Proofs that have no place in this item and follow in items of their own. */
  readonly pendingProofs: readonly string[];
  /** A partial one is worth showing: no client acts upon it. */
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

/** A proof that belongs to what stands before it, in the one item whose secret every client sends back. */
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
