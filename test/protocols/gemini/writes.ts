// An answer as Gemini writes it, from the API's documentation: parts of candidates, whole or one a chunk, thoughts marked,
// calls in one piece, the counts of all so far in every chunk, the end named in the last one.
import {
  inputTokens,
  type Block,
  type Finish,
  type JsonObject,
  type ModelAnswer,
  type ModelEvent,
  type Usage,
} from "tollgate/plugin";

const ENDS: { readonly [reason: string]: string } = {
  length: "MAX_TOKENS",
  context: "MAX_TOKENS",
  filtered: "SAFETY",
  refusal: "SAFETY",
  pause: "CONTINUATION",
};

export const endOf = ({ reason }: Pick<Finish, "reason">): string => ENDS[reason] ?? "STOP";

/** Zeros are left out. */
export function countsOf(u: Usage): JsonObject {
  const prompt = inputTokens(u);
  const thoughts = u.reasoning ?? 0;
  const said = (u.output ?? 0) - thoughts;
  return {
    ...(prompt > 0 && { promptTokenCount: prompt }),
    ...(u.cache_read && { cachedContentTokenCount: u.cache_read }),
    ...(said > 0 && { candidatesTokenCount: said }),
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    totalTokenCount: prompt + said + thoughts,
  };
}

/** What one piece of a block is as a part. */
function partOf(block: Block, words: string): JsonObject {
  switch (block.type) {
    case "reasoning":
      return { text: words, thought: true };
    case "call":
      return {
        functionCall: { id: block.id, name: block.name, args: JSON.parse(words || "{}") },
      };
    default:
      return { text: words };
  }
}

const present = (of: JsonObject): JsonObject => JSON.parse(JSON.stringify(of)) as JsonObject;

const wordsOf = (block: Block): string => {
  switch (block.type) {
    case "text":
    case "refusal":
      return block.text;
    case "reasoning":
      return block.text ?? block.summary?.join("") ?? "";
    case "call":
      return block.args;
    default:
      throw new Error(`This writer has no ${block.type}.`);
  }
};

const head = { modelVersion: "gemini-x", responseId: "up1" };

export function whole({ blocks, usage, finish }: ModelAnswer): JsonObject {
  const parts = blocks.map((block) => partOf(block, wordsOf(block)));
  return {
    candidates: [{ content: { role: "model", parts }, finishReason: endOf(finish), index: 0 }],
    usageMetadata: countsOf(usage),
    ...head,
  };
}

/** Blocks that were open together follow each other. */
export function streaming(write: (text: string) => void) {
  const blocks = new Map<number, { block: Block; pieces: string[] }>();
  let usage: Usage = {};
  const chunk = (candidate: JsonObject | undefined, counts: JsonObject) =>
    write(
      `data: ${JSON.stringify({
        ...(candidate && { candidates: [{ ...candidate, index: 0 }] }),
        usageMetadata: counts,
        ...head,
      })}\r\n\r\n`,
    );
  return {
    event(e: ModelEvent) {
      switch (e.type) {
        case "open":
          blocks.set(e.index, {
            block: { text: "", args: "", media: {}, ...e.block } as unknown as Block,
            pieces: [],
          });
          return;
        case "delta":
          blocks.get(e.index)!.pieces.push(e.text);
          return;
        case "usage":
          usage = e.usage;
          return;
        case "finish": {
          const { cachedContentTokenCount: cached, ...counts } = countsOf(usage);
          const { promptTokenCount } = counts;
          // What was cached is told once, in the first chunk.
          let early = present({ promptTokenCount, cachedContentTokenCount: cached });
          const say = (candidate: JsonObject, more: JsonObject) => {
            chunk(candidate, { ...more, ...early });
            early = present({ promptTokenCount });
          };
          for (const { block, pieces } of blocks.values())
            for (const words of block.type === "call" ? [pieces.join("")] : pieces)
              say({ content: { role: "model", parts: [partOf(block, words)] } }, {});
          say(
            { content: { role: "model", parts: [{ text: "" }] }, finishReason: endOf(e) },
            counts,
          );
        }
      }
    },
    fail() {},
  };
}
