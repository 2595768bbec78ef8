import type { ModelResponse } from "../../../model/event.ts";
import type { Block } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { ID } from "../constants.ts";
import {
  callPart,
  countsTo,
  formatFinish,
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
import { PendingProofs } from "./pending-proofs.ts";

/** Encodes a non-streaming response with one candidate. */
export function encodeResponse(answer: ModelResponse, to: ResponseContext): JsonObject {
  const page = new ResponseParts(to);
  for (const block of answer.blocks) page.add(block);
  return {
    candidates: [
      {
        content: { parts: page.parts, role: "model" },
        finishReason: formatFinish(answer.finish, page.flaws),
        index: 0,
        ...page.candidateFields(),
      },
    ],
    usageMetadata: countsTo(answer.usage),
    modelVersion: to.model,
    responseId: to.id,
  };
}

class ResponseParts {
  readonly proofs = new PendingProofs();
  readonly flaws: ResponseFlaws = { hasRefusal: false, hasInvalidCall: false };
  readonly parts: JsonObject[] = [];
  /**
   * Grounding metadata of the last cited text. In this protocol, only one text can have citations.
   */
  #grounds: JsonObject | undefined;
  readonly #logprobs: Json[] = [];
  readonly #shown: boolean;
  readonly #named: (name: string) => string;
  readonly #to: ResponseContext;

  constructor(to: ResponseContext) {
    this.#to = to;
    this.#shown = showsThoughts(to.body);
    this.#named = namesOf(to);
  }

  add(block: Block): void {
    switch (block.type) {
      case "text":
      case "refusal":
        return this.#words(block);
      case "reasoning":
        return this.#thought(block);
      case "call": {
        const call = { ...block, name: this.#named(block.name) };
        const part = callPart(call, this.proofs.takeForCall(block.proof));
        if (part) this.parts.push(part);
        else this.flaws.hasInvalidCall = true;
        return;
      }
      case "image":
      case "audio": {
        const usual = block.type === "audio" ? "audio/wav" : "image/png";
        const part = mediaPart(block.media, usual);
        if (part) this.parts.push(signedPart(part, ownOf(block)));
        return;
      }
      case "opaque": {
        const part = ownPart(block.origin, block.raw);
        if (part) this.parts.push(part);
        else if (block.text) this.parts.push({ text: block.text });
        else this.#to.reportLoss(`content.${block.origin}`, "dropped");
        return;
      }
      default:
        this.#to.reportLoss(`content.${block.type}`, "dropped");
    }
  }

  candidateFields(): JsonObject {
    return {
      ...(this.#grounds && { groundingMetadata: this.#grounds }),
      ...(this.#logprobs.length > 0 && { logprobsResult: formatLogprobs(this.#logprobs) }),
    };
  }

  #words(block: Extract<Block, { type: "text" | "refusal" }>): void {
    this.flaws.hasRefusal ||= block.type === "refusal" && block.text !== "";
    for (const one of block.logprobs ?? []) this.#logprobs.push(one);
    if (block.text !== "") this.proofs.onText();
    const signature = ownOf(block);
    const on = block.proof?.kind === "words" && block.text !== "" ? signature : undefined;
    if (block.text !== "") this.parts.push(signedPart({ text: block.text }, on));
    if (signature !== undefined && on === undefined)
      this.parts.push({ text: "", thoughtSignature: signature });
    if (block.proof && signature === undefined) this.proofs.addTextProof(block.proof);
    if (block.type !== "text" || !block.citations) return;
    const words = new SentText();
    words.add(block.text);
    this.#grounds = grounding(words, block.citations) ?? this.#grounds;
  }

  #thought(block: Extract<Block, { type: "reasoning" }>): void {
    const thoughtText = block.text ?? block.summary?.join("\n\n") ?? "";
    if (thoughtText !== "" && this.#shown) this.parts.push({ text: thoughtText, thought: true });
    if (block.proof?.origin !== ID)
      return this.proofs.thought(thoughtText, block.proof, block.summary !== undefined);
    const mark = block.proof.kind === "empty" ? {} : { thought: true };
    this.parts.push({ text: "", ...mark, thoughtSignature: block.proof.data });
  }
}

const ownOf = ({ proof }: Block): string | undefined =>
  proof?.origin === ID ? proof.data : undefined;
