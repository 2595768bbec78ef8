// Calls as pieces in a stream. They may interleave; their numbers are the order in which they began, and each is told
// with its name before any of its arguments.
import type { JsonObject, Proof } from "../../../plugin/index.ts";
import {
  callWith,
  extraOf,
  isWrapped,
  unwrapped,
  type CallBlock,
  type ChatDeclarations,
} from "./saying.ts";

interface CallBeingWritten {
  block: CallBlock;
  number: number;
  /** What a wrapped freeform input has come to. */
  args: string;
  proof: Proof | undefined;
  told: boolean;
}

export class CallWriter {
  readonly #say: (delta: JsonObject) => void;
  readonly #declared: ChatDeclarations;
  readonly #calls = new Map<number, CallBeingWritten>();
  /** Begun, and not told yet: a signature that comes right behind its call goes out with its name. */
  readonly #waiting = new Set<CallBeingWritten>();
  #count = 0;

  constructor(say: (delta: JsonObject) => void, declared: ChatDeclarations) {
    this.#say = say;
    this.#declared = declared;
  }

  get any(): boolean {
    return this.#count > 0;
  }

  open(index: number, block: CallBlock): void {
    const call = { block, number: this.#count++, args: "", proof: undefined, told: false };
    this.#calls.set(index, call);
    this.#waiting.add(call);
  }

  delta(index: number, args: string): void {
    const call = this.#calls.get(index)!;
    this.#tell(call);
    if (isWrapped(call.block, this.#declared)) call.args += args;
    else this.#args(call, args);
  }

  proof(index: number, proof: Proof): void {
    const call = this.#calls.get(index)!;
    call.proof = proof;
    if (!call.told || this.#declared.legacy) return;
    // Readers want the function in every fragment, one that has nothing to say of it included.
    const { block, number } = call;
    this.#say({ tool_calls: [{ index: number, ...this.#piece(block, ""), ...extraOf(proof) }] });
  }

  close(index: number): void {
    const call = this.#calls.get(index)!;
    this.#tell(call);
    if (isWrapped(call.block, this.#declared)) this.#args(call, unwrapped(call.args));
    this.#calls.delete(index);
  }

  #tell(call: CallBeingWritten): void {
    if (call.told) return;
    const declared = this.#declared;
    for (const next of this.#waiting) {
      this.#waiting.delete(next);
      next.told = true;
      const { block, number, proof } = next;
      if (!declared.legacy)
        this.#say({ tool_calls: [{ index: number, ...callWith(block, "", declared, proof) }] });
      else if (number === 0)
        this.#say({ function_call: { name: declared.name(block.name), arguments: "" } });
      if (next === call) return;
    }
  }

  #args({ block, number }: CallBeingWritten, words: string): void {
    if (words === "") return;
    if (this.#declared.legacy) {
      // The oldest form has room for one call.
      if (number === 0) this.#say({ function_call: { arguments: words } });
      return;
    }
    this.#say({ tool_calls: [{ index: number, ...this.#piece(block, words) }] });
  }

  #piece(block: CallBlock, words: string): JsonObject {
    return block.tool === "custom" || this.#declared.custom(this.#declared.name(block.name))
      ? { custom: { input: words } }
      : { function: { arguments: words } };
  }
}
