// Client half: an upstream's answer, read item by item. Deltas give what they have; what is done says it all once more,
// and what the deltas had left out is given then. A whole answer is nothing but items that are done.
import type { FinishReason, ModelEvent, OpenBlock } from "../../../model/event.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import { fail } from "../../../model/error.ts";
import { throwFailure } from "../../failure/failure.ts";
import { flatName } from "../names.ts";
import { ResponsesToolCounts } from "../tool-counts.ts";
import { usageOf } from "../usage.ts";
import { Places } from "./places.ts";
import { list, object, text } from "../../json.ts";
import { mediaOf } from "../../media.ts";
import { digest, ORIGIN } from "../words.ts";

/** A block that an item has opened, and how much of it has been given. */
interface Part {
  index: number;
  sent: number;
  cites: number;
  closed: boolean;
}

/** An item, at its place in the output. */
interface Slot {
  type: string;
  parts: Map<string, Part>;
  done: boolean;
}

const ENDS: Readonly<Record<string, FinishReason>> = {
  max_output_tokens: "length",
  max_tokens: "length",
  content_filter: "filtered",
};

export class ResponsesReader {
  finished = false;
  readonly #emit: (event: ModelEvent) => void;
  readonly #slots = new Map<number, Slot>();
  readonly #places = new Places();
  readonly #tools = new ResponsesToolCounts();
  #next = 0;
  #started = false;
  #called = false;
  #refused = false;
  #id: string | undefined;
  #model: string | undefined;

  constructor(emit: (event: ModelEvent) => void) {
    this.#emit = emit;
  }

  start(response: Opt<JsonObject>): void {
    if (this.#started) return;
    this.#started = true;
    this.#id = text(response?.["id"]);
    this.#model = text(response?.["model"]);
    this.#emit({ type: "start", id: this.#id, model: this.#model });
  }

  /** Where an event says its item stands. */
  place(event: JsonObject): number {
    return this.#places.of(event);
  }

  added(at: number, item: JsonObject): void {
    const slot = this.#slot(at, text(item["type"]) ?? "");
    // A call can be opened as soon as it has its names; anything else waits for its first word.
    if (isCall(slot.type) && text(item["name"]) !== undefined) this.#call(at, slot, item);
  }

  /** Text, refusal or reasoning, under the part that it belongs to. */
  delta(at: number, key: string, block: OpenBlock, said: string, logprobs?: readonly Json[]): void {
    if (said === "") return;
    const type = block.type === "reasoning" ? "reasoning" : "message";
    const part = this.#part(this.#slot(at, type), key, block);
    if (part.closed) return;
    part.sent += said.length;
    this.#emit(
      logprobs && logprobs.length > 0
        ? { type: "delta", index: part.index, text: said, logprobs }
        : { type: "delta", index: part.index, text: said },
    );
  }

  /** All of a part's text: what is longer than its deltas is given, what is not changes nothing. */
  fill(at: number, key: string, block: OpenBlock, whole: string, logprobs?: readonly Json[]): void {
    const sent = this.#slots.get(at)?.parts.get(key)?.sent ?? 0;
    if (whole.length > sent)
      this.delta(at, key, block, whole.slice(sent), sent === 0 ? logprobs : undefined);
  }

  /** A digest's parts are one text with empty lines between them. */
  digest(at: number, n: number, said: string, whole: boolean): void {
    const slot = this.#slot(at, "reasoning");
    const before = slot.parts.get(`s${n}`)?.sent ?? 0;
    const more = whole ? said.slice(before) : said;
    if (more === "") return;
    const first = before === 0 && n > 0 && (slot.parts.get("s")?.sent ?? 0) > 0;
    this.delta(at, "s", { type: "reasoning", summary: true }, first ? `\n\n${more}` : more);
    // How much of this one part has been given; it opens no block of its own.
    slot.parts.set(`s${n}`, { index: -1, sent: before + more.length, cites: 0, closed: true });
  }

  argument(at: number, said: string): void {
    const part = this.#slots.get(at)?.parts.get("call");
    if (!part || part.closed || said === "") return;
    part.sent += said.length;
    this.#emit({ type: "delta", index: part.index, text: said });
  }

  arguments(at: number, whole: string): void {
    const part = this.#slots.get(at)?.parts.get("call");
    if (part && whole.length > part.sent) this.argument(at, whole.slice(part.sent));
  }

  cite(at: number, key: string, citation: Json): void {
    const part = this.#part(this.#slot(at, "message"), key, { type: "text" });
    if (part.closed) return;
    part.cites++;
    this.#emit({ type: "cite", index: part.index, citation });
  }

  /** A message's part is whole, and the next one may be told. */
  partDone(at: number, key: string, part: JsonObject): void {
    if (part["type"] === "reasoning_text") return;
    this.#said(at, key, part);
    const heard = this.#slots.get(at)?.parts.get(key);
    if (!heard || heard.closed) return;
    heard.closed = true;
    this.#emit({ type: "close", index: heard.index });
  }

  partial(at: number, base64: string): void {
    const part = this.#part(this.#slot(at, "image_generation_call"), "image", { type: "image" });
    this.#emit({ type: "media", index: part.index, media: { base64 }, partial: true });
  }

  /** Whether the item was a run of a hosted tool, of which `count` has more to say now. */
  done(at: number, item: JsonObject): boolean {
    const slot = this.#slot(at, text(item["type"]) ?? "");
    if (slot.done) return false;
    slot.done = true;
    slot.type = text(item["type"]) ?? slot.type;
    const ran = this.#tools.item(item);
    switch (slot.type) {
      case "message":
        list(item["content"]).forEach((raw, i) => this.#said(at, `c${i}`, object(raw) ?? {}));
        break;
      case "reasoning":
        this.#reasoned(at, slot, item);
        break;
      case "function_call":
      case "custom_tool_call":
        this.#call(at, slot, item);
        this.arguments(at, text(item["arguments"]) ?? text(item["input"]) ?? "");
        break;
      case "image_generation_call":
        this.#drawn(slot, item);
        break;
      case "":
        break;
      default:
        this.#part(slot, "raw", { type: "opaque", origin: ORIGIN, raw: item });
    }
    this.#shut(slot);
    return ran;
  }

  /** The end, whatever it is called: `response.completed`, `incomplete` or `failed`, or a whole answer. */
  end(response: JsonObject): void {
    this.start(response);
    const status = text(response["status"]);
    if (status === "failed" || status === "cancelled" || object(response["error"])) {
      // The work was done all the same.
      this.count(response);
      throwFailure({ error: response["error"] ?? { message: `The response was ${status}.` } });
    }
    if (status === "queued" || status === "in_progress")
      fail("upstream", `The provider's answer is still ${status}.`, { code: "not_finished" });
    // Some upstreams say items here that they never announced, and before others that they did.
    const items = list(response["output"]).map((item) => object(item) ?? {});
    const places = this.#places.again(items, this.#slots);
    items.forEach((item, i) => this.done(places[i]!, item));
    for (const slot of this.#slots.values()) this.#shut(slot);
    this.count(response);
    this.finished = true;
    this.#emit({ type: "finish", ...this.#reason(response) });
  }

  /** Of what is over so far: runs of tools are billed, whatever becomes of the rest. */
  count(response: JsonObject = {}): void {
    const usage = usageOf(response, this.#tools.usage(response));
    const model = text(response["model"]) ?? this.#model;
    if (usage) this.#emit({ type: "usage", usage, model, tier: text(response["service_tier"]) });
  }

  #reason(response: JsonObject): { reason: FinishReason; detail?: string } {
    if (response["status"] === "incomplete") {
      const why = text(object(response["incomplete_details"])?.["reason"]) ?? "max_output_tokens";
      const reason = Object.hasOwn(ENDS, why) ? ENDS[why] : undefined;
      return reason ? { reason } : { reason: "other", detail: why };
    }
    return { reason: this.#called ? "tool_calls" : this.#refused ? "refusal" : "stop" };
  }

  #slot(at: number, type: string): Slot {
    if (!this.#started) this.start(undefined);
    let slot = this.#slots.get(at);
    if (!slot) this.#slots.set(at, (slot = { type, parts: new Map(), done: false }));
    if (slot.type === "") slot.type = type;
    return slot;
  }

  #part(slot: Slot, key: string, block: OpenBlock): Part {
    let part = slot.parts.get(key);
    if (!part) {
      part = { index: this.#next++, sent: 0, cites: 0, closed: false };
      slot.parts.set(key, part);
      if (block.type === "refusal") this.#refused = true;
      this.#emit({ type: "open", index: part.index, block });
    }
    return part;
  }

  #shut(slot: Slot): void {
    for (const part of slot.parts.values()) {
      if (part.closed) continue;
      part.closed = true;
      this.#emit({ type: "close", index: part.index });
    }
  }

  #call(at: number, slot: Slot, item: JsonObject): void {
    if (slot.parts.has("call")) return;
    const name =
      text(item["name"]) ??
      fail("upstream", "The provider sent a tool call without a name.", { code: "bad_stream" });
    // A call without an id gets one that a repetition would get too.
    const id =
      text(item["call_id"]) ||
      text(item["id"]) ||
      `call_${digest(`${this.#id ?? ""}:${at}`).slice(0, 24)}`;
    this.#called = true;
    this.#part(slot, "call", {
      type: "call",
      id,
      name: flatName(text(item["namespace"]), name),
      tool: slot.type === "custom_tool_call" ? "custom" : "function",
    });
  }

  #said(at: number, key: string, part: JsonObject): void {
    if (part["type"] === "refusal")
      return this.fill(at, key, { type: "refusal" }, text(part["refusal"]) ?? "");
    if (part["type"] !== "output_text" && part["type"] !== "text") return;
    this.fill(at, key, { type: "text" }, text(part["text"]) ?? "", list(part["logprobs"]));
    const heard = this.#slots.get(at)?.parts.get(key);
    if (heard)
      for (const citation of list(part["annotations"]).slice(heard.cites))
        this.cite(at, key, citation);
  }

  #reasoned(at: number, slot: Slot, item: JsonObject): void {
    list(item["summary"]).forEach((part, n) =>
      this.digest(at, n, text(object(part)?.["text"]) ?? "", true),
    );
    list(item["content"]).forEach((part, n) =>
      this.fill(at, `r${n}`, { type: "reasoning" }, text(object(part)?.["text"]) ?? ""),
    );
    const data = text(item["encrypted_content"]);
    if (data === undefined || data === "") return;
    // The secret is whole only now; it stands for all of the item's reasoning.
    const last =
      [...slot.parts.values()].findLast((part) => !part.closed) ??
      this.#part(slot, "s", { type: "reasoning", summary: true });
    const proof = { origin: ORIGIN, kind: "encrypted", data };
    this.#emit({ type: "proof", index: last.index, proof });
  }

  #drawn(slot: Slot, item: JsonObject): void {
    const result = text(item["result"]);
    if (!result) return;
    const { index } = this.#part(slot, "image", { type: "image" });
    const mime = `image/${text(item["output_format"]) ?? "png"}`;
    const media = mediaOf(result);
    this.#emit({
      type: "media",
      index,
      media: "url" in media ? { mime, base64: result } : media,
      note: text(item["revised_prompt"]),
    });
  }
}

export const isCall = (type: string): boolean =>
  type === "function_call" || type === "custom_tool_call";
