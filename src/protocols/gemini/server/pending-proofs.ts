// Carries signatures of other providers. In this protocol, the only place for them is the signature
// of a part, which clients send back. Clients keep it on a call and may drop reasoning parts, so a
// signature waits for the next call. At the end of a response it is omitted: its provider does not
// need it there, and no client keeps an empty part.
import type { Block, Proof } from "../../../model/request.ts";
import { sealBytes, unsealBytes, type SealedProof } from "../../proof-envelope.ts";
import { ID } from "../constants.ts";

/** Proofs of one response that wait for a call. */
export class PendingProofs {
  #waiting: SealedProof[] = [];

  /**
   * Adds reasoning, whether or not the client receives it. Some providers require it back although
   * they do not sign it, but only together with a call.
   */
  thought(text: string, proof: Proof | undefined, summary: boolean): void {
    if (proof || text !== "") this.#waiting.push({ proof, text, summary });
  }

  /** Called when text is written. Waiting reasoning came before it. */
  onText(): void {
    for (const one of this.#waiting) if (one.precedingBlock === undefined) one.isBeforeText = true;
  }

  /** Adds the proof of the text that was just written. */
  addTextProof(proof: Proof): void {
    this.#waiting.push({ proof, precedingBlock: "text" });
  }

  /**
   * Returns the signature for a call.
   *
   * @param own The proof of the call itself. It is sent unchanged if it is from this protocol and
   *   nothing else is waiting.
   */
  takeForCall(own: Proof | undefined): string | undefined {
    const all = own?.origin === ID ? this.#signed() : this.#waiting;
    this.#waiting = [];
    if (all.length === 0 && own?.origin === ID) return own.data;
    if (own) all.push({ proof: own, precedingBlock: "call" });
    return all.length > 0 ? sealBytes(all) : undefined;
  }

  #signed(): SealedProof[] {
    return this.#waiting.filter(({ proof }) => proof !== undefined);
  }
}

/**
 * Collects the blocks of one turn of a client's history. The content of envelopes is put back in
 * its original place.
 */
export class TurnBlocks {
  readonly #before: Block[] = [];
  /** Trailing text blocks. Reasoning from a later envelope may have to be inserted before them. */
  #words: Block[] = [];

  add(block: Block, signature: string | undefined): void {
    const sealed = unsealBytes(signature ?? "");
    for (const one of sealed) if (one.precedingBlock === "text") this.#sign(one.proof);
    const thoughts = sealed.filter(({ precedingBlock }) => precedingBlock === undefined);
    // The client sent the same reasoning in its displayed form, so these parts are removed.
    if (thoughts.length > 0) this.#withoutUnsigned();
    for (const one of thoughts) if (one.isBeforeText) this.#before.push(thoughtOf(one));
    // A part that exists only to carry an envelope has no content.
    const isCarrier = sealed.length > 0 && block.type === "text" && block.text === "";
    if (thoughts.some(({ isBeforeText }) => !isBeforeText)) this.#settle();
    for (const one of thoughts) if (!one.isBeforeText) this.#before.push(thoughtOf(one));
    if (isCarrier) return;
    const own = sealed.find(({ precedingBlock }) => precedingBlock === "call")?.proof;
    const signed = own ? { ...block, proof: own } : block;
    if (signed.type === "text") this.#words.push(signed);
    else {
      this.#settle();
      this.#before.push(signed);
    }
  }

  all(): readonly Block[] {
    this.#settle();
    return this.#before;
  }

  #settle(): void {
    for (const one of this.#words) this.#before.push(one);
    this.#words = [];
  }

  #withoutUnsigned(): void {
    for (let last = this.#before.at(-1); last?.type === "reasoning" && !last.proof;) {
      this.#before.pop();
      last = this.#before.at(-1);
    }
  }

  #sign(proof: Proof | undefined): void {
    const last = this.#words.at(-1);
    if (last && proof) this.#words[this.#words.length - 1] = { ...last, proof };
  }
}

function thoughtOf({ proof, text = "", summary }: SealedProof): Block {
  const signed = proof && { proof };
  if (summary) return { type: "reasoning", summary: text === "" ? [] : [text], ...signed };
  return { type: "reasoning", ...(text !== "" && { text }), ...signed };
}
