// Client half: encodes turns as input items.
import { fail } from "../../../model/error.ts";
import type { Block, Json, JsonObject, Turn } from "../../../plugin/index.ts";
import { inputPart, outputPart, type PartContext } from "../parts.ts";
import { STORED_PROMPT, ORIGIN, callId, sourceOf, digestText } from "../constants.ts";
import type { createCallNamer } from "../tools.ts";
import { asObject, omitUndefined } from "../../json-values.ts";
import { toBase64 } from "../../media-url.ts";

type CallNamer = ReturnType<typeof createCallNamer>;
type Of<T extends Block["type"]> = Extract<Block, { type: T }>;

export function itemsTo(turns: readonly Turn[], spoken: CallNamer, of: PartContext): Json[] {
  const items: Json[] = [];
  const custom = new Set<string>();
  for (const turn of turns) {
    for (const block of turn.blocks)
      if (block.type === "call" && block.tool === "custom") custom.add(block.id);
    // Unchanged turns are sent back verbatim.
    const own = sourceOf<Json[]>(turn);
    if (own) for (const item of own) items.push(item);
    else if (turn.role === "assistant") addAssistantItems(turn, items, spoken, of);
    else addUserItems(turn, items, custom, of);
  }
  return items;
}

/**
 * Prefix of a line that one client adds to its system prompt for its own vendor. For other
 * providers it only changes the prefix of every request.
 */
const BILLING_HEADER = "x-anthropic-billing-header:";

/**
 * Encodes the instructions. The result is one string, unless the instructions have more than text
 * or are the whole request.
 */
export function toInstructions(
  instructions: readonly Block[],
  alone: boolean,
  of: PartContext,
): { instructions?: string; items: Json[] } {
  const own = sourceOf<{ instructions?: string; items: Json[] }>(instructions);
  if (own) return own;
  instructions = instructions.filter(
    (b) => b.type !== "text" || !b.text.startsWith(BILLING_HEADER),
  );
  if (instructions.length === 0) return { items: [] };
  const [only, ...more] = instructions;
  if (!alone && only!.type === "text" && more.length === 0 && only!.cache === undefined)
    return { instructions: only!.text, items: [] };
  const content = instructions.map((block) =>
    block.type === "text"
      ? inputPart(block, of)!
      : fail("unsupported", `Instructions must be text, not ${block.type}.`, {
          param: "instructions",
          code: "unsupported_instructions",
        }),
  );
  return { items: [{ type: "message", role: "developer", content }] };
}

function addAssistantItems(turn: Turn, items: Json[], spoken: CallNamer, of: PartContext): void {
  if (turn.name !== undefined) of.reportLoss("name", "dropped");
  let content: JsonObject[] = [];
  const speak = () => {
    if (content.length > 0)
      items.push(omitUndefined({ type: "message", role: "assistant", content, phase: turn.phase }));
    content = [];
  };
  for (const block of turn.blocks) {
    if (block.type === "text" || block.type === "refusal") {
      content.push(outputPart(block, of));
      continue;
    }
    speak();
    const item = assistantItem(block, spoken, of);
    if (item) items.push(item);
  }
  speak();
}

function assistantItem(
  block: Exclude<Block, Of<"text" | "refusal">>,
  spoken: CallNamer,
  of: PartContext,
): JsonObject | undefined {
  switch (block.type) {
    case "reasoning":
      return reasoningItem(block);
    case "call":
      return block.tool === "custom"
        ? {
            type: "custom_tool_call",
            call_id: callId(block.id),
            ...spoken(block.name),
            input: block.args,
          }
        : {
            type: "function_call",
            call_id: callId(block.id),
            ...spoken(block.name),
            arguments: block.args || "{}",
          };
    case "image": {
      const result = toBase64(block.media);
      if (result === undefined)
        return fail("unsupported", "An image from the assistant must be sent as bytes.", {
          code: "unsupported_image",
        });
      const id = `ig_${digestText(result)}`;
      return { type: "image_generation_call", id, status: "completed", result };
    }
    case "opaque":
      if (block.origin === ORIGIN) return block.raw as JsonObject;
      of.reportLoss(`${block.origin} items`, "dropped", "unknown_content");
      return undefined;
    default:
      return fail("unsupported", `${block.type} from the assistant cannot be sent to this model.`, {
        code: `unsupported_${block.type}`,
      });
  }
}

/**
 * Encodes reasoning. A proof is sent only to its origin, and reasoning without a proof is useless
 * to this provider.
 */
function reasoningItem({ proof, summary }: Of<"reasoning">): JsonObject | undefined {
  if (proof?.origin !== ORIGIN) return undefined;
  return {
    type: "reasoning",
    summary: (summary ?? []).map((text) => ({ type: "summary_text", text })),
    encrypted_content: proof.data,
  };
}

function addUserItems(
  turn: Turn,
  items: Json[],
  custom: ReadonlySet<string>,
  of: PartContext,
): void {
  if (turn.name !== undefined) of.reportLoss("name", "dropped");
  let content: JsonObject[] = [];
  const role = turn.role === "tool" ? "user" : turn.role;
  const speak = () => {
    if (content.length > 0) items.push({ type: "message", role, content });
    content = [];
  };
  for (const block of turn.blocks) {
    if (block.type === "result") {
      speak();
      items.push(resultTo(block, custom, of));
      continue;
    }
    const own =
      block.type === "opaque" && block.origin === ORIGIN ? asObject(block.raw) : undefined;
    if (own?.["type"] === STORED_PROMPT) continue;
    // In a tool turn, an opaque block is an item. In other turns it is a content part.
    if (own && (turn.role === "tool" || own["type"] === "item_reference")) {
      speak();
      items.push(own);
      continue;
    }
    if (role !== "user" && block.type !== "text")
      fail("unsupported", `A ${role} message must be text, not ${block.type}.`, {
        code: "unsupported_instructions",
      });
    const part = inputPart(block, of);
    if (part) content.push(part);
  }
  if (turn.blocks.length === 0) items.push({ type: "message", role, content: [] });
  speak();
}

function resultTo(block: Of<"result">, custom: ReadonlySet<string>, of: PartContext): JsonObject {
  if (block.isError) of.reportLoss("is_error", "dropped");
  if (block.blocks.some((b) => b.type === "audio"))
    fail("unsupported", "This model does not support audio in tool results.", {
      code: "unsupported_audio",
    });
  const [only, ...more] = block.blocks;
  const plain = only === undefined ? "" : only.type === "text" && !only.cache ? only.text : null;
  const output: Json =
    plain !== null && more.length === 0
      ? plain
      : block.blocks.flatMap((b): JsonObject[] => {
          const part = inputPart(b, of);
          return part ? [part] : [];
        });
  return {
    type: custom.has(block.callId) ? "custom_tool_call_output" : "function_call_output",
    call_id: callId(block.callId),
    output,
  };
}
