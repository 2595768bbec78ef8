// Converts instructions and turns into messages. A turn that is unchanged since this protocol's
// server half decoded it is sent verbatim.
import { fail } from "../../../model/error.ts";
import type { Block, ChatRequest, Json, JsonObject, Turn } from "../../../plugin/index.ts";
import type { InstructionSource } from "../server/turns.ts";
import { contentOf, withName, partOf, type ContentContext, type ToolNames } from "./content.ts";
import { sourceOf, proofContent, ID } from "../constants.ts";
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import { asList, asObject, omitUndefined } from "../../json-values.ts";

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

// Converts an assistant turn into one message. In this protocol, text comes first and tool calls
// after it.

function assistantMessage(
  turn: Turn,
  at: string,
  to: ContentContext,
  name: ToolNames["name"],
): Json[] {
  const texts: Block[] = [];
  const calls: JsonObject[] = [];
  const more: Record<string, Json> = {};
  let refusal = "";
  let late = false;
  for (const block of turn.blocks) {
    switch (block.type) {
      case "text":
        late ||= calls.length > 0;
        if (block.citations?.length) to.lose("citations", "dropped");
        if (block.proof?.origin === ID && block.proof.kind === "extra_content")
          more["extra_content"] = proofContent(block.proof) ?? {};
        texts.push(block);
        break;
      case "refusal":
        refusal += block.text;
        break;
      case "call":
        calls.push(callOf(block, to, name));
        break;
      case "reasoning":
        break;
      case "opaque": {
        const raw = asObject(block.raw);
        if (block.origin === ID && raw) join(more, raw);
        else {
          to.lose(`${block.origin} content`, "dropped", "foreign_content");
          if (block.text !== undefined) texts.push({ type: "text", text: block.text });
        }
        break;
      }
      case "image":
      case "audio":
      case "video":
      case "document":
        fail(
          "unsupported",
          `This model's protocol does not support ${block.type} in assistant messages.`,
          {
            code: "unsupported_content",
            param: at,
          },
        );
        break;
      case "result":
        fail("invalid", `${at}: a tool result is not allowed in an assistant message.`, {
          param: at,
        });
    }
  }
  if (late) to.lose("messages", "approximated", "text_before_calls");
  const rawContent = assistantContent(texts, to);
  if (
    rawContent === null &&
    calls.length === 0 &&
    refusal === "" &&
    Object.keys(more).length === 0 &&
    !hasReasoning(turn)
  )
    return [];
  const wholly = [...calls, ...((more["tool_calls"] as JsonObject[] | undefined) ?? [])];
  return [
    withName(
      turn,
      omitUndefined({
        role: "assistant",
        ...reasoningOf(turn.blocks, to),
        content: rawContent,
        refusal: refusal === "" ? undefined : refusal,
        ...more,
        tool_calls: wholly.length > 0 ? wholly : undefined,
      }),
    ),
  ];
}

const hasReasoning = (turn: Turn): boolean => turn.blocks.some((b) => b.type === "reasoning");

/**
 * Merges the message fields of several opaque blocks. Lists are concatenated. For other fields, the
 * last value is used.
 */
function join(into: Record<string, Json>, raw: JsonObject): void {
  for (const key in raw) {
    const before = Object.hasOwn(into, key) ? into[key] : undefined;
    const now = raw[key]!;
    if (!Array.isArray(now)) setOwnProperty(into, key, now);
    else if (!Array.isArray(before)) setOwnProperty(into, key, [...now]);
    else for (const one of now as readonly Json[]) before.push(one);
  }
}

/**
 * Returns the text as one string, because many servers do not accept a list as assistant content.
 * Parts are used only to carry cache marks.
 */
function assistantContent(texts: readonly Block[], to: ContentContext): Json {
  if (texts.length === 0) return null;
  if (to.traits.cacheMarks && texts.some((b) => b.cache !== undefined))
    return texts.map((b, i) => partOf(b, `content[${i}]`, to));
  if (texts.some((b) => b.cache !== undefined)) to.lose("cache_control", "dropped");
  return texts.map((b) => (b.type === "text" ? b.text : "")).join("");
}

function callOf(
  block: Extract<Block, { type: "call" }>,
  to: ContentContext,
  name: ToolNames["name"],
): JsonObject {
  const { id, args, proof } = block;
  const extra = proof && extraOf(proof);
  if (block.tool === "custom" && to.traits.customTools !== false)
    return omitUndefined({
      id,
      type: "custom",
      custom: { name: name(block.name), input: args },
      ...extra,
    });
  const argumentsText =
    block.tool === "custom" ? JSON.stringify({ input: args }) : args === "" ? "{}" : args;
  return omitUndefined({
    id,
    type: "function",
    function: { name: name(block.name), arguments: argumentsText },
    ...extra,
  });
}

/** Returns a signature only for providers of the protocol that issued it. */
const extraOf = (proof: NonNullable<Block["proof"]>): JsonObject | undefined =>
  proof.origin === ID && proof.kind === "extra_content"
    ? { extra_content: proofContent(proof) }
    : undefined;

/**
 * Returns earlier reasoning if this backend accepts it. Reasoning that another provider signed is
 * not sent.
 */
function reasoningOf(blocks: readonly Block[], to: ContentContext): JsonObject | undefined {
  const echo = to.traits.reasoning?.echo;
  if (echo === undefined || echo === "never") return undefined;
  let plain = "";
  const details: Json[] = [];
  for (const block of blocks) {
    if (block.type !== "reasoning") continue;
    const { proof } = block;
    if (proof && proof.origin !== ID) continue;
    plain += block.text ?? block.summary?.join("\n\n") ?? "";
    if (proof?.kind === "reasoning_details")
      for (const detail of asList(proofContent(proof))) details.push(detail);
  }
  if (echo === "reasoning_details" && details.length > 0)
    return omitUndefined({
      reasoning: plain === "" ? undefined : plain,
      reasoning_details: details,
    });
  return plain === "" ? undefined : { reasoning_content: plain };
}
