// Text that was added to a conversation since the last response, for hooks that inspect requests.
import { fail } from "../../model/error.ts";
import type { Block, RealtimeRequest, Turn } from "../../model/request.ts";
import type { JsonObject } from "../../model/values.ts";
import { asList, asObject, asText } from "../json-values.ts";

/**
 * Maximum text between two responses, in characters. This limit is more than the context window of
 * every model.
 */
const MAX_PENDING = 2 ** 21;
const MAX_TURNS = 1_024;

export class PendingText {
  #turns: Turn[] = [];
  #length = 0;

  /** Adds a text. An empty text is ignored. */
  add(role: Turn["role"], text: string): void {
    if (text === "") return;
    this.#length += text.length;
    if (this.#length > MAX_PENDING || this.#turns.length >= MAX_TURNS)
      fail("too_large", "Too much text was sent since the last response.", {
        code: "too_much_pending_text",
      });
    this.#turns.push({ role, blocks: [{ type: "text", text }] });
  }

  /** Adds the transcript of the user's audio. If there is too much text, the oldest is dropped. */
  addTranscript(text: string): void {
    while (
      this.#turns.length > 0 &&
      (this.#length + text.length > MAX_PENDING || this.#turns.length >= MAX_TURNS)
    )
      this.#length -= lengthOf(this.#turns.shift()!);
    this.add("user", text.slice(0, MAX_PENDING));
  }

  /** Returns a request with the text, and starts again without any. */
  take(model: string, instructions: string, maxTokens: number | undefined): RealtimeRequest {
    const turns = this.#turns;
    this.#turns = [];
    this.#length = 0;
    return {
      operation: "realtime",
      model,
      stream: true,
      instructions: instructions === "" ? [] : [textBlock(instructions)],
      turns,
      maxTokens,
      rest: {},
      ext: {},
    };
  }
}

const lengthOf = ({ blocks }: Turn): number =>
  blocks.reduce((sum, block) => sum + (block.type === "text" ? block.text.length : 0), 0);

const textBlock = (text: string): Block => ({ type: "text", text });

const ROLES: { readonly [role: string]: Turn["role"] } = {
  user: "user",
  assistant: "assistant",
  system: "system",
  developer: "developer",
};

/** Media and text of an item that a client adds to a conversation. */
export interface ItemContent {
  readonly role: Turn["role"];
  readonly text: string;
  /** Audio as base64 texts. */
  readonly audio: readonly string[];
  readonly images: number;
}

/** Reads an item of a conversation. */
export function readItem(item: JsonObject): ItemContent {
  const type = asText(item["type"]);
  if (type === "function_call_output" || type === "function_call")
    return {
      role: type === "function_call" ? "assistant" : "tool",
      text: asText(item["output"]) ?? asText(item["arguments"]) ?? "",
      audio: [],
      images: 0,
    };
  const texts: string[] = [];
  const audio: string[] = [];
  let images = 0;
  for (const raw of asList(item["content"])) {
    const part = asObject(raw);
    if (!part) continue;
    const sound = asText(part["audio"]);
    if (sound !== undefined) audio.push(sound);
    if (part["image_url"] !== undefined) images++;
    const text = asText(part["text"]) ?? asText(part["transcript"]);
    if (text !== undefined) texts.push(text);
  }
  const role = asText(item["role"]);
  return {
    role: role !== undefined && Object.hasOwn(ROLES, role) ? ROLES[role]! : "user",
    text: texts.join("\n"),
    audio,
    images,
  };
}
