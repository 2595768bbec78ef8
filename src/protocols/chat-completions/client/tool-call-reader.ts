// Assigns pieces to tool calls. The standard is an index per call. Backends also send no index, the
// same index for all calls, indexes with gaps, or only IDs. They send repeated IDs, late or
// repeated names, a whole call in one piece, or arguments as an object.
import { fail } from "../../../model/error.ts";
import type { Json, ModelEvent, Proof } from "../../../plugin/index.ts";
import { argumentsText, digest } from "../constants.ts";
import { callProof } from "../server/reasoning.ts";
import { asNumber, asObject, asText } from "../../json-values.ts";

interface PartialCall {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  custom: boolean;
  args: string;
  completeness: JsonCompleteness;
  number: number;
  /** Index of the block, once it is open. */
  block: number | undefined;
  closed: boolean;
  proof: Proof | undefined;
}

/** The state of the response that `ToolCallReader` needs. */
export interface ResponseState {
  /** Closes other open content and returns the index of the next block. */
  open(): number;
  answerId(): string | undefined;
}

export class ToolCallReader {
  readonly #emit: (event: ModelEvent) => void;
  readonly #around: ResponseState;
  readonly #calls: PartialCall[] = [];
  readonly #byIndex = new Map<number, PartialCall>();
  readonly #byId = new Map<string, PartialCall>();
  /** Open calls with complete arguments. They are closed when another call begins. */
  readonly #ended = new Set<PartialCall>();

  constructor(emit: (event: ModelEvent) => void, around: ResponseState) {
    this.#emit = emit;
    this.#around = around;
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0;
  }

  addPiece(raw: Json): void {
    const piece = asObject(raw);
    if (!piece) return;
    const custom = asObject(piece["custom"]);
    const fn = custom ?? asObject(piece["function"]);
    const id = asText(piece["id"]) || undefined;
    const name = asText(fn?.["name"]) || undefined;
    const args = argumentsText(custom ? custom["input"] : fn?.["arguments"]);
    const index = asNumber(piece["index"]);
    const call = this.#find(index, id, name, args) ?? this.#keep(index, id);
    if (id !== undefined && call.id === undefined) {
      call.id = id;
      if (!this.#byId.has(id)) this.#byId.set(id, call);
    }
    call.custom ||= custom !== undefined || piece["type"] === "custom";
    const proof = callProof(piece);
    call.proof ??= proof;
    if (proof && call.block !== undefined && !call.closed)
      this.#emit({ type: "proof", index: call.block, proof });
    this.#add(call, name, args);
  }

  /** Adds a piece of the legacy form, which has one call without index or ID. */
  addLegacyPiece(raw: Json): void {
    const piece = asObject(raw);
    if (!piece) return;
    const call = this.#find(0, undefined, undefined, "") ?? this.#keep(0, undefined);
    const name = asText(piece["name"]) || undefined;
    call.id ??= name && `call_${digest(name, 24)}`;
    this.#add(call, name, argumentsText(piece["arguments"]));
  }

  end(): void {
    for (const call of this.#calls) {
      if (call.block === undefined)
        fail("upstream", "The provider returned a tool call without a name.", {
          code: "malformed_answer",
        });
      this.#close(call);
    }
  }

  #find(
    index: number | undefined,
    id: string | undefined,
    name: string | undefined,
    args: string,
  ): PartialCall | undefined {
    if (index !== undefined) {
      const call = this.#byIndex.get(index);
      // Some backends send all calls with index 0 and different IDs.
      return call && id !== undefined && call.id !== undefined && call.id !== id ? undefined : call;
    }
    if (id !== undefined) return this.#byId.get(id);
    const last = this.#calls.at(-1);
    const goesOn =
      name === undefined ||
      last?.name === undefined ||
      (last.name === name && !beginsNewCall(last, args));
    return goesOn ? last : undefined;
  }

  #keep(index: number | undefined, id: string | undefined): PartialCall {
    const call: PartialCall = {
      index,
      id,
      name: undefined,
      custom: false,
      args: "",
      completeness: new JsonCompleteness(),
      number: this.#calls.length,
      block: undefined,
      closed: false,
      proof: undefined,
    };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, call);
    return call;
  }

  #add(call: PartialCall, name: string | undefined, args: string): void {
    if (args !== "" && call.closed && args.trim() !== "")
      fail("upstream", "The provider continued a tool call that was already complete.", {
        code: "malformed_answer",
      });
    call.args += args;
    if (!call.completeness.grow(args, call)) this.#ended.delete(call);
    else if (call.block !== undefined && !call.custom) this.#ended.add(call);
    if (call.block !== undefined) {
      if (args !== "" && !call.closed) this.#emit({ type: "delta", index: call.block, text: args });
      return;
    }
    call.name ??= name;
    if (call.name !== undefined) this.#begin(call, call.name);
  }

  #begin(call: PartialCall, name: string): void {
    // Calls with complete arguments are closed, so that other blocks need not wait for them.
    for (const other of this.#ended) this.#close(other);
    const index = (call.block = this.#around.open());
    const id =
      (call.id ??= `call_${digest(`${this.#around.answerId() ?? ""}/${call.number}/${name}`, 24)}`);
    const { custom, proof } = call;
    const tool = custom ? "custom" : "function";
    this.#emit({ type: "open", index, block: { type: "call", id, name, tool } });
    if (proof) this.#emit({ type: "proof", index, proof });
    if (call.args !== "") this.#emit({ type: "delta", index, text: call.args });
    if (call.completeness.isComplete && !custom) this.#ended.add(call);
  }

  #close(call: PartialCall): void {
    if (call.block === undefined || call.closed) return;
    call.closed = true;
    this.#ended.delete(call);
    this.#emit({ type: "close", index: call.block });
  }
}

/**
 * Whether a piece with the same name starts a new call: the piece has arguments, and the previous
 * call is complete.
 */
const beginsNewCall = (last: PartialCall, args: string): boolean =>
  /^\s*\{/.test(args) && last.completeness.isComplete;

/**
 * Tracks whether streamed arguments form a complete JSON object. Each character is scanned once,
 * and the whole text is parsed at most once.
 */
class JsonCompleteness {
  isComplete = false;
  #depth = 0;
  #quoted = false;
  #escaped = false;
  /** Whether the text can no longer become a valid object. */
  #invalid = false;

  /**
   * Adds arguments and returns whether the object is complete.
   *
   * @param call The call with all its arguments so far, including these.
   */
  grow(args: string, call: { readonly args: string }): boolean {
    for (let i = 0; i < args.length && !this.#invalid; i++) {
      const c = args.charCodeAt(i);
      if (this.#quoted) {
        if (this.#escaped) this.#escaped = false;
        else if (c === 92) this.#escaped = true;
        else if (c === 34) this.#quoted = false;
      } else if (this.isComplete) {
        if (c > 32) this.#fail();
      } else if (c === 34) this.#quoted = true;
      else if (c === 123 || c === 91) this.#depth++;
      else if (c === 125 || c === 93) {
        if (--this.#depth > 0) continue;
        // The rest of this piece may contain more text, so only the text up to this bracket is
        // parsed.
        this.isComplete = this.#depth === 0 && c === 125 && parses(call.args, args.length - 1 - i);
        if (!this.isComplete) this.#fail();
      } else if (c > 32 && this.#depth === 0) this.#fail();
    }
    return this.isComplete;
  }

  #fail(): void {
    this.isComplete = false;
    this.#invalid = true;
  }
}

/** Whether the text is valid JSON without its last characters. */
function parses(text: string, without: number): boolean {
  try {
    JSON.parse(without === 0 ? text : text.slice(0, -without));
    return true;
  } catch {
    return false;
  }
}
