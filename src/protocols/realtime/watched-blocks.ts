// Translates the text of a response into events for `watch` hooks. Audio has no separate events:
// the provider sends its transcript.
import type { ModelEvent, OpenBlock } from "../../model/event.ts";
import type { JsonObject } from "../../model/values.ts";
import { asObject, asText } from "../json-values.ts";

/** Maximum number of blocks of a response that are distinguished. */
const MAX_BLOCKS = 256;

/** Delta events that contain text, of the released API and of its beta. */
const TEXT_DELTAS: ReadonlySet<string> = new Set([
  "response.output_text.delta",
  "response.text.delta",
  "response.output_audio_transcript.delta",
  "response.audio_transcript.delta",
]);
export const ARGUMENT_DELTA = "response.function_call_arguments.delta";

export class WatchedBlocks {
  readonly #emit: (event: ModelEvent) => void;
  readonly #open = new Map<string, number>();
  readonly #calls = new Map<string, OpenBlock>();

  constructor(emit: (event: ModelEvent) => void) {
    this.#emit = emit;
  }

  /** Stores the name of a tool call, because its deltas do not contain the name. */
  item(item: JsonObject): void {
    const [id, name] = [asText(item["id"]), asText(item["name"])];
    if (item["type"] !== "function_call" || id === undefined || this.#calls.size >= MAX_BLOCKS)
      return;
    const call = asText(item["call_id"]) ?? id;
    this.#calls.set(id, { type: "call", id: call, name: name ?? "", tool: "function" });
  }

  /** Emits the text of a delta. Returns its length in bytes. Undefined: the event has no text. */
  delta(type: string, event: JsonObject): number | undefined {
    const isCall = type === ARGUMENT_DELTA;
    if (!isCall && !TEXT_DELTAS.has(type)) return undefined;
    const text = asText(event["delta"]) ?? "";
    const item = asText(event["item_id"]) ?? "";
    const key = isCall ? `call ${item}` : `text ${item} ${String(event["content_index"])}`;
    const index = this.#openBlock(key, isCall ? this.#callOf(item) : { type: "text" });
    this.#emit({ type: "delta", index, text });
    return Buffer.byteLength(text);
  }

  /** Closes all blocks. Called before the end of the response. */
  close(): void {
    for (const index of this.#open.values()) this.#emit({ type: "close", index });
    this.#open.clear();
  }

  #callOf(item: string): OpenBlock {
    return this.#calls.get(item) ?? { type: "call", id: item, name: "", tool: "function" };
  }

  #openBlock(key: string, block: OpenBlock): number {
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const index = Math.min(this.#open.size, MAX_BLOCKS);
    if (index === MAX_BLOCKS) return index - 1;
    this.#open.set(key, index);
    this.#emit({ type: "open", index, block });
    return index;
  }
}

/** Returns the item of an event that adds an item to a response. */
export const addedItem = (event: JsonObject): JsonObject | undefined =>
  event["type"] === "response.output_item.added" ? asObject(event["item"]) : undefined;
