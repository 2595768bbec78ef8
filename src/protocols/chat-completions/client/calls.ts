// Which call a piece of one belongs to. The standard is an index; what is sent instead: none, the same for all, numbers
// with gaps, ids only, ids again with every piece, names late, names again, the whole call at once, arguments as an object.
import { fail } from "../../../model/error.ts";
import type { Json, ModelEvent, Proof } from "../../../plugin/index.ts";
import { callProof } from "../server/reasoning.ts";
import { argsOf, digest, number, object, text } from "../words.ts";

interface Call {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  custom: boolean;
  args: string;
  /** The block's index, once it is open. */
  block: number | undefined;
  closed: boolean;
  proof: Proof | undefined;
}

export interface Calls {
  piece(raw: Json): void;
  /** The oldest form: one call, without index or id. */
  legacy(raw: Json): void;
  end(): void;
  readonly any: boolean;
}

export function calling(
  emit: (event: ModelEvent) => void,
  /** The next block's index; what else is open has been closed by then. */
  open: () => number,
  answerId: () => string | undefined,
): Calls {
  const calls: Call[] = [];

  const find = (
    index: number | undefined,
    id: string | undefined,
    name: string | undefined,
    args: string,
  ): Call => {
    const last = calls.at(-1);
    let call: Call | undefined;
    if (index !== undefined) {
      call = calls.findLast((c) => c.index === index);
      // All at index 0, told apart by their ids.
      if (call && id !== undefined && call.id !== undefined && call.id !== id) call = undefined;
    } else if (id !== undefined) {
      call = calls.find((c) => c.id === id);
    } else if (
      last &&
      (name === undefined ||
        last.name === undefined ||
        (last.name === name && !isAnother(last, args)))
    ) {
      call = last;
    }
    if (!call) {
      call = {
        index,
        id,
        name: undefined,
        custom: false,
        args: "",
        block: undefined,
        closed: false,
        proof: undefined,
      };
      calls.push(call);
    }
    return call;
  };

  const begin = (call: Call) => {
    // One that already says all it can is over: others need not wait for it.
    for (const other of calls)
      if (other !== call && !other.custom && isComplete(other.args)) close(other);
    call.block = open();
    call.id ??= `call_${digest(`${answerId() ?? ""}/${calls.indexOf(call)}/${call.name}`, 24)}`;
    const { id, name, custom, proof } = call;
    emit({
      type: "open",
      index: call.block,
      block: { type: "call", id, name: name!, tool: custom ? "custom" : "function" },
    });
    if (proof) emit({ type: "proof", index: call.block, proof });
    if (call.args !== "") emit({ type: "delta", index: call.block, text: call.args });
  };

  const close = (call: Call) => {
    if (call.block === undefined || call.closed) return;
    call.closed = true;
    emit({ type: "close", index: call.block });
  };

  const add = (call: Call, name: string | undefined, args: string) => {
    if (args !== "" && call.closed && args.trim() !== "")
      fail("upstream", "The provider went on with a tool call that was complete.", {
        code: "malformed_answer",
      });
    call.args += args;
    if (call.block !== undefined) {
      if (args !== "" && !call.closed) emit({ type: "delta", index: call.block, text: args });
      return;
    }
    call.name ??= name;
    if (call.name !== undefined) begin(call);
  };

  return {
    get any() {
      return calls.length > 0;
    },
    piece(raw) {
      const piece = object(raw);
      if (!piece) return;
      const custom = object(piece["custom"]);
      const fn = custom ?? object(piece["function"]);
      const id = text(piece["id"]) || undefined;
      const name = text(fn?.["name"]) || undefined;
      const args = argsOf(custom ? custom["input"] : fn?.["arguments"]);
      const call = find(number(piece["index"]), id, name, args);
      call.id ??= id;
      call.custom ||= custom !== undefined || piece["type"] === "custom";
      const proof = callProof(piece);
      call.proof ??= proof;
      if (proof && call.block !== undefined && !call.closed)
        emit({ type: "proof", index: call.block, proof });
      add(call, name, args);
    },
    legacy(raw) {
      const piece = object(raw);
      if (!piece) return;
      const call = find(0, undefined, undefined, "");
      const name = text(piece["name"]) || undefined;
      call.id ??= name && `call_${digest(name, 24)}`;
      add(call, name, argsOf(piece["arguments"]));
    },
    end() {
      for (const call of calls) {
        if (call.block === undefined)
          fail("upstream", "The provider called a tool without naming it.", {
            code: "malformed_answer",
          });
        close(call);
      }
    },
  };
}

/** The same name again, with arguments of its own, after a call that was complete. */
const isAnother = (last: Call, args: string): boolean =>
  args.trimStart().startsWith("{") && isComplete(last.args);

function isComplete(args: string): boolean {
  if (!args.trimEnd().endsWith("}")) return false;
  try {
    JSON.parse(args);
    return true;
  } catch {
    return false;
  }
}
