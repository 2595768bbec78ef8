// Converts instructions and turns into messages. A turn that is unchanged since this protocol's
// server half decoded it is sent verbatim.
import { fail } from "../../../model/error.ts";
import type { Block, ChatRequest, Json, JsonObject, Turn } from "../../../plugin/index.ts";
import type { InstructionSource } from "../server/turns.ts";
import { assistantMessage } from "./assistant.ts";
import { contentOf, withName, partOf, type ContentContext, type ToolNames } from "./content.ts";
import { sourceOf } from "../constants.ts";

/** Maximum length of a tool name in this protocol. */
export const MAX_TOOL_NAME = 64;

export function messagesOf(r: ChatRequest, to: ContentContext, { name }: ToolNames): Json[] {
  const messages: Json[] = instructionsOf(r.instructions, to);
  r.turns.forEach((turn, i) => {
    const from = sourceOf<JsonObject>(turn);
    if (from && !(to.traits.customTools === false && hasFreeform(turn))) messages.push(from);
    else for (const one of turnToMessages(turn, `messages[${i}]`, to, name)) messages.push(one);
  });
  return messages;
}

const hasFreeform = (turn: Turn): boolean =>
  turn.blocks.some((b) => b.type === "call" && b.tool === "custom");

/** Prefix of telemetry that a coding client sends in place of a system prompt. */
const BILLING_HEADER = "x-anthropic-billing-header:";

function instructionsOf(blocks: readonly Block[], to: ContentContext): Json[] {
  const messages: Json[] = [];
  let loose: Block[] = [];
  const flush = () => {
    if (loose.length > 0)
      messages.push({
        role: "system",
        content: contentOf(textOnly(loose), "messages[0].content", to),
      });
    loose = [];
  };
  for (let i = 0; i < blocks.length; i++) {
    const from = sourceOf<InstructionSource>(blocks[i]!);
    if (from) {
      flush();
      messages.push(from.message);
      i += from.blocks - 1;
      continue;
    }
    const block = blocks[i]!;
    if (!(block.type === "text" && block.text.startsWith(BILLING_HEADER))) loose.push(block);
  }
  flush();
  return messages;
}

function textOnly(blocks: readonly Block[]): readonly Block[] {
  if (blocks.some((b) => b.type !== "text"))
    fail("unsupported", "Instructions must be text for this model.", {
      code: "unsupported_content",
      param: "messages",
    });
  return blocks;
}

function turnToMessages(
  turn: Turn,
  at: string,
  to: ContentContext,
  name: ToolNames["name"],
): Json[] {
  if (turn.phase !== undefined) to.lose("phase", "dropped");
  switch (turn.role) {
    case "system":
    case "developer":
      return [
        withName(turn, { role: turn.role, content: contentOf(textOnly(turn.blocks), at, to) }),
      ];
    case "assistant":
      return assistantMessage(turn, at, to, name);
    case "user":
    case "tool":
      return results(turn, at, to);
  }
}

/**
 * Converts a turn with tool results. Each tool result becomes a message. After them, one user
 * message contains the user's content and images from tool results.
 */
function results(turn: Turn, at: string, to: ContentContext): Json[] {
  const messages: Json[] = [];
  const userBlocks: Block[] = [];
  const shown: JsonObject[] = [];
  for (const block of turn.blocks) {
    if (block.type !== "result") {
      userBlocks.push(block);
      continue;
    }
    if (block.isError) to.lose("is_error", "dropped");
    const inside = block.blocks.filter((b) => fitsToolMessage(b, to));
    const moved = block.blocks.filter((b) => !fitsToolMessage(b, to));
    if (moved.length > 0) {
      to.lose("tool_result.content", "approximated", "tool_image_moved");
      shown.push({ type: "text", text: `Output of the tool call ${block.callId}:` });
      for (const b of moved) shown.push(partOf(b, at, to));
    }
    const content = contentOf(inside, `${at}.content`, to, "\n");
    messages.push({
      role: "tool",
      tool_call_id: block.callId,
      content: inside.length === 0 && moved.length > 0 ? "(shown in the next message)" : content,
    });
  }
  if (shown.length > 0) {
    const parts = userBlocks.map((b, i) => partOf(b, `${at}.content[${i}]`, to));
    messages.push(withName(turn, { role: "user", content: [...shown, ...parts] }));
  } else if (userBlocks.length > 0 || messages.length === 0) {
    messages.push(
      withName(turn, { role: "user", content: contentOf(userBlocks, `${at}.content`, to) }),
    );
  }
  return messages;
}

/** Whether a block can be part of a tool message. */
const fitsToolMessage = ({ type }: Block, to: ContentContext): boolean =>
  type === "text" || type === "opaque" || (type === "image" && to.traits.toolImages === true);
