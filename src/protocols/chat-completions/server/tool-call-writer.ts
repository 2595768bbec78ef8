// Writes tool calls as pieces of a stream. Calls can be interleaved. They are numbered in the order
// in which they began, and a call's name is written before its arguments.
import type { JsonObject, Proof } from "../../../plugin/index.ts";
import {
  toolCallDelta,
  callExtra,
  isWrapped,
  unwrapped,
  type CallBlock,
  type ChatDeclarations,
} from "./response-common.ts";

interface PendingCall {
  block: CallBlock;
  number: number;
  /** Collected arguments of a wrapped freeform tool. */
  args: string;
  proof: Proof | undefined;
  isAnnounced: boolean;
}

export class ToolCallWriter {
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
