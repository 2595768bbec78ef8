// Client half: decodes a provider's response item by item. Deltas are emitted as they arrive. A
// finished item repeats its whole content, and the part that the deltas lacked is emitted then. A
// non-streaming response consists only of finished items.
import type { FinishReason, ModelEvent, OpenBlock } from "../../../model/event.ts";
import type { Json, JsonObject, Opt } from "../../../model/values.ts";
import { fail } from "../../../model/error.ts";
import { throwParsedError } from "../../failure/parse-error.ts";
import { flatName } from "../tools.ts";
import { ResponsesToolCounts, usageOf } from "../usage.ts";
import { asList, asObject, asText, asNumber } from "../../json-values.ts";
import { parseMediaUrl } from "../../media-url.ts";
import { digestText, ORIGIN } from "../constants.ts";

/** A block of an item, and the length of the part that has been emitted. */
interface Part {
  index: number;
  sentLength: number;
  cites: number;
  closed: boolean;
}

/** An item, by its position in the output. */
interface Slot {
  type: string;
  parts: Map<string, Part>;
  isDone: boolean;
}

const FINISH_REASONS: Readonly<Record<string, FinishReason>> = {
  max_output_tokens: "length",
  max_tokens: "length",
  content_filter: "filtered",
};

export class ResponsesReader {
  isFinished = false;
  readonly #emit: (event: ModelEvent) => void;
  readonly #slots = new Map<number, Slot>();
  readonly #places = new ItemPositions();
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
    this.#id = asText(response?.["id"]);
    this.#model = asText(response?.["model"]);
    this.#emit({ type: "start", id: this.#id, model: this.#model });
  }

  /** Returns the position of an event's item. */
  place(event: JsonObject): number {
    return this.#places.positionOf(event);
  }

  added(at: number, item: JsonObject): void {
    const slot = this.#slot(at, asText(item["type"]) ?? "");
    // A call can be opened as soon as its name is known. Other items are opened by their first
    // text.
    if (isCall(slot.type) && asText(item["name"]) !== undefined) this.#call(at, slot, item);
  }

  /** Emits text, a refusal, or reasoning of one content part. */
  delta(
    at: number,
    key: string,
    block: OpenBlock,
    textContent: string,
    logprobs?: readonly Json[],
  ): void {
    if (textContent === "") return;
    const type = block.type === "reasoning" ? "reasoning" : "message";
    const part = this.#part(this.#slot(at, type), key, block);
    if (part.closed) return;
    part.sentLength += textContent.length;
    this.#emit(
      logprobs && logprobs.length > 0
        ? { type: "delta", index: part.index, text: textContent, logprobs }
        : { type: "delta", index: part.index, text: textContent },
    );
  }

  /**
   * Emits the rest of a part's text, given the whole text. Does nothing if the deltas already
   * contained the whole text.
   */
  fill(at: number, key: string, block: OpenBlock, whole: string, logprobs?: readonly Json[]): void {
    const sent = this.#slots.get(at)?.parts.get(key)?.sentLength ?? 0;
    if (whole.length > sent)
      this.delta(at, key, block, whole.slice(sent), sent === 0 ? logprobs : undefined);
  }

  /** Emits summary text. The parts of a summary become one text, separated by empty lines. */
  summary(at: number, n: number, textContent: string, whole: boolean): void {
    const slot = this.#slot(at, "reasoning");
    const before = slot.parts.get(`s${n}`)?.sentLength ?? 0;
    const more = whole ? textContent.slice(before) : textContent;
    if (more === "") return;
    const first = before === 0 && n > 0 && (slot.parts.get("s")?.sentLength ?? 0) > 0;
    this.delta(at, "s", { type: "reasoning", summary: true }, first ? `\n\n${more}` : more);
    // Records the emitted length of this summary part. This entry has no separate block.
    slot.parts.set(`s${n}`, {
      index: -1,
      sentLength: before + more.length,
      cites: 0,
      closed: true,
    });
  }

  argument(at: number, textContent: string): void {
    const part = this.#slots.get(at)?.parts.get("call");
    if (!part || part.closed || textContent === "") return;
    part.sentLength += textContent.length;
    this.#emit({ type: "delta", index: part.index, text: textContent });
  }

  arguments(at: number, whole: string): void {
    const part = this.#slots.get(at)?.parts.get("call");
    if (part && whole.length > part.sentLength) this.argument(at, whole.slice(part.sentLength));
  }

  cite(at: number, key: string, citation: Json): void {
    const part = this.#part(this.#slot(at, "message"), key, { type: "text" });
    if (part.closed) return;
    part.cites++;
    this.#emit({ type: "cite", index: part.index, citation });
  }

  /** Closes a finished part of a message, so that the next part can be emitted. */
  partDone(at: number, key: string, part: JsonObject): void {
    if (part["type"] === "reasoning_text") return;
    this.#completePart(at, key, part);
    const openPart = this.#slots.get(at)?.parts.get(key);
    if (!openPart || openPart.closed) return;
    openPart.closed = true;
    this.#emit({ type: "close", index: openPart.index });
  }

  partial(at: number, base64: string): void {
    const part = this.#part(this.#slot(at, "image_generation_call"), "image", { type: "image" });
    this.#emit({ type: "media", index: part.index, media: { base64 }, partial: true });
  }

  /**
   * Handles a finished item. Returns whether it was a hosted tool run, after which `count` reports
   * new usage.
   */
  done(at: number, item: JsonObject): boolean {
    const slot = this.#slot(at, asText(item["type"]) ?? "");
    if (slot.isDone) return false;
    slot.isDone = true;
    slot.type = asText(item["type"]) ?? slot.type;
    const ran = this.#tools.item(item);
    switch (slot.type) {
      case "message":
        asList(item["content"]).forEach((raw, i) =>
          this.#completePart(at, `c${i}`, asObject(raw) ?? {}),
        );
        break;
      case "reasoning":
        this.#reasoned(at, slot, item);
        break;
      case "function_call":
      case "custom_tool_call":
        this.#call(at, slot, item);
        this.arguments(at, asText(item["arguments"]) ?? asText(item["input"]) ?? "");
        break;
      case "image_generation_call":
        this.#imageDone(slot, item);
        break;
      case "":
        break;
      default:
        this.#part(slot, "raw", { type: "opaque", origin: ORIGIN, raw: item });
    }
    this.#closeParts(slot);
    return ran;
  }

  /**
   * Handles the end of a stream, such as `response.completed`, `response.incomplete`, or
   * `response.failed`, or a whole response.
   */
  end(response: JsonObject): void {
    this.start(response);
    const status = asText(response["status"]);
    if (status === "failed" || status === "cancelled" || asObject(response["error"])) {
      // A failed response is billed too, because the work was done.
      this.count(response);
      throwParsedError({ error: response["error"] ?? { message: `The response was ${status}.` } });
    }
    if (status === "queued" || status === "in_progress")
      fail("upstream", `The provider's response is still ${status}.`, { code: "not_finished" });
    // Some providers send items here that they never announced, even before items that they did
    // announce.
    const items = asList(response["output"]).map((item) => asObject(item) ?? {});
    const places = this.#places.positionsOf(items, this.#slots);
    items.forEach((item, i) => this.done(places[i]!, item));
    for (const slot of this.#slots.values()) this.#closeParts(slot);
    this.count(response);
    this.isFinished = true;
    this.#emit({ type: "finish", ...this.#reason(response) });
  }

  /**
   * Emits the current usage. Finished tool runs are billed, even if the rest of the response fails.
   */
  count(response: JsonObject = {}): void {
    const usage = usageOf(response, this.#tools.usage(response));
    const model = asText(response["model"]) ?? this.#model;
    if (usage) this.#emit({ type: "usage", usage, model, tier: asText(response["service_tier"]) });
  }

  #reason(response: JsonObject): { reason: FinishReason; detail?: string } {
    if (response["status"] === "incomplete") {
      const why =
        asText(asObject(response["incomplete_details"])?.["reason"]) ?? "max_output_tokens";
      const reason = Object.hasOwn(FINISH_REASONS, why) ? FINISH_REASONS[why] : undefined;
      return reason ? { reason } : { reason: "other", detail: why };
    }
    return { reason: this.#called ? "tool_calls" : this.#refused ? "refusal" : "stop" };
  }

  #slot(at: number, type: string): Slot {
    if (!this.#started) this.start(undefined);
    let slot = this.#slots.get(at);
    if (!slot) this.#slots.set(at, (slot = { type, parts: new Map(), isDone: false }));
    if (slot.type === "") slot.type = type;
    return slot;
  }

  #part(slot: Slot, key: string, block: OpenBlock): Part {
    let part = slot.parts.get(key);
    if (!part) {
      part = { index: this.#next++, sentLength: 0, cites: 0, closed: false };
      slot.parts.set(key, part);
      if (block.type === "refusal") this.#refused = true;
      this.#emit({ type: "open", index: part.index, block });
    }
    return part;
  }

  #closeParts(slot: Slot): void {
    for (const part of slot.parts.values()) {
      if (part.closed) continue;
      part.closed = true;
      this.#emit({ type: "close", index: part.index });
    }
  }

  #call(at: number, slot: Slot, item: JsonObject): void {
    if (slot.parts.has("call")) return;
    const name =
      asText(item["name"]) ??
      fail("upstream", "The provider returned a tool call without a name.", { code: "bad_stream" });
    // A call without an ID gets one that is derived from the response, so a repeated response gets
    // the same ID.
    const id =
      asText(item["call_id"]) ||
      asText(item["id"]) ||
      `call_${digestText(`${this.#id ?? ""}:${at}`).slice(0, 24)}`;
    this.#called = true;
    this.#part(slot, "call", {
      type: "call",
      id,
      name: flatName(asText(item["namespace"]), name),
      tool: slot.type === "custom_tool_call" ? "custom" : "function",
    });
  }

  #completePart(at: number, key: string, part: JsonObject): void {
    if (part["type"] === "refusal")
      return this.fill(at, key, { type: "refusal" }, asText(part["refusal"]) ?? "");
    if (part["type"] !== "output_text" && part["type"] !== "text") return;
    this.fill(at, key, { type: "text" }, asText(part["text"]) ?? "", asList(part["logprobs"]));
    const openPart = this.#slots.get(at)?.parts.get(key);
    if (openPart)
      for (const citation of asList(part["annotations"]).slice(openPart.cites))
        this.cite(at, key, citation);
  }

  #reasoned(at: number, slot: Slot, item: JsonObject): void {
    asList(item["summary"]).forEach((part, n) =>
      this.summary(at, n, asText(asObject(part)?.["text"]) ?? "", true),
    );
    asList(item["content"]).forEach((part, n) =>
      this.fill(at, `r${n}`, { type: "reasoning" }, asText(asObject(part)?.["text"]) ?? ""),
    );
    const data = asText(item["encrypted_content"]);
    if (data === undefined || data === "") return;
    // The encrypted content is complete only now. It covers all reasoning of the item.
    const last =
      [...slot.parts.values()].findLast((part) => !part.closed) ??
      this.#part(slot, "s", { type: "reasoning", summary: true });
    const proof = { origin: ORIGIN, kind: "encrypted", data };
    this.#emit({ type: "proof", index: last.index, proof });
  }

  #imageDone(slot: Slot, item: JsonObject): void {
    const result = asText(item["result"]);
    if (!result) return;
    const { index } = this.#part(slot, "image", { type: "image" });
    const mime = `image/${asText(item["output_format"]) ?? "png"}`;
    const media = parseMediaUrl(result);
    this.#emit({
      type: "media",
      index,
      media: "url" in media ? { mime, base64: result } : media,
      note: asText(item["revised_prompt"]),
    });
  }
}

export const isCall = (type: string): boolean =>
  type === "function_call" || type === "custom_tool_call";

// Identifies output items. Events identify them by position. The final list repeats all items and
// identifies them by name. That list can contain items that were never announced, even before
// announced items.

class ItemPositions {
  readonly #ids = new Map<string, number>();
  #next = 0;

  /**
   * Returns the position of an event's item. `output_index` takes precedence, because some
   * providers give an item a different name in each event. Without an index, the name is used.
   */
  positionOf(event: JsonObject): number {
    const item = asObject(event["item"]);
    const names = [asText(event["item_id"]), ...namesOf(item ?? {})];
    const at = asNumber(event["output_index"]) ?? this.#known(names) ?? (names[0] ? this.#next : 0);
    this.#next = Math.max(this.#next, at + 1);
    for (const name of names) if (name) this.#ids.set(name, at);
    return at;
  }

  /**
   * Returns the position of each item in the final list. An item with a known name has that name's
   * position. Any other item has the position of the next unclaimed item of its type, or a new
   * position if there is no such item.
   */
  positionsOf(
    items: readonly JsonObject[],
    slots: ReadonlyMap<number, { readonly type: string }>,
  ): number[] {
    const named = items.map((item) => this.#known(namesOf(item)));
    const taken = new Set(named);
    const left = new Map<string, number[]>();
    for (const [at, { type }] of slots) if (!taken.has(at)) queue(left, type).push(at);
    for (const ats of left.values()) ats.reverse();
    return items.map(
      (item, i) => named[i] ?? queue(left, asText(item["type"]) ?? "").pop() ?? this.#next++,
    );
  }

  #known(names: readonly (string | undefined)[]): number | undefined {
    for (const name of names) {
      const at = name ? this.#ids.get(name) : undefined;
      if (at !== undefined) return at;
    }
    return undefined;
  }
}

/**
 * Returns the names of an item: its own ID and the ID of the call it makes, which has a prefix to
 * keep them distinct.
 */
function namesOf(item: JsonObject): (string | undefined)[] {
  const call = asText(item["call_id"]);
  return [asText(item["id"]), call && `call ${call}`];
}

function queue(of: Map<string, number[]>, type: string): number[] {
  let ats = of.get(type);
  if (!ats) of.set(type, (ats = []));
  return ats;
}
