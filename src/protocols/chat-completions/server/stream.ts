// Server half: encodes events as chunks. Calls can be interleaved in this protocol, but text blocks
// cannot. A text block that opens while another is open waits for it.
import type { Fault } from "../../../model/error.ts";
import type {
  ResponseContext,
  Encoder,
  Finish,
  Json,
  JsonObject,
  ModelEvent,
  OpenBlock,
  Proof,
  Usage,
} from "../../../plugin/index.ts";
import { formatFinishReason, ID } from "../constants.ts";
import {
  faultChunk,
  createListIndexer,
  annotationOf,
  readDeclarations,
  reasoningDetails,
  mediaDelta,
  textDetail,
  type ChatDeclarations,
  toolCallDelta,
  callExtra,
  isWrapped,
  unwrapped,
  type CallBlock,
} from "./response-common.ts";
import { withCost } from "../../cost-in-usage.ts";
import { usageTo } from "../usage.ts";
import { asObject } from "../../json-values.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";

export const createEncoder = (write: (text: string) => void, to: ResponseContext): Encoder =>
  joinSurrogatePairs(new ChunkWriter(write, to));

interface OpenChatBlock {
  block: OpenBlock;
  text: string;
  proof: Proof | undefined;
}

class ChunkWriter implements Encoder {
  readonly #write: (text: string) => void;
  readonly #to: ResponseContext;
  readonly #declared: ChatDeclarations;
  /** Whether the client requested usage in the stream. */
  readonly #includesUsage: boolean;
  /** Serialized fields that every chunk has. `#head` and `#tail` surround the delta. */
  readonly #frame: string;
  readonly #head: string;
  readonly #tail: string;
  readonly #indexLists = createListIndexer();
  readonly #calls: ToolCallWriter;
  readonly #turns: ChannelSequencer;
  readonly #blocks = new Map<number, OpenChatBlock>();
  #begun = false;
  #refused = false;
  #usage: Usage = {};

  constructor(write: (text: string) => void, to: ResponseContext) {
    this.#write = write;
    this.#to = to;
    this.#declared = readDeclarations(to.body);
    this.#includesUsage = asObject(to.body["stream_options"])?.["include_usage"] === true;
    this.#frame = `"id":${JSON.stringify(`chatcmpl-${to.id}`)},"object":"chat.completion.chunk","created":${to.created},"model":${JSON.stringify(to.model)}`;
    this.#head = `data: {${this.#frame},"choices":[{"index":0,"delta":`;
    this.#tail = `}]${this.#includesUsage ? ',"usage":null' : ""}}\n\n`;
    this.#calls = new ToolCallWriter(this.#writeDelta, this.#declared);
    this.#turns = new ChannelSequencer(this.#writeBlockEvent);
  }

  writeEvent(e: ModelEvent): void {
    switch (e.type) {
      case "start":
        return;
      case "usage":
        this.#usage = e.usage;
        return;
      case "finish":
        return this.#end(e);
      default:
        return this.#turns.push(e);
    }
  }

  writeFault(fault: Fault): void {
    this.#write(faultChunk(fault));
  }

  // A field, like `#writeDelta`, so that it can be passed as a callback without a wrapper function.
  readonly #writeBlockEvent = (e: BlockEvent): void => {
    switch (e.type) {
      case "open":
        this.#begin(e.block.type);
        this.#blocks.set(e.index, { block: e.block, text: "", proof: undefined });
        if (e.block.type === "call") this.#calls.open(e.index, e.block);
        return;
      case "delta":
        return this.#delta(e.index, this.#blocks.get(e.index)!, e.text, e.logprobs);
      case "media": {
        const { block } = this.#blocks.get(e.index)!;
        if (e.partial || (block.type !== "image" && block.type !== "audio")) return;
        const mediaPart = mediaDelta(block.type, e.media, this.#to);
        if (mediaPart) this.#list(mediaPart);
        return;
      }
      case "proof": {
        const open = this.#blocks.get(e.index)!;
        open.proof = e.proof;
        if (open.block.type === "call") this.#calls.proof(e.index, e.proof);
        return;
      }
      case "cite": {
        const annotation = annotationOf(e.citation);
        if (annotation) this.#list({ annotations: [annotation] });
        else this.#to.reportLoss("citations", "dropped");
        return;
      }
      case "close":
        this.#close(e.index, this.#blocks.get(e.index)!);
        this.#blocks.delete(e.index);
    }
  };

  #delta(
    index: number,
    open: OpenChatBlock,
    words: string,
    logprobs: readonly Json[] | undefined,
  ): void {
    const { block } = open;
    switch (block.type) {
      case "call":
        return this.#calls.delta(index, words);
      case "text":
        return this.#send(
          `{"content":${JSON.stringify(words)}}`,
          logprobs && JSON.stringify({ content: logprobs, refusal: null }),
        );
      case "refusal":
        this.#refused = true;
        return this.#send(
          `{"refusal":${JSON.stringify(words)}}`,
          logprobs && JSON.stringify({ content: null, refusal: logprobs }),
        );
      case "reasoning":
        open.text += words;
        return this.#send(`{"reasoning_content":${JSON.stringify(words)}}`);
      case "opaque":
      case "image":
      case "audio":
        open.text += words;
    }
  }

  #close(index: number, { block, text, proof }: OpenChatBlock): void {
    switch (block.type) {
      case "call":
        return this.#calls.close(index);
      case "reasoning":
        if (proof)
          this.#list({ reasoning_details: reasoningDetails(proof, text, block.summary === true) });
        return;
      case "text":
        if (proof) this.#list(textDetail(proof));
        return;
      case "opaque": {
        const raw = block.origin === ID && asObject(block.raw);
        // Content that another provider produced on its own side has no field in this protocol.
        if (raw) this.#list(raw);
        else this.#to.reportLoss(`${block.origin} content`, "dropped", "foreign_content");
        return;
      }
      case "refusal":
      case "image":
      case "audio":
    }
  }

  #begin(first: string): void {
    if (this.#begun) return;
    this.#begun = true;
    this.#writeDelta({
      role: "assistant",
      content: first === "text" || first === "none" ? "" : null,
      refusal: null,
    });
  }

  #end(finish: Finish): void {
    this.#begin("none");
    if (finish.reason === "refusal" && !this.#refused && finish.detail !== undefined)
      this.#writeDelta({ refusal: finish.detail });
    const word = formatFinishReason(finish, {
      calls: this.#calls.hasCalls,
      refusal: this.#refused,
      legacy: this.#declared.usesLegacyCalls,
    });
    this.#send("{}", "null", JSON.stringify(word));
    if (this.#includesUsage)
      this.#write(
        `data: {${this.#frame},"choices":[],"usage":${JSON.stringify(withCost(usageTo(this.#usage), this.#to))}}\n\n`,
      );
    this.#write("data: [DONE]\n\n");
  }

  #send(delta: string, logprobs = "null", finish = "null"): void {
    this.#write(
      `${this.#head}${delta},"logprobs":${logprobs},"finish_reason":${finish}${this.#tail}`,
    );
  }

  readonly #writeDelta = (delta: JsonObject): void => {
    this.#send(JSON.stringify(delta));
  };

  /** Writes a delta that may contain lists. */
  #list(delta: JsonObject): void {
    this.#writeDelta(this.#indexLists(delta));
  }
}

/**
 * Serializes text in a stream. If two blocks of one channel are open at the same time, the later
 * block waits for the first block.
 */
export type BlockEvent = Exclude<ModelEvent, { type: "start" | "usage" | "finish" }>;

interface Channel {
  /** Index of the block that is being emitted. */
  current: number | undefined;
  /** Buffered events of the waiting blocks. */
  waiting: Map<number, BlockEvent[]>;
}

class ChannelSequencer {
  readonly #emit: (e: BlockEvent) => void;
  readonly #channels = new Map<string, Channel>();
  readonly #channelOf = new Map<number, Channel>();

  constructor(speak: (e: BlockEvent) => void) {
    this.#emit = speak;
  }

  push(e: BlockEvent): void {
    if (
      e.type === "open" &&
      (e.block.type === "text" || e.block.type === "reasoning" || e.block.type === "refusal")
    )
      this.#join(e.index, e.block.type);
    const channel = this.#channelOf.get(e.index);
    if (!channel) return this.#emit(e);
    if (channel.current !== e.index) return void channel.waiting.get(e.index)!.push(e);
    this.#emit(e);
    if (e.type === "close") this.#leave(e.index, channel);
  }

  #join(index: number, type: string): void {
    let channel = this.#channels.get(type);
    if (!channel) this.#channels.set(type, (channel = { current: undefined, waiting: new Map() }));
    this.#channelOf.set(index, channel);
    if (channel.current === undefined) channel.current = index;
    else channel.waiting.set(index, []);
  }

  #leave(index: number, channel: Channel): void {
    this.#channelOf.delete(index);
    for (const [next, held] of channel.waiting) {
      channel.waiting.delete(next);
      channel.current = next;
      for (const one of held) this.#emit(one);
      if (held.at(-1)?.type !== "close") return;
      this.#channelOf.delete(next);
    }
    channel.current = undefined;
  }
}

// Writes tool calls as pieces of a stream. Calls can be interleaved. They are numbered in the order
// in which they began, and a call's name is written before its arguments.

interface PendingCall {
  block: CallBlock;
  number: number;
  /** Collected arguments of a wrapped freeform tool. */
  args: string;
  proof: Proof | undefined;
  isAnnounced: boolean;
}

class ToolCallWriter {
  readonly #writeDelta: (delta: JsonObject) => void;
  readonly #declared: ChatDeclarations;
  readonly #calls = new Map<number, PendingCall>();
  /**
   * Calls that have begun but are not written yet. A signature that follows its call directly is
   * then sent together with the name.
   */
  readonly #waiting = new Set<PendingCall>();
  #count = 0;

  constructor(say: (delta: JsonObject) => void, declared: ChatDeclarations) {
    this.#writeDelta = say;
    this.#declared = declared;
  }

  get hasCalls(): boolean {
    return this.#count > 0;
  }

  open(index: number, block: CallBlock): void {
    const call = { block, number: this.#count++, args: "", proof: undefined, isAnnounced: false };
    this.#calls.set(index, call);
    this.#waiting.add(call);
  }

  delta(index: number, args: string): void {
    const call = this.#calls.get(index)!;
    this.#announce(call);
    if (isWrapped(call.block, this.#declared)) call.args += args;
    else this.#args(call, args);
  }

  proof(index: number, proof: Proof): void {
    const call = this.#calls.get(index)!;
    call.proof = proof;
    if (!call.isAnnounced || this.#declared.usesLegacyCalls) return;
    // Clients expect the function in every fragment, even if the fragment does not change it.
    const { block, number } = call;
    this.#writeDelta({
      tool_calls: [{ index: number, ...this.#piece(block, ""), ...callExtra(proof) }],
    });
  }

  close(index: number): void {
    const call = this.#calls.get(index)!;
    this.#announce(call);
    if (isWrapped(call.block, this.#declared)) this.#args(call, unwrapped(call.args));
    this.#calls.delete(index);
  }

  #announce(call: PendingCall): void {
    if (call.isAnnounced) return;
    const declared = this.#declared;
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next.isAnnounced = true;
      const { block, number, proof } = next;
      if (!declared.usesLegacyCalls)
        this.#writeDelta({
          tool_calls: [{ index: number, ...toolCallDelta(block, "", declared, proof) }],
        });
      else if (number === 0)
        this.#writeDelta({ function_call: { name: declared.name(block.name), arguments: "" } });
      if (next === call) return;
    }
  }

  #args({ block, number }: PendingCall, words: string): void {
    if (words === "") return;
    if (this.#declared.usesLegacyCalls) {
      // The legacy form allows only one call.
      if (number === 0) this.#writeDelta({ function_call: { arguments: words } });
      return;
    }
    this.#writeDelta({ tool_calls: [{ index: number, ...this.#piece(block, words) }] });
  }

  #piece(block: CallBlock, words: string): JsonObject {
    return block.tool === "custom" || this.#declared.isCustomTool(this.#declared.name(block.name))
      ? { custom: { input: words } }
      : { function: { arguments: words } };
  }
}
