// How each kind of block is written, event by event. Words leave as they come; a call leaves whole, since this wire has no half of one.
import type { OpenBlock } from "../../../model/event.ts";
import type { Proof } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext } from "../../../plugin/protocol.ts";
import type { EventOfBlock } from "../../in-turn.ts";
import { ID } from "../words.ts";
import type { ChunkWriter } from "./chunk-writer.ts";
import {
  callPart,
  likelihoodsTo,
  mediaPart,
  namesOf,
  ownPart,
  showsThoughts,
  signedPart,
  type AnswerFlaws,
} from "./content.ts";
import { grounding, PassedWords } from "./grounds.ts";
import { WaitingProofs } from "./proofs.ts";

export class BlockWriter {
  readonly proofs = new WaitingProofs();
  readonly held: AnswerFlaws = { refused: false, broken: false };
  readonly #page: ChunkWriter;
  readonly #to: AnswerContext;
  readonly #shown: boolean;
  readonly #named: (name: string) => string;
  #block: OpenBlock | undefined;
  #proof: Proof | undefined;
  /** A thought, or what a call is given: needed once more at the block's end. */
  #said: string[] = [];
  #passed = new PassedWords();
  #citations: Json[] = [];

  constructor(page: ChunkWriter, to: AnswerContext) {
    this.#page = page;
    this.#to = to;
    this.#shown = showsThoughts(to.body);
    this.#named = namesOf(to);
  }

  event(e: EventOfBlock): void {
    switch (e.type) {
      case "open":
        this.#block = e.block;
        this.#proof = undefined;
        this.#said = [];
        this.#passed = new PassedWords();
        this.#citations = [];
        return;
      case "delta":
        return this.#delta(e.text, e.logprobs);
      case "media": {
        const part = mediaPart(e.media, this.#block?.type === "audio" ? "audio/wav" : "image/png");
        if (part && !e.partial) this.#page.part(signedPart(part, this.#ownSignature()));
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
        if (this.#shown) this.#page.text(text, true);
        this.#said.push(text);
        return;
      case "call":
        this.#said.push(text);
        return;
      case "refusal":
        this.held.refused = true;
    }
    this.proofs.said();
    this.#passed.add(text);
    if (text !== "" && !logprobs) return this.#page.text(text, false);
    if (text !== "") this.#page.part({ text });
    if (logprobs) this.#page.beside({ logprobsResult: likelihoodsTo(logprobs) });
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
        const call = { ...block, name: this.#named(block.name), args: this.#said.join("") };
        const part = callPart(call, this.proofs.forCall(this.#proof));
        if (part) this.#page.part(part);
        else this.held.broken = true;
        return;
      }
      case "opaque": {
        const part = ownPart(block.origin, block.raw);
        if (part) this.#page.part(part);
        else if (this.#passed.none) this.#to.lose(`content.${block.origin}`, "dropped");
      }
    }
  }

  #words(): void {
    const sources = grounding(this.#passed, this.#citations);
    if (sources) this.#page.beside({ groundingMetadata: sources });
    this.#sign({ text: "" });
  }

  #thought(summary: boolean): void {
    const proof = this.#proof;
    if (proof?.origin !== ID) return this.proofs.thought(this.#said.join(""), proof, summary);
    this.#sign(proof.kind === "empty" ? { text: "" } : { text: "", thought: true });
  }

  /** After words that have left there is a part for their signature; another provider's waits. */
  #sign(part: JsonObject): void {
    const signature = this.#ownSignature();
    if (signature !== undefined) this.#page.sign(signature, part);
    else if (this.#proof) this.proofs.words(this.#proof);
  }

  #ownSignature(): string | undefined {
    return this.#proof?.origin === ID ? this.#proof.data : undefined;
  }
}
