// Input items, a flat list, as turns. Adjacent items of the assistant are one turn, because elsewhere text and calls of
// one step are one message; so are adjacent tool outputs.
import { fail } from "../../../model/error.ts";
import type { Block, Json, JsonObject, Opt, Proof, Turn } from "../../../plugin/index.ts";
import { unseal, type SealedProof } from "../../envelope.ts";
import { blocksOf } from "../parts.ts";
import { flatName } from "../names.ts";
import { list, object, present, text } from "../../json.ts";
import { ORIGIN, came } from "../words.ts";

interface Conversation {
  instructions: readonly Block[];
  turns: readonly Turn[];
}

/** What a turn was made of, item by item: an item gives as many blocks as it says, a mere carrier of a proof none. */
interface Piece {
  item: Json;
  blocks: Block[];
}
interface Gathering {
  role: "assistant" | "tool";
  pieces: Piece[];
  phase: string | undefined;
  /** It has spoken; it has called a tool. */
  spoke: boolean;
  called: boolean;
  /** The last blocks of the kinds that a proof may belong to. */
  last: { call?: Place; text?: Place };
}
interface Place {
  blocks: Block[];
  at: number;
}

function gathering(role: Gathering["role"], pieces: readonly Piece[]): Gathering {
  const now: Gathering = {
    role,
    pieces: [],
    phase: undefined,
    spoke: false,
    called: false,
    last: {},
  };
  for (const piece of pieces) gather(now, piece);
  return now;
}

function gather(now: Gathering, piece: Piece): void {
  now.pieces.push(piece);
  now.spoke ||= kindOf(object(piece.item)!) === "message";
  for (const [at, { type }] of piece.blocks.entries()) {
    now.called ||= type === "call";
    if (type === "call" || type === "text") now.last[type] = { blocks: piece.blocks, at };
  }
}

export function conversation(input: Opt<Json>, instructions: Opt<string>): Conversation {
  const items: readonly Json[] =
    typeof input === "string" ? [{ role: "user", content: input }] : list(input);
  const lead: Json[] = [];
  const head: Block[] = instructions === undefined ? [] : [{ type: "text", text: instructions }];
  let i = 0;
  for (; i < items.length; i++) {
    const item = object(items[i]);
    if (!item || kindOf(item) !== "message" || !isAbove(item["role"])) break;
    const blocks = blocksOf(item["content"], `input[${i}].content`);
    // What is not text cannot stand before the first turn.
    if (blocks.some((b) => b.type !== "text")) break;
    for (const block of blocks) head.push(block);
    lead.push(item);
  }
  return {
    instructions: came(head, { instructions, items: lead }),
    turns: turnsOf(items.slice(i), i),
  };
}

const isAbove = (role: unknown): boolean => role === "system" || role === "developer";

/** The easy form of a message has no type, and a reference may have nothing but its id. */
export const kindOf = (item: JsonObject): string =>
  text(item["type"]) ??
  (item["role"] !== undefined ? "message" : item["id"] !== undefined ? "item_reference" : "");

function turnsOf(items: readonly Json[], offset: number): Turn[] {
  const turns: Turn[] = [];
  let now: Gathering | undefined;
  const shut = () => {
    if (now)
      turns.push(
        came(
          present({
            role: now.role,
            blocks: now.pieces.flatMap((p) => p.blocks),
            phase: now.phase,
          }),
          now.pieces.map((p) => p.item),
        ),
      );
    now = undefined;
  };
  const put = (role: Gathering["role"], piece: Piece) => {
    if (now?.role !== role) {
      shut();
      now = gathering(role, []);
    }
    gather(now!, piece);
  };
  items.forEach((raw, n) => {
    const at = `input[${offset + n}]`;
    const item = object(raw) ?? malformed(at, "must be an object");
    const kind = kindOf(item);
    switch (kind) {
      case "message": {
        const blocks = blocksOf(item["content"], `${at}.content`);
        const role = text(item["role"]);
        if (role === "assistant") {
          // One that has spoken and called nobody: a further message begins another step.
          if (now?.role === "assistant" && now.spoke && !now.called) now = broken(now, shut);
          put("assistant", { item, blocks });
          now!.phase ??= text(item["phase"]);
          return;
        }
        if (role !== "user" && !isAbove(role))
          malformed(`${at}.role`, "must be user, assistant, system or developer");
        shut();
        turns.push(came({ role: role as Turn["role"], blocks }, [item]));
        return;
      }
      case "reasoning":
        return reasoning(item, (piece) => put("assistant", piece), now);
      case "function_call":
      case "custom_tool_call": {
        const tool = kind === "function_call" ? "function" : "custom";
        const key = tool === "function" ? "arguments" : "input";
        const block: Block = {
          type: "call",
          id: need(item, "call_id", at),
          name: flatName(text(item["namespace"]), need(item, "name", at)),
          tool,
          args: need(item, key, at),
        };
        return put("assistant", { item, blocks: [block] });
      }
      case "function_call_output":
      case "custom_tool_call_output": {
        const output = item["output"];
        const blocks = object(output)
          ? [{ type: "text" as const, text: JSON.stringify(output) }]
          : blocksOf(output, `${at}.output`);
        const callId = need(item, "call_id", at);
        return put("tool", {
          item,
          blocks: [{ type: "result", callId, blocks, isError: false }],
        });
      }
      case "item_reference":
        // Nobody but its upstream knows what it stands for: a part of what was said that cannot be said elsewhere.
        shut();
        turns.push(came({ role: "user", blocks: [unsayable({ ...item, type: kind })] }, [item]));
        return;
      default: {
        if (kind === "") malformed(`${at}.type`, "is missing");
        // Hosted tools, and whatever is newer than us: what answers a call stands on the tool's side.
        const role = /_(?:output|response)$/.test(kind) ? "tool" : "assistant";
        return put(role, { item, blocks: [{ type: "opaque", origin: ORIGIN, raw: item }] });
      }
    }
  });
  shut();
  return turns;
}

/** The type under which a stored prompt stands among the turns; on the wire it has a field of its own. */
export const STORED = "stored_prompt";

/** What other protocols must refuse, because the answer depends on it. */
export const unsayable = (raw: JsonObject): Block => ({ type: "opaque", origin: ORIGIN, raw });

/** Ends a step before its next message; reasoning that stands last belongs to what follows it. */
function broken(now: Gathering, shut: () => void): Gathering | undefined {
  const from = 1 + now.pieces.findLastIndex((p) => kindOf(object(p.item)!) !== "reasoning");
  const moved = now.pieces.splice(from);
  shut();
  return moved.length > 0 ? gathering("assistant", moved) : undefined;
}

function reasoning(
  item: JsonObject,
  put: (piece: Piece) => void,
  now: Gathering | undefined,
): void {
  const encrypted = text(item["encrypted_content"]);
  const sealed = encrypted === undefined ? undefined : unseal(encrypted);
  if (sealed?.of) {
    if (now) attach(now, sealed);
    return put({ item, blocks: [] });
  }
  const summary = list(item["summary"]).flatMap((s) => text(object(s)?.["text"]) ?? []);
  const said = list(item["content"]).flatMap((c) => text(object(c)?.["text"]) ?? []);
  const proof: Proof | undefined =
    sealed || encrypted === undefined
      ? sealed?.proof
      : { origin: ORIGIN, kind: "encrypted", data: encrypted };
  const block: Block = present({
    type: "reasoning",
    // What was sealed is what was signed: it wins over what a client may have wrapped anew.
    ...(sealed?.text !== undefined
      ? sealed.summary
        ? { summary: sealed.text === "" ? [] : [sealed.text] }
        : { text: sealed.text }
      : { summary, text: said.length > 0 ? said.join("\n\n") : undefined }),
    proof,
  });
  put({ item, blocks: [block] });
}

/** Gives a proof back to the block that it was taken from: the last one of its kind. */
function attach(now: Gathering, { proof, of }: SealedProof): void {
  const place = now.last[of!];
  if (place) place.blocks[place.at] = present({ ...place.blocks[place.at]!, proof });
}

const need = (item: JsonObject, key: string, at: string): string =>
  text(item[key]) ?? malformed(`${at}.${key}`, "must be a string");

const malformed = (at: string, what: string): never =>
  fail("invalid", `${at} ${what}.`, { param: at, code: "invalid_type" });
