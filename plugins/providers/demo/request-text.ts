// The text of a request, for models that read only text.
import type { Block, ChatRequest } from "tollgate/plugin";

/** Returns the text of a block. A block without text becomes its type in brackets. */
export function blockText(block: Block): string {
  switch (block.type) {
    case "text":
    case "refusal":
      return block.text;
    case "reasoning":
      return [block.text, ...(block.summary ?? [])].filter((t) => t !== undefined).join("\n");
    case "call":
      return `${block.name} ${block.args}`;
    case "result":
      return block.blocks.map(blockText).join("\n");
    case "opaque":
      return block.text ?? "";
    default:
      return `[${block.type}]`;
  }
}

/** Returns the last text of the user. */
export function lastUserText({ turns }: ChatRequest): string {
  const last = turns.findLast(
    ({ role, blocks }) => role === "user" && blocks.some((b) => b.type !== "result"),
  );
  return (last?.blocks ?? [])
    .filter((b) => b.type !== "result")
    .map(blockText)
    .join("\n");
}

/** Returns the tool results since the last assistant turn. */
export function pendingToolResults({
  turns,
}: ChatRequest): readonly Extract<Block, { type: "result" }>[] {
  const answered = turns.findLastIndex(({ role }) => role === "assistant");
  return turns
    .slice(answered + 1)
    .flatMap((turn) => turn.blocks.filter((b) => b.type === "result"));
}

/** Returns the number of input tokens: instructions, all turns, and tool declarations. */
export function countInputTokens({ instructions, turns, tools }: ChatRequest): number {
  const blocks = [...instructions, ...turns.flatMap((turn) => turn.blocks)];
  return (
    blocks.reduce((n, block) => n + (isWords(block) ? countTokens(blockText(block)) : 0), 0) +
    tools.reduce((n, tool) => n + countTokens(declared(tool)), 0)
  );
}

const isWords = (block: Block): boolean =>
  !["image", "audio", "video", "document"].includes(block.type);

const declared = ({ name, description, schema, raw }: ChatRequest["tools"][number]): string =>
  [name, description, schema && JSON.stringify(schema), raw && JSON.stringify(raw)]
    .filter((part) => part !== undefined)
    .join(" ");

// Token counting of the demo: a token is up to four consecutive letters or digits, or any other
// single visible character. This rule is easy to check by hand and close to real models' counts for
// English.

const TOKEN = /[\p{L}\p{N}]{1,4}|[^\s\p{L}\p{N}]/gu;

export const countTokens = (text: string): number => text.match(TOKEN)?.length ?? 0;

/**
 * Splits text into words with their leading whitespace. Joined, the words are the original text,
 * and their counts add up to the count of the text.
 */
export const splitWords = (text: string): readonly string[] => text.match(/\s*\S+|\s+$/g) ?? [];

/** Returns the longest prefix with at most `most` tokens. */
export function truncateToTokens(text: string, most: number): string {
  if (most <= 0) return "";
  let n = 0;
  for (const match of text.matchAll(TOKEN))
    if (++n === most) return text.slice(0, match.index + match[0].length);
  return text;
}
