// Decodes the input, a flat list of items, into a conversation: the instructions before the first
// turn, and the turns.
import type { Block, Json, Opt, Turn } from "../../../plugin/index.ts";
import { blocksOf } from "../parts.ts";
import { asList, asObject } from "../../json-values.ts";
import { rememberSource } from "../constants.ts";
import { isInstructionRole, itemTypeOf } from "../item-types.ts";
import { turnsOf } from "./turns.ts";

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
