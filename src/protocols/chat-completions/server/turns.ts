// Decodes messages into turns. Every turn keeps the message that it was decoded from, so that this
// protocol's client half can send an unchanged turn verbatim.
import type { Block, Json, JsonObject, Opt, Turn } from "../../../plugin/index.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { rememberSource, argumentsText, digest, ID } from "../constants.ts";
import { blocksOf, failMalformed } from "./content.ts";
import { callProof, reasoningBlocks, textProof } from "./reasoning.ts";

interface Conversation {
  instructions: readonly Block[];
  turns: readonly Turn[];
}

/** Source of an instruction message, which is attached to its first block. */
export interface InstructionSource {
  message: JsonObject;
  blocks: number;
}

const isInstructionRole = (role: unknown): boolean => role === "system" || role === "developer";

export function conversation(messages: readonly Json[]): Conversation {
  const instructions: Block[] = [];
  const turns: Turn[] = [];
  const legacy: LegacyCalls = { last: undefined };
  messages.forEach((raw, i) => {
    const at = `messages[${i}]`;
    const message = asObject(raw);
    if (!message) return failMalformed(at, "must be an object");
    const role = asText(message["role"]);
    if (isInstructionRole(role) && turns.length === 0) {
      const blocks = blocksOf(message["content"], `${at}.content`);
      if (blocks.length > 0)
        rememberSource(blocks[0]!, { message, blocks: blocks.length } satisfies InstructionSource);
      for (const block of blocks) instructions.push(block);
      return;
    }
    turns.push(rememberSource(turnOf(message, role, at, legacy), message));
  });
  return { instructions, turns };
}

/** The last call in the legacy form. Such calls have no ID, and their results name the function. */
interface LegacyCalls {
  last: { id: string; name: string } | undefined;
}

function turnOf(message: JsonObject, role: Opt<string>, at: string, legacy: LegacyCalls): Turn {
  const name = asText(message["name"]);
  const content = () => blocksOf(message["content"], `${at}.content`);
  switch (role) {
    case "system":
    case "developer":
    case "user":
      return omitUndefined({ role: role as Turn["role"], blocks: content(), name });
    case "tool":
    case "function": {
      const callId =
        asText(message["tool_call_id"]) ??
        (role === "function" ? legacy.last?.id : undefined) ??
        failMalformed(`${at}.tool_call_id`, "must be a string");
      const block = omitUndefined({
        type: "result" as const,
        callId,
        name,
        blocks: content(),
        isError: false,
      });
      return { role: "tool", blocks: [block] };
    }
    case "assistant":
      return omitUndefined({
        role: "assistant" as const,
        blocks: messageBlocks(message, at, legacy),
        name,
      });
    default:
      return failMalformed(`${at}.role`, "must be system, developer, user, assistant or tool");
  }
}

function messageBlocks(message: JsonObject, at: string, legacy: LegacyCalls): Block[] {
  const contentBlocks = blocksOf(message["content"], `${at}.content`);
  const inContent = contentBlocks.filter((b) => b.type === "reasoning");
  const blocks: Block[] = [
    ...(inContent.length > 0 ? inContent : reasoningBlocks(message)),
    ...contentBlocks.filter((b) => b.type !== "reasoning"),
  ];
  const refusal = asText(message["refusal"]);
  if (refusal) blocks.push({ type: "refusal", text: refusal });
  const spoken = blocks.findLastIndex((b) => b.type === "text");
  const last = blocks[spoken];
  if (last?.type === "text") {
    const citations = asList(message["annotations"]);
    const proof = textProof(message);
    blocks[spoken] = omitUndefined({
      ...last,
      citations: citations.length > 0 ? citations : undefined,
      proof,
    });
  }
  for (const image of asList(message["images"]))
    blocks.push({ type: "opaque", origin: ID, raw: { images: [image] } });
  asList(message["tool_calls"]).forEach((raw, i) =>
    blocks.push(callOf(raw, `${at}.tool_calls[${i}]`)),
  );
  const old = asObject(message["function_call"]);
  if (old) {
    const name =
      asText(old["name"]) ?? failMalformed(`${at}.function_call.name`, "must be a string");
    const id = `call_${digest(`${at}/${name}`, 24)}`;
    legacy.last = { id, name };
    blocks.push({
      type: "call",
      id,
      name,
      tool: "function",
      args: argumentsText(old["arguments"]),
    });
  }
  if (asObject(message["audio"]))
    blocks.push({ type: "opaque", origin: ID, raw: { audio: message["audio"]! } });
  return blocks;
}

function callOf(raw: Json, at: string): Block {
  const call = asObject(raw);
  const id = asText(call?.["id"]);
  if (!call || id === undefined) return failMalformed(`${at}.id`, "must be a string");
  const custom = asObject(call["custom"]);
  const fn = custom ?? asObject(call["function"]);
  const name = asText(fn?.["name"]);
  if (!fn || name === undefined) {
    if (asText(call["type"]) !== "function" && asText(call["type"]) !== undefined)
      return { type: "opaque", origin: ID, raw: { tool_calls: [call] } };
    return failMalformed(`${at}.function.name`, "must be a string");
  }
  return omitUndefined({
    type: "call" as const,
    id,
    name,
    tool: custom ? ("custom" as const) : ("function" as const),
    args: argumentsText(custom ? custom["input"] : fn["arguments"]),
    proof: callProof(call),
  });
}
