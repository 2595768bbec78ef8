// Which call a piece of one belongs to. The standard is an index; what is sent instead: none, the same for all, numbers
// with gaps, ids only, ids again with every piece, names late, names again, the whole call at once, arguments as an object.
import { fail } from "../../../model/error.ts";
import type { Json, ModelEvent, Proof } from "../../../plugin/index.ts";
import { callProof } from "../server/reasoning.ts";
import { number, object, text } from "../../json.ts";
import { argsOf, digest } from "../words.ts";

interface Call {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  custom: boolean;
  args: string;
  whole: Wholeness;
  number: number;
  /** The block's index, once it is open. */
  block: number | undefined;
  closed: boolean;
  proof: Proof | undefined;
}

export interface CallAssembler {
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
): CallAssembler {
  const calls: Call[] = [];
  const byIndex = new Map<number, Call>();
  const byId = new Map<string, Call>();
  /** Open, and said to the end: another that begins closes them. */
  const ended = new Set<Call>();

  const find = (
    index: number | undefined,
    id: string | undefined,
    name: string | undefined,
    args: string,
  ): Call => {
    const last = calls.at(-1);
    let call: Call | undefined;
    if (index !== undefined) {
      call = byIndex.get(index);
      // All at index 0, told apart by their ids.
      if (call && id !== undefined && call.id !== undefined && call.id !== id) call = undefined;
    } else if (id !== undefined) {
      call = byId.get(id);
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
        whole: new Wholeness(),
        number: calls.length,
        block: undefined,
        closed: false,
        proof: undefined,
      };
      calls.push(call);
      if (index !== undefined) byIndex.set(index, call);
      if (id !== undefined && !byId.has(id)) byId.set(id, call);
    }
    return call;
  };

  const begin = (call: Call) => {
    // One that already says all it can is over: others need not wait for it.
    for (const other of ended) close(other);
    call.block = open();
    call.id ??= `call_${digest(`${answerId() ?? ""}/${call.number}/${call.name}`, 24)}`;
    const { id, name, custom, proof } = call;
    emit({
      type: "open",
      index: call.block,
      block: { type: "call", id, name: name!, tool: custom ? "custom" : "function" },
    });
    if (proof) emit({ type: "proof", index: call.block, proof });
    if (call.args !== "") emit({ type: "delta", index: call.block, text: call.args });
    if (call.whole.is && !custom) ended.add(call);
  };

  const close = (call: Call) => {
    if (call.block === undefined || call.closed) return;
    call.closed = true;
    ended.delete(call);
    emit({ type: "close", index: call.block });
  };

  const add = (call: Call, name: string | undefined, args: string) => {
    if (args !== "" && call.closed && args.trim() !== "")
      fail("upstream", "The provider went on with a tool call that was complete.", {
        code: "malformed_answer",
      });
    call.args += args;
    if (!call.whole.grow(args, call)) ended.delete(call);
    else if (call.block !== undefined && !call.custom) ended.add(call);
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
      if (id !== undefined && call.id === undefined) {
        call.id = id;
        if (!byId.has(id)) byId.set(id, call);
      }
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
const isAnother = (last: Call, args: string): boolean => /^\s*\{/.test(args) && last.whole.is;

/** Whether arguments are an object that has ended. What comes is looked at once, and all of it is parsed once at most. */
class Wholeness {
  is = false;
  #depth = 0;
  #quoted = false;
  #escaped = false;
  /** Nothing that follows makes an object of it. */
  #over = false;

  /** `call`: with all its arguments so far. */
  grow(args: string, call: { readonly args: string }): boolean {
    for (let i = 0; i < args.length && !this.#over; i++) {
      const c = args.charCodeAt(i);
      if (this.#quoted) {
        if (this.#escaped) this.#escaped = false;
        else if (c === 92) this.#escaped = true;
        else if (c === 34) this.#quoted = false;
      } else if (this.is) {
        if (c > 32) this.#fail();
      } else if (c === 34) this.#quoted = true;
      else if (c === 123 || c === 91) this.#depth++;
      else if (c === 125 || c === 93) {
        if (--this.#depth > 0) continue;
        // The rest of this piece may say more.
        this.is = this.#depth === 0 && c === 125 && parses(call.args, args.length - 1 - i);
        if (!this.is) this.#fail();
      } else if (c > 32 && this.#depth === 0) this.#fail();
    }
    return this.is;
  }

  #fail(): void {
    this.is = false;
    this.#over = true;
  }
}

/** Without its last letters. */
function parses(text: string, without: number): boolean {
  try {
    JSON.parse(without === 0 ? text : text.slice(0, -without));
    return true;
  } catch {
    return false;
  }
}
