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

interface Call {
  block: CallBlock;
  number: number;
  /** What a wrapped freeform input has come to. */
  args: string;
  proof: Proof | undefined;
  told: boolean;
}

export interface CallWriter {
  open(index: number, block: CallBlock): void;
  delta(index: number, args: string): void;
  proof(index: number, proof: Proof): void;
  close(index: number): void;
  readonly any: boolean;
}

export function calling(say: (delta: JsonObject) => void, declared: ChatDeclarations): CallWriter {
  const calls = new Map<number, Call>();
  /** Begun, and not told yet: a signature that comes right behind its call goes out with its name. */
  const waiting = new Set<Call>();
  let count = 0;

  const tell = (call: Call) => {
    if (call.told) return;
    for (const next of waiting) {
      waiting.delete(next);
      next.told = true;
      const { block, number, proof } = next;
      if (!declared.legacy)
        say({ tool_calls: [{ index: number, ...callWith(block, "", declared, proof) }] });
      else if (number === 0)
        say({ function_call: { name: declared.name(block.name), arguments: "" } });
      if (next === call) return;
    }
  };
  const args = ({ block, number }: Call, words: string) => {
    if (words === "") return;
    if (declared.legacy) {
      // The oldest form has room for one call.
      if (number === 0) say({ function_call: { arguments: words } });
      return;
    }
    say({ tool_calls: [{ index: number, ...pieceOf(block, words) }] });
  };
  const pieceOf = (block: CallBlock, words: string): JsonObject =>
    block.tool === "custom" || declared.custom(declared.name(block.name))
      ? { custom: { input: words } }
      : { function: { arguments: words } };

  return {
    get any() {
      return count > 0;
    },
    open(index, block) {
      const call: Call = { block, number: count++, args: "", proof: undefined, told: false };
      calls.set(index, call);
      waiting.add(call);
    },
    delta(index, words) {
      const call = calls.get(index)!;
      tell(call);
      if (isWrapped(call.block, declared)) call.args += words;
      else args(call, words);
    },
    proof(index, proof) {
      const call = calls.get(index)!;
      call.proof = proof;
      if (!call.told || declared.legacy) return;
      // Readers want the function in every fragment, one that has nothing to say of it included.
      const { block, number } = call;
      say({ tool_calls: [{ index: number, ...pieceOf(block, ""), ...extraOf(proof) }] });
    },
    close(index) {
      const call = calls.get(index)!;
      tell(call);
      if (isWrapped(call.block, declared)) args(call, unwrapped(call.args));
      calls.delete(index);
    },
  };
}
