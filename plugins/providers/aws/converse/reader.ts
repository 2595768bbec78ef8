// Reads a Converse response. Stream events and the blocks of a complete response use the same
// methods, so that both give the same canonical events.
import {
  fail,
  type Json,
  type JsonObject,
  type ModelEvent,
  type OpenBlock,
  type Opt,
  type Usage,
  type Decoder,
} from "tollgate/plugin";
import { listOf, objectOf, textOf, countOf, some, parsed } from "../json.ts";
import { parseFinishReason, ID } from "./constants.ts";
import { createFrameReader, type EventFrame } from "../event-stream.ts";
import { parseAwsStreamError } from "../errors.ts";

// Reads token counts. Tokens that were read from or written to a cache are not part of the input,
// as in canonical units.
function usageOf(report: JsonObject): Usage {
  const written = countOf(report["cacheWriteInputTokens"]);
  let hour = 0;
  for (const detail of listOf(report["cacheDetails"]).map(objectOf))
    if (detail?.["ttl"] === "1h") hour += countOf(detail["inputTokens"]) ?? 0;
  const long = Math.min(hour, written ?? 0);
  const counts: Usage = {
    input: countOf(report["inputTokens"]),
    cache_read: countOf(report["cacheReadInputTokens"]),
    cache_write_5m: written === undefined ? undefined : written - long,
    cache_write_1h: long > 0 ? long : undefined,
    output: countOf(report["outputTokens"]),
  };
  return (some(counts) ?? {}) as Usage;
}

interface OpenConverseBlock {
  readonly index: number;
  readonly type: OpenBlock["type"];
  hasContent: boolean;
  signature: string;
  redacted: string;
}

export class ConverseReader {
  readonly #emit: (event: ModelEvent) => void;
  readonly #id: string | undefined;
  readonly #open = new Map<unknown, OpenConverseBlock>();
  #started = false;
  #next = 0;
  #calls = 0;
  #stop: string | undefined;
  #finished = false;

  /** `id`: the service's ID of the response. */
  constructor(emit: (event: ModelEvent) => void, id: string | undefined) {
    this.#emit = emit;
    this.#id = id;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#emit({ type: "start", ...(this.#id !== undefined && { id: this.#id }) });
  }

  /** Handles `contentBlockStart`. Only tool calls and images have such an event. */
  begin(at: unknown, start: JsonObject): void {
    const call = objectOf(start["toolUse"]);
    if (call) return this.#call(at, call);
    if (objectOf(start["image"])) this.#begin(at, { type: "image" });
  }

  delta(at: unknown, delta: JsonObject): void {
    const text = textOf(delta["text"]);
    if (text !== undefined) return this.#say(this.#blockOfType(at, "text"), text);
    const thought = objectOf(delta["reasoningContent"]);
    if (thought) return this.#think(this.#blockOfType(at, "reasoning"), thought);
    const call = objectOf(delta["toolUse"]);
    if (call) return this.#say(this.#called(at), textOf(call["input"]) ?? "");
    if (delta["citation"] !== undefined)
      return this.#emit({
        type: "cite",
        index: this.#blockOfType(at, "text").index,
        citation: delta["citation"] as Json,
      });
    const image = objectOf(delta["image"]);
    if (image) this.#show(this.#blockOfType(at, "image"), image);
  }

  /** Handles `contentBlockStop`. */
  close(at: unknown): void {
    const block = this.#open.get(at);
    if (!block) return;
    this.#open.delete(at);
    const { index } = block;
    if (block.type === "call" && !block.hasContent) this.#say(block, "{}");
    const proof = block.redacted
      ? { kind: "redacted", data: block.redacted }
      : { kind: "signature", data: block.signature };
    if (block.type === "reasoning" && proof.data !== "")
      this.#emit({ type: "proof", index, proof: { origin: ID, ...proof } });
    this.#emit({ type: "close", index });
  }

  /** Handles a block of a complete response. */
  block(at: number, block: JsonObject): void {
    const call = objectOf(block["toolUse"]);
    const cited = objectOf(block["citationsContent"]);
    const thought = objectOf(block["reasoningContent"]);
    if (call) {
      this.#call(at, call);
      this.#say(this.#called(at), JSON.stringify(objectOf(call["input"]) ?? {}));
    } else if (thought) {
      const reasoningBlock = objectOf(thought["reasoningText"]) ?? {};
      this.delta(at, {
        reasoningContent: { ...reasoningBlock, redactedContent: thought["redactedContent"] },
      });
    } else if (cited) {
      const block = this.#blockOfType(at, "text");
      for (const one of listOf(cited["content"]).map(objectOf))
        this.#say(block, textOf(one?.["text"]) ?? "");
      for (const citation of listOf(cited["citations"]))
        this.#emit({ type: "cite", index: block.index, citation });
    } else if (textOf(block["text"]) !== undefined || objectOf(block["image"]))
      this.delta(at, block);
    else this.#begin(at, { type: "opaque", origin: ID, raw: block });
    this.close(at);
  }

  setStopReason(reason: string): void {
    this.#stop = reason;
  }

  /** Handles `metadata`, which follows the stop reason. */
  count(metadata: JsonObject): void {
    const usage = objectOf(metadata["usage"]);
    if (!usage) return;
    const tier = textOf(objectOf(metadata["serviceTier"])?.["type"]);
    this.#emit({ type: "usage", usage: usageOf(usage), ...(tier !== undefined && { tier }) });
  }

  /** Called at the end of the stream. */
  end(): void {
    if (this.#finished) return;
    const stop =
      this.#stop ??
      fail("upstream", "The provider's response ended before it was complete.", {
        code: "truncated",
      });
    for (const at of this.#open.keys()) this.close(at);
    const { reason, ...more } = parseFinishReason(stop);
    this.#finished = true;
    const calls = reason === "stop" && this.#calls > 0;
    this.#emit({ type: "finish", reason: calls ? "tool_calls" : reason, ...more });
  }

  #call(at: unknown, { toolUseId, name }: JsonObject): void {
    const [id, called] = [textOf(toolUseId), textOf(name)];
    if (!id || !called)
      return fail("upstream", "The provider sent a tool call without a name or an ID.", {
        code: "bad_stream",
      });
    this.#calls++;
    this.#begin(at, { type: "call", id, name: called, tool: "function" });
  }

  #called(at: unknown): OpenConverseBlock {
    const block = this.#open.get(at);
    return block?.type === "call"
      ? block
      : fail("upstream", "The provider sent data for a tool call that it had not started.", {
          code: "bad_stream",
        });
  }

  /** Returns the block at this position, and opens it if needed. Closes a block of another type. */
  #blockOfType(at: unknown, type: "text" | "reasoning" | "image"): OpenConverseBlock {
    const block = this.#open.get(at);
    return block?.type === type ? block : this.#begin(at, { type });
  }

  #begin(at: unknown, block: OpenBlock): OpenConverseBlock {
    this.start();
    this.close(at);
    const index = this.#next++;
    const begun = { index, type: block.type, hasContent: false, signature: "", redacted: "" };
    this.#open.set(at, begun);
    this.#emit({ type: "open", index, block });
    return begun;
  }

  #say(block: OpenConverseBlock, text: string): void {
    if (text === "") return;
    block.hasContent = true;
    this.#emit({ type: "delta", index: block.index, text });
  }

  #think(block: OpenConverseBlock, thought: JsonObject): void {
    this.#say(block, textOf(thought["text"]) ?? "");
    block.signature += textOf(thought["signature"]) ?? "";
    block.redacted += textOf(thought["redactedContent"]) ?? "";
  }

  #show({ index }: OpenConverseBlock, image: JsonObject): void {
    const format: Opt<string> = textOf(image["format"]);
    const base64 = textOf(objectOf(image["source"])?.["bytes"]);
    if (base64 === undefined) return;
    const mime = format === undefined ? undefined : `image/${format}`;
    this.#emit({ type: "media", index, media: { mime, base64 } });
  }
}

// Decodes a Converse stream: binary frames that contain events or exceptions. The usage arrives
// after the stop reason, so the response is finished only at the end of the stream.

export function createDecoder(reading: ConverseReader): Decoder {
  const frames = createFrameReader((frame) => event(frame, reading));
  return {
    push: (chunk) => frames.push(chunk),
    end() {
      frames.end();
      reading.end();
    },
  };
}

function event(frame: EventFrame, reading: ConverseReader): void {
  const name = nameIn(frame);
  const payload = jsonIn(frame.payload);
  const at = payload["contentBlockIndex"];
  switch (name) {
    case "messageStart":
      return reading.start();
    case "contentBlockStart":
      return reading.begin(at, objectOf(payload["start"]) ?? {});
    case "contentBlockDelta":
      return reading.delta(at, objectOf(payload["delta"]) ?? {});
    case "contentBlockStop":
      return reading.close(at);
    case "messageStop":
      return reading.setStopReason(textOf(payload["stopReason"]) ?? "");
    case "metadata":
      return reading.count(payload);
  }
}

/** Returns the name of an event. Throws if the frame is an exception. */
export function nameIn({ headers, payload }: EventFrame): string | undefined {
  const type = headers.get(":message-type");
  if (type === "event") return headers.get(":event-type");
  const name = headers.get(type === "exception" ? ":exception-type" : ":error-code") ?? "";
  const words = headers.get(":error-message");
  const body = words === undefined ? payload : Buffer.from(JSON.stringify({ message: words }));
  const { kind, message, ...more } = parseAwsStreamError(name, body);
  return fail(kind, message, more);
}

const jsonIn = (payload: Buffer): JsonObject =>
  parsed(payload) ??
  fail("upstream", "The provider's stream contains an event that is not valid JSON.", {
    code: "bad_stream",
  });
