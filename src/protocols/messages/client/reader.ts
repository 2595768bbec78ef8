import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, asText } from "../../json-values.ts";
import { parseFinishReason, ID } from "../constants.ts";
import { MessagesToolCounts, parseBilledUsage } from "../usage.ts";
import { fitName } from "../../tool-calls.ts";

type Emit = (event: ModelEvent) => void;

/**
 * Decodes a provider's message piece by piece. Stream events and whole responses use the same
 * methods, so both produce the same events of the common form.
 */
export class MessagesReader {
  isFinished = false;
  readonly #emit: Emit;
  readonly #signer: string;
  readonly #open = new Map<unknown, OpenMessageBlock>();
  #started = false;
  #next = 0;
  #calls = 0;
  #id: string | undefined;
  #model: string | undefined;
  #usage: Usage = {};
  readonly #tools = new MessagesToolCounts();
  #stop: { reason: string; sequence: Json | undefined; details: Json | undefined } | undefined;

  constructor(emit: Emit, signer: string) {
    this.#emit = emit;
    this.#signer = signer;
  }

  /** Handles `message_start` or the head of a whole response. A second call is ignored. */
  start(message: JsonObject): void {
    if (this.#started) return;
    this.#model = asText(message["model"]);
    this.#started = true;
    this.#id = asText(message["id"]);
    this.#emit({ type: "start", id: this.#id, model: this.#model });
    this.count(message["usage"]);
    this.ending(message);
  }

  count(usage: Json | undefined): void {
    if (!isObject(usage)) return;
    for (const bill of parseBilledUsage(usage, this.#model, this.#usage)) {
      const own = bill.model === this.#model;
      if (own) this.#usage = mergeUsage(this.#usage, bill.usage);
      this.#emit(own ? { ...bill, usage: this.#tools.final(bill.usage) } : bill);
    }
  }

  /** Reports tool runs that no usage report has counted yet. */
  #ran(usage: Usage): void {
    if (Object.keys(usage).length > 0) this.#emit({ type: "usage", usage, model: this.#model });
  }

  /**
   * Records the stop reason from `message_delta.delta` or a whole response, which use the same
   * members.
   */
  ending(of: JsonObject): void {
    const reason = of["stop_reason"];
    if (typeof reason === "string")
      this.#stop = { reason, sequence: of["stop_sequence"], details: of["stop_details"] };
  }

  open(at: unknown, block: JsonObject): void {
    if (!this.#started) this.start({});
    if (this.#open.has(at)) this.stop(at);
    const open = openBlock(block);
    this.#open.set(at, open);
    if (this.#tools.block(block)) this.#ran(this.#tools.current(this.#usage));
    switch (block["type"]) {
      case "text":
        this.#begin(open, "text");
        this.#say(open, asText(block["text"]) ?? "");
        if (Array.isArray(block["citations"]))
          for (const citation of block["citations"] as readonly Json[]) this.#cite(open, citation);
        return;
      case "thinking":
        this.#begin(open, "reasoning");
        return this.#say(open, asText(block["thinking"]) ?? "");
      case "redacted_thinking":
        open.redacted = asText(block["data"]) ?? "";
        return this.#begin(open, "reasoning");
      case "tool_use":
        if (isClientCall(block)) {
          open.input = block["input"];
          return this.#call(open, block);
        }
        break;
    }
    Object.assign(open.raw, block);
  }

  delta(at: unknown, delta: JsonObject): void {
    const open =
      this.#open.get(at) ??
      fail("upstream", `The provider wrote into a block that it had not opened.`, {
        code: "bad_stream",
      });
    if (open.kind === "opaque") return appendDelta(open, delta);
    switch (delta["type"]) {
      case "text_delta":
        this.#switchKind(open, "text");
        return this.#say(open, asText(delta["text"]) ?? "");
      case "thinking_delta":
        this.#switchKind(open, "reasoning");
        return this.#say(open, asText(delta["thinking"]) ?? "");
      case "input_json_delta":
        if (open.kind === "call") this.#say(open, asText(delta["partial_json"]) ?? "");
        return;
      case "signature_delta":
        open.signature = asText(delta["signature"]) ?? "";
        return;
      case "citations_delta":
        this.#cite(open, delta["citation"] ?? null);
    }
  }

  stop(at: unknown): void {
    const open = this.#open.get(at);
    if (!open) return;
    this.#open.delete(at);
    if (open.kind === "opaque") {
      if (open.json !== "") open.raw["input"] = inputOf(open.json);
      this.#calls += open.raw["type"] === "tool_use" ? 1 : 0;
      open.index = this.#next++;
      const block = { type: "opaque", origin: ID, raw: open.raw } as const;
      this.#emit({ type: "open", index: open.index, block });
      return this.#emit({ type: "close", index: open.index });
    }
    if (open.kind === "call" && !open.hasText) this.#say(open, JSON.stringify(open.input ?? {}));
    this.#close(open);
  }

  /** Handles `message_stop`, or the end of a stream that has sent a stop reason. */
  finish(): void {
    if (this.isFinished) return;
    for (const at of this.#open.keys()) this.stop(at);
    this.isFinished = true;
    this.#ran(this.#tools.final(runsIn(this.#usage)));
    const stop = this.#stop ?? { reason: "end_turn", sequence: undefined, details: undefined };
    const { reason, detail } = parseFinishReason(stop.reason);
    const explanation = detail ?? (isObject(stop.details) ? refusalOf(stop.details) : undefined);
    this.#emit({
      type: "finish",
      reason: reason === "stop" && this.#calls > 0 ? "tool_calls" : reason,
      ...(typeof stop.sequence === "string" && { sequence: stop.sequence }),
      ...(explanation !== undefined && { detail: explanation }),
    });
  }

  /** Called at the end of the stream. */
  end(): void {
    if (this.isFinished) return;
    if (!this.#stop)
      fail("upstream", "The provider's stream ended before its response was complete.", {
        code: "truncated",
      });
    this.finish();
  }

  #begin(open: OpenMessageBlock, kind: "text" | "reasoning"): void {
    open.kind = kind;
    open.index = this.#next++;
    this.#emit({ type: "open", index: open.index, block: { type: kind } });
  }

  #call(open: OpenMessageBlock, block: JsonObject): void {
    const name =
      asText(block["name"]) ??
      fail("upstream", "The provider returned a tool call without a name.", { code: "bad_stream" });
    this.#calls++;
    open.kind = "call";
    open.index = this.#next++;
    // A call without an ID gets one that is derived from the message, so a repeated response gets
    // the same ID.
    const id = asText(block["id"]) || `toolu_${fitName(`${this.#id ?? ""}:${open.index}`, 40)}`;
    this.#emit({
      type: "open",
      index: open.index,
      block: { type: "call", id, name, tool: "function" },
    });
  }

  /**
   * Handles a delta whose kind differs from its block. Closes the current block and opens one of
   * the right kind.
   */
  #switchKind(open: OpenMessageBlock, kind: "text" | "reasoning"): void {
    if (open.kind === kind || open.kind === "call") return;
    this.#close(open);
    open.signature = "";
    open.redacted = undefined;
    this.#begin(open, kind);
  }

  #say(open: OpenMessageBlock, text: string): void {
    if (text === "") return;
    open.hasText = true;
    this.#emit({ type: "delta", index: open.index, text });
  }

  #cite(open: OpenMessageBlock, citation: Json): void {
    if (open.kind === "text") this.#emit({ type: "cite", index: open.index, citation });
  }

  #close(open: OpenMessageBlock): void {
    const { index, redacted, signature } = open;
    const origin = this.#signer;
    if (redacted !== undefined)
      this.#emit({ type: "proof", index, proof: { origin, kind: "redacted", data: redacted } });
    else if (open.kind === "reasoning" && signature !== "")
      this.#emit({ type: "proof", index, proof: { origin, kind: "signature", data: signature } });
    this.#emit({ type: "close", index });
  }
}

/** Returns the tool runs in a report. */
const runsIn = ({ searches, fetches }: Usage): Usage => ({
  ...(searches && { searches }),
  ...(fetches && { fetches }),
});

const refusalOf = (details: JsonObject): string | undefined =>
  asText(details["explanation"]) ?? asText(details["category"]);

/** One block of a provider's message while it is being received. */
export interface OpenMessageBlock {
  index: number;
  kind: "text" | "reasoning" | "call" | "opaque";
  /** Whether the block has received any text. */
  hasText: boolean;
  signature: string;
  redacted: string | undefined;
  /** Input from the start event of a call, which some providers send in place of deltas. */
  input: Json | undefined;
  /** Received members of an opaque block. */
  raw: Record<string, Json>;
  json: string;
}

const openBlock = (block: JsonObject): OpenMessageBlock => ({
  index: -1,
  kind: "opaque",
  hasText: false,
  signature: asText(block["signature"]) ?? "",
  redacted: undefined,
  input: undefined,
  raw: {},
  json: "",
});

/** Whether only the client can answer this call. */
const isClientCall = (block: JsonObject): boolean => {
  const { caller, toolset_name: toolset } = block;
  if (toolset) return false;
  return !isObject(caller) || caller["type"] === "direct";
};

/**
 * Appends a delta to an opaque block. Strings are concatenated and other values are replaced, so
 * deltas of unknown block types can be applied.
 */
function appendDelta(open: OpenMessageBlock, delta: JsonObject): void {
  if (delta["type"] === "input_json_delta") {
    open.json += asText(delta["partial_json"]) ?? "";
    return;
  }
  for (const key in delta) {
    const value = delta[key];
    if (key === "type" || value === undefined) continue;
    const before = open.raw[key];
    open.raw[key] =
      typeof value === "string" && typeof before === "string" && key !== "signature"
        ? before + value
        : value;
  }
}

/** Parses the input of a block that only this protocol has. */
function inputOf(json: string): Json {
  try {
    return parseShallow(json) as Json;
  } catch {
    return fail("upstream", "The arguments of the provider's hosted tool are not JSON.", {
      code: "bad_stream",
    });
  }
}
