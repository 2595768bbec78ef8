// Messages as turns. Every turn remembers the message it was read from, so that this wire's own client half can say an
// untouched one word for word.
import type { Block, Json, JsonObject, Opt, Turn } from "../../../plugin/index.ts";
import { list, object, present, text } from "../../json.ts";
import { came, argsOf, digest, ID } from "../words.ts";
import { blocksOf, malformed } from "./content.ts";
import { callProof, reasoningBlocks, textProof } from "./reasoning.ts";

interface Conversation {
  instructions: readonly Block[];
  turns: readonly Turn[];
}

/** What the first of a message's instruction blocks remembers. */
export interface InstructionFrom {
  message: JsonObject;
  blocks: number;
}

const above = (role: unknown): boolean => role === "system" || role === "developer";

export function conversation(messages: readonly Json[]): Conversation {
  const instructions: Block[] = [];
  const turns: Turn[] = [];
  const legacy: Legacy = { last: undefined };
  messages.forEach((raw, i) => {
    const at = `messages[${i}]`;
    const message = object(raw);
    if (!message) return malformed(at, "must be an object");
    const role = text(message["role"]);
    if (above(role) && turns.length === 0) {
      const blocks = blocksOf(message["content"], `${at}.content`);
      if (blocks.length > 0)
        came(blocks[0]!, { message, blocks: blocks.length } satisfies InstructionFrom);
      for (const block of blocks) instructions.push(block);
      return;
    }
    turns.push(came(turnOf(message, role, at, legacy), message));
  });
  return { instructions, turns };
}

/** Calls of the oldest form have no id; what answers one names its function. */
interface Legacy {
  last: { id: string; name: string } | undefined;
}

function turnOf(message: JsonObject, role: Opt<string>, at: string, legacy: Legacy): Turn {
  const name = text(message["name"]);
  const content = () => blocksOf(message["content"], `${at}.content`);
  switch (role) {
    case "system":
    case "developer":
    case "user":
      return present({ role: role as Turn["role"], blocks: content(), name });
    case "tool":
    case "function": {
      const callId =
        text(message["tool_call_id"]) ??
        (role === "function" ? legacy.last?.id : undefined) ??
        malformed(`${at}.tool_call_id`, "must be a string");
      const block = present({
        type: "result" as const,
        callId,
        name,
        blocks: content(),
        isError: false,
      });
      return { role: "tool", blocks: [block] };
    }
    case "assistant":
      return present({ role: "assistant" as const, blocks: saidBy(message, at, legacy), name });
    default:
      return malformed(`${at}.role`, "must be system, developer, user, assistant or tool");
  }
}

function saidBy(message: JsonObject, at: string, legacy: Legacy): Block[] {
  const said = blocksOf(message["content"], `${at}.content`);
  const inContent = said.filter((b) => b.type === "reasoning");
  const blocks: Block[] = [
    ...(inContent.length > 0 ? inContent : reasoningBlocks(message)),
    ...said.filter((b) => b.type !== "reasoning"),
  ];
  const refusal = text(message["refusal"]);
  if (refusal) blocks.push({ type: "refusal", text: refusal });
  const spoken = blocks.findLastIndex((b) => b.type === "text");
  const last = blocks[spoken];
  if (last?.type === "text") {
    const citations = list(message["annotations"]);
    const proof = textProof(message);
    blocks[spoken] = present({
      ...last,
      citations: citations.length > 0 ? citations : undefined,
      proof,
    });
  }
  for (const image of list(message["images"]))
    blocks.push({ type: "opaque", origin: ID, raw: { images: [image] } });
  list(message["tool_calls"]).forEach((raw, i) =>
    blocks.push(callOf(raw, `${at}.tool_calls[${i}]`)),
  );
  const old = object(message["function_call"]);
  if (old) {
    const name = text(old["name"]) ?? malformed(`${at}.function_call.name`, "must be a string");
    const id = `call_${digest(`${at}/${name}`, 24)}`;
    legacy.last = { id, name };
    blocks.push({ type: "call", id, name, tool: "function", args: argsOf(old["arguments"]) });
  }
  if (object(message["audio"]))
    blocks.push({ type: "opaque", origin: ID, raw: { audio: message["audio"]! } });
  return blocks;
}

function callOf(raw: Json, at: string): Block {
  const call = object(raw);
  const id = text(call?.["id"]);
  if (!call || id === undefined) return malformed(`${at}.id`, "must be a string");
  const custom = object(call["custom"]);
  const fn = custom ?? object(call["function"]);
  const name = text(fn?.["name"]);
  if (!fn || name === undefined) {
    if (text(call["type"]) !== "function" && text(call["type"]) !== undefined)
      return { type: "opaque", origin: ID, raw: { tool_calls: [call] } };
    return malformed(`${at}.function.name`, "must be a string");
  }
  return present({
    type: "call" as const,
    id,
    name,
    tool: custom ? ("custom" as const) : ("function" as const),
    args: argsOf(custom ? custom["input"] : fn["arguments"]),
    proof: callProof(call),
  });
}
