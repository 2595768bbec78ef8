import type { Fault } from "../../../model/error.ts";
import type { ModelEvent, OpenBlock } from "../../../model/event.ts";
import type { Proof } from "../../../model/request.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { BlockSequencer, type IndexedEvent } from "../../block-sequencer.ts";
import { ID } from "../constants.ts";
import { ChunkWriter } from "./chunk-writer.ts";
import {
  countsTo,
  formatFinish,
  callPart,
  formatLogprobs,
  mediaPart,
  namesOf,
  ownPart,
  showsThoughts,
  signedPart,
  type ResponseFlaws,
  grounding,
  SentText,
} from "./content.ts";
import { faultBody } from "./fault.ts";
import { PendingProofs } from "./pending-proofs.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";

/**
 * Creates an encoder for a stream of chunks without names. Each chunk is a response that contains
 * only the new part. The last one also contains the finish reason and the usage.
 */
export function createEncoder(write: (text: string) => void, to: ResponseContext): Encoder {
  const page = new ChunkWriter(write, to);
  const blocks = new BlockWriter(page, to);
  const turns = new BlockSequencer((e: IndexedEvent) => blocks.event(e));
  let usage: Usage = {};
  return joinSurrogatePairs({
    writeEvent(e: ModelEvent) {
      switch (e.type) {
        case "start":
        case "item":
          return;
        case "usage":
          usage = mergeUsage(usage, e.usage);
          return;
        case "finish":
          return page.end(
            { finishReason: formatFinish(e, blocks.flaws) },
            { usageMetadata: countsTo(usage) },
          );
        default:
          turns.event(e);
      }
    },
    writeFault: (f: Fault) => page.fail(faultBody(f)),
  });
}

/**
 * Writes blocks event by event. Text is written immediately. A call is written as a whole, because
 * this protocol has no partial calls.
 */
class BlockWriter {
  readonly proofs = new PendingProofs();
  readonly flaws: ResponseFlaws = { hasRefusal: false, hasInvalidCall: false };
  readonly #chunks: ChunkWriter;
  readonly #to: ResponseContext;
  readonly #showsThoughts: boolean;
  readonly #named: (name: string) => string;
  #block: OpenBlock | undefined;
  #proof: Proof | undefined;
  /** Parts of reasoning or of a call's arguments, which are needed at the end of the block. */
  #text: string[] = [];
  #sentText = new SentText();
  #citations: Json[] = [];

  constructor(page: ChunkWriter, to: ResponseContext) {
    this.#chunks = page;
    this.#to = to;
    this.#showsThoughts = showsThoughts(to.body);
    this.#named = namesOf(to);
  }

  event(e: IndexedEvent): void {
    switch (e.type) {
      case "open":
        this.#block = e.block;
        this.#proof = undefined;
        this.#text = [];
        this.#sentText = new SentText();
        this.#citations = [];
        return;
      case "delta":
        return this.#delta(e.text, e.logprobs);
      case "media": {
        const part = mediaPart(e.media, this.#block?.type === "audio" ? "audio/wav" : "image/png");
        if (part && !e.partial) this.#chunks.part(signedPart(part, this.#ownSignature()));
        return;
      }
      case "proof":
        this.#proof = e.proof;
        return;
      case "cite":
        this.#citations.push(e.citation);
        return;
      case "close":
        this.#close();
        this.#block = undefined;
    }
  }

  #delta(text: string, logprobs: readonly Json[] | undefined): void {
    if (text === "" && !logprobs) return;
    switch (this.#block?.type) {
      case "reasoning":
        if (this.#showsThoughts) this.#chunks.text(text, true);
        this.#text.push(text);
        return;
      case "call":
        this.#text.push(text);
        return;
      case "refusal":
        this.flaws.hasRefusal = true;
    }
    this.proofs.onText();
    this.#sentText.add(text);
    if (text !== "" && !logprobs) return this.#chunks.text(text, false);
    if (text !== "") this.#chunks.part({ text });
    if (logprobs) this.#chunks.addToCandidate({ logprobsResult: formatLogprobs(logprobs) });
  }

  #close(): void {
    const block = this.#block;
    switch (block?.type) {
      case "text":
      case "refusal":
        return this.#words();
      case "reasoning":
        return this.#thought(block.summary === true);
      case "call": {
        const call = { ...block, name: this.#named(block.name), args: this.#text.join("") };
        const part = callPart(call, this.proofs.takeForCall(this.#proof));
        if (part) this.#chunks.part(part);
        else this.flaws.hasInvalidCall = true;
        return;
      }
      case "opaque": {
        const part = ownPart(block.origin, block.raw);
        if (part) this.#chunks.part(part);
        else if (this.#sentText.isEmpty) this.#to.reportLoss(`content.${block.origin}`, "dropped");
      }
    }
  }

  #words(): void {
    const sources = grounding(this.#sentText, this.#citations);
    if (sources) this.#chunks.addToCandidate({ groundingMetadata: sources });
    this.#sign({ text: "" });
  }

  #thought(summary: boolean): void {
    const proof = this.#proof;
    if (proof?.origin !== ID) return this.proofs.thought(this.#text.join(""), proof, summary);
    this.#sign(proof.kind === "empty" ? { text: "" } : { text: "", thought: true });
  }

  /**
   * Writes the signature of text that has been sent. Another provider's signature is kept for the
   * next call.
   */
  #sign(part: JsonObject): void {
    const signature = this.#ownSignature();
    if (signature !== undefined) this.#chunks.sign(signature, part);
    else if (this.#proof) this.proofs.addTextProof(this.#proof);
  }

  #ownSignature(): string | undefined {
    return this.#proof?.origin === ID ? this.#proof.data : undefined;
  }
}
