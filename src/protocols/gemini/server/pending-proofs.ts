// What another provider signed has no place on this wire but the one signature of a part, which clients send back with it.
// They keep it on a call and may drop thoughts: so it waits for the next call. At the end of
// an answer it is left out, as its maker can do without it there, and no client keeps an empty part.
import type { Block, Proof } from "../../../model/request.ts";
import { sealBytes, unsealBytes, type SealedProof } from "../../proof-envelope.ts";
import { ID } from "../constants.ts";

/** Of an answer, while it is written. */
export class PendingProofs {
  #waiting: SealedProof[] = [];

  /** Reasoning that this wire has shown, or not. Some providers want it back though they sign nothing, but only beside a call. */
  thought(text: string, proof: Proof | undefined, summary: boolean): void {
    if (proof || text !== "") this.#waiting.push({ proof, text, summary });
  }

  /** Words were said: what waits came before them. */
  onText(): void {
    for (const one of this.#waiting) if (one.precedingBlock === undefined) one.isBeforeText = true;
  }

  /** The proof of words that have just been said. */
  addTextProof(proof: Proof): void {
    this.#waiting.push({ proof, precedingBlock: "text" });
  }

  /** The signature of a call; `own`: what its maker signed it with, which stays as it is where nothing else waits. */
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

/** The blocks of one turn of a client's history, with what stood in their envelopes back in its place. */
export class TurnBlocks {
  readonly #before: Block[] = [];
  /** What was said last, and may have been thought about before. */
  #words: Block[] = [];

  add(block: Block, signature: string | undefined): void {
    const sealed = unsealBytes(signature ?? "");
    for (const one of sealed) if (one.precedingBlock === "text") this.#sign(one.proof);
    const thoughts = sealed.filter(({ precedingBlock }) => precedingBlock === undefined);
    // The same thoughts, as they were shown.
    if (thoughts.length > 0) this.#withoutUnsigned();
    for (const one of thoughts) if (one.isBeforeText) this.#before.push(thoughtOf(one));
    // A part that was made for its envelope says nothing.
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
