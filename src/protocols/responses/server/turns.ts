// Decodes input items into turns. Adjacent assistant items form one turn, because in other
// protocols the text and calls of one step are one message. Adjacent tool outputs form one turn
// too.
import { fail } from "../../../model/error.ts";
import type { Block, Json, JsonObject, Proof, Turn, Opt } from "../../../plugin/index.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { unseal, type SealedProof } from "../../proof-envelope.ts";
import {
  ORIGIN,
  rememberSource,
  isInstructionRole,
  itemTypeOf,
  toOpaqueBlock,
} from "../constants.ts";
import { blocksOf } from "../parts.ts";
import { flatName } from "../tools.ts";

/** An item of a turn and its blocks. An item that only carries a proof has no blocks. */
interface Piece {
  item: Json;
  blocks: Block[];
}

interface PartialTurn {
  role: "assistant" | "tool";
  pieces: Piece[];
  phase: string | undefined;
  /** Whether the turn has a message, and whether it has a call. */
  hasText: boolean;
  hasCalls: boolean;
  /** The last call and the last text, to which a proof may belong. */
  last: { call?: Place; text?: Place };
}

interface Place {
  blocks: Block[];
  at: number;
}

function startTurn(role: PartialTurn["role"], pieces: readonly Piece[]): PartialTurn {
  const now: PartialTurn = {
    role,
    pieces: [],
    phase: undefined,
    hasText: false,
    hasCalls: false,
    last: {},
  };
  for (const piece of pieces) addPiece(now, piece);
  return now;
}

function addPiece(now: PartialTurn, piece: Piece): void {
  now.pieces.push(piece);
  now.hasText ||= itemTypeOf(asObject(piece.item)!) === "message";
  for (const [at, { type }] of piece.blocks.entries()) {
    now.hasCalls ||= type === "call";
    if (type === "call" || type === "text") now.last[type] = { blocks: piece.blocks, at };
  }
}

function turnsOf(items: readonly Json[], offset: number): Turn[] {
  const turns = new ItemTurns();
  items.forEach((raw, n) => {
    const at = `input[${offset + n}]`;
    turns.item(asObject(raw) ?? malformed(at, "must be an object"), at);
  });
  turns.endTurn();
  return turns.turns;
}

class ItemTurns {
  readonly turns: Turn[] = [];
  #now: PartialTurn | undefined;

  item(item: JsonObject, at: string): void {
    const kind = itemTypeOf(item);
    switch (kind) {
      case "message":
        return this.#message(item, at);
      case "reasoning":
        return this.#reasoning(item);
      case "function_call":
      case "custom_tool_call":
        return this.#put("assistant", { item, blocks: [callOf(item, kind, at)] });
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#put("tool", { item, blocks: [resultOf(item, at)] });
      case "item_reference":
        // Only the provider can resolve the reference. It becomes an opaque block, because no other
        // protocol can express it.
        this.endTurn();
        this.turns.push(
          rememberSource({ role: "user", blocks: [toOpaqueBlock({ ...item, type: kind })] }, [
            item,
          ]),
        );
        return;
      default: {
        if (kind === "") malformed(`${at}.type`, "is missing");
        // Hosted tools and unknown types. An item that answers a call belongs to the tool turn.
        const role = /_(?:output|response)$/.test(kind) ? "tool" : "assistant";
        return this.#put(role, { item, blocks: [{ type: "opaque", origin: ORIGIN, raw: item }] });
      }
    }
  }

  endTurn(): void {
    const now = this.#now;
    if (!now) return;
    const blocks = now.pieces.flatMap((p) => p.blocks);
    this.turns.push(
      rememberSource(
        omitUndefined({ role: now.role, blocks, phase: now.phase }),
        now.pieces.map((p) => p.item),
      ),
    );
    this.#now = undefined;
  }

  #put(role: PartialTurn["role"], piece: Piece): void {
    if (this.#now?.role !== role) {
      this.endTurn();
      this.#now = startTurn(role, []);
    }
    addPiece(this.#now!, piece);
  }

  #message(item: JsonObject, at: string): void {
    const blocks = blocksOf(item["content"], `${at}.content`);
    const role = asText(item["role"]);
    if (role === "assistant") {
      // If the turn has a message and no call, another message begins the next step.
      if (this.#now?.role === "assistant" && this.#now.hasText && !this.#now.hasCalls)
        this.#break(this.#now);
      this.#put("assistant", { item, blocks });
      this.#now!.phase ??= asText(item["phase"]);
      return;
    }
    if (role !== "user" && !isInstructionRole(role))
      malformed(`${at}.role`, "must be user, assistant, system or developer");
    this.endTurn();
    this.turns.push(rememberSource({ role: role as Turn["role"], blocks }, [item]));
  }

  /** Ends a turn before the next message. Reasoning at its end belongs to the message after it. */
  #break(now: PartialTurn): void {
    const from = 1 + now.pieces.findLastIndex((p) => itemTypeOf(asObject(p.item)!) !== "reasoning");
    const moved = now.pieces.splice(from);
    this.endTurn();
    if (moved.length > 0) this.#now = startTurn("assistant", moved);
  }

  #reasoning(item: JsonObject): void {
    const encrypted = asText(item["encrypted_content"]);
    const sealed = encrypted === undefined ? undefined : unseal(encrypted);
    if (!sealed?.precedingBlock)
      return this.#put("assistant", { item, blocks: [reasoningOf(item, encrypted, sealed)] });
    // A proof of a call or text is in a separate reasoning item. The proof is attached to its
    // block.
    if (this.#now) attachProof(this.#now, sealed);
    this.#put("assistant", { item, blocks: [] });
  }
}

function reasoningOf(
  item: JsonObject,
  encrypted: string | undefined,
  sealed: SealedProof | undefined,
): Block {
  const summary = asList(item["summary"]).flatMap((s) => asText(asObject(s)?.["text"]) ?? []);
  const texts = asList(item["content"]).flatMap((c) => asText(asObject(c)?.["text"]) ?? []);
  const proof: Proof | undefined =
    sealed || encrypted === undefined
      ? sealed?.proof
      : { origin: ORIGIN, kind: "encrypted", data: encrypted };
  return omitUndefined({
    type: "reasoning",
    // The sealed text is the text that was signed, so it takes precedence over text that a client
    // may have reformatted.
    ...(sealed?.text !== undefined
      ? sealed.summary
        ? { summary: sealed.text === "" ? [] : [sealed.text] }
        : { text: sealed.text }
      : { summary, text: texts.length > 0 ? texts.join("\n\n") : undefined }),
    proof,
  });
}

function callOf(item: JsonObject, kind: string, at: string): Block {
  const tool = kind === "function_call" ? "function" : "custom";
  return {
    type: "call",
    id: need(item, "call_id", at),
    name: flatName(asText(item["namespace"]), need(item, "name", at)),
    tool,
    args: need(item, tool === "function" ? "arguments" : "input", at),
  };
}

function resultOf(item: JsonObject, at: string): Block {
  const output = item["output"];
  const blocks: Block[] = asObject(output)
    ? [{ type: "text", text: JSON.stringify(output) }]
    : blocksOf(output, `${at}.output`);
  return { type: "result", callId: need(item, "call_id", at), blocks, isError: false };
}

/** Returns a proof to the block from which it was taken, which is the last block of its type. */
function attachProof(now: PartialTurn, { proof, precedingBlock }: SealedProof): void {
  const place = now.last[precedingBlock!];
  if (place) place.blocks[place.at] = omitUndefined({ ...place.blocks[place.at]!, proof });
}

const need = (item: JsonObject, key: string, at: string): string =>
  asText(item[key]) ?? malformed(`${at}.${key}`, "must be a string");

const malformed = (at: string, what: string): never =>
  fail("invalid", `${at} ${what}.`, { param: at, code: "invalid_type" });

/**
 * Decodes the input, a flat list of items, into a conversation: the instructions before the first
 * turn, and the turns.
 */
interface Conversation {
  instructions: readonly Block[];
  turns: readonly Turn[];
}

export function parseInput(input: Opt<Json>, instructions: Opt<string>): Conversation {
  const items: readonly Json[] =
    typeof input === "string" ? [{ role: "user", content: input }] : asList(input);
  const lead: Json[] = [];
  const head: Block[] = instructions === undefined ? [] : [{ type: "text", text: instructions }];
  let i = 0;
  for (; i < items.length; i++) {
    const item = asObject(items[i]);
    if (!item || itemTypeOf(item) !== "message" || !isInstructionRole(item["role"])) break;
    const blocks = blocksOf(item["content"], `input[${i}].content`);
    // Instructions before the first turn can only be text.
    if (blocks.some((b) => b.type !== "text")) break;
    for (const block of blocks) head.push(block);
    lead.push(item);
  }
  return {
    instructions: rememberSource(head, { instructions, items: lead }),
    turns: turnsOf(items.slice(i), i),
  };
}
