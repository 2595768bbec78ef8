import { fail } from "./error.ts";
import type { ModelResponse, ModelEvent, OpenBlock } from "./event.ts";
import type { Block } from "./request.ts";

/** Returns the events of a response, block by block. `collectResponse` is the inverse. */
export function* responseToEvents(answer: ModelResponse): Generator<ModelEvent> {
  yield { type: "start", id: answer.id };
  for (const [index, block] of answer.blocks.entries()) yield* blockToEvents(index, block);
  for (const [index, item] of (answer.items ?? []).entries()) yield { type: "item", index, item };
  yield { type: "usage", usage: answer.usage };
  yield answer.finish;
}

function* blockToEvents(index: number, block: Block): Generator<ModelEvent> {
  yield { type: "open", index, block: toOpenBlock(block) };
  const text = textOf(block);
  const logprobs = "logprobs" in block ? block.logprobs : undefined;
  if (text !== "" || logprobs) yield { type: "delta", index, text, logprobs };
  if (block.type === "image" || block.type === "audio")
    yield { type: "media", index, media: block.media, note: block.note };
  if (block.type === "text")
    for (const citation of block.citations ?? []) yield { type: "cite", index, citation };
  if (block.proof) yield { type: "proof", index, proof: block.proof };
  yield { type: "close", index };
}

function toOpenBlock(block: Block): OpenBlock {
  switch (block.type) {
    case "reasoning":
      return { type: "reasoning", summary: block.summary !== undefined };
    case "opaque":
      return { type: "opaque", origin: block.origin, raw: block.raw };
    case "call":
      return { type: "call", id: block.id, name: block.name, tool: block.tool };
    case "text":
    case "refusal":
    case "image":
    case "audio":
      return { type: block.type };
    default:
      return fail("internal", `A response cannot contain a block of type ${block.type}.`);
  }
}

function textOf(block: Block): string {
  switch (block.type) {
    case "text":
    case "refusal":
      return block.text;
    case "call":
      return block.args;
    case "reasoning":
      return block.text ?? (block.summary ?? []).join("\n\n");
    case "opaque":
      return block.text ?? "";
    default:
      return "";
  }
}
