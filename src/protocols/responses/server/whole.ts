// Server half: an answer that is one JSON text.
import type { AnswerContext, Json, JsonObject, ModelAnswer, Opt } from "../../../plugin/index.ts";
import type { ResponsesDialect } from "../dialect.ts";
import { responseObject } from "./object.ts";
import { ResponseWriter, type EventSink } from "./response-writer.ts";

const SILENT: EventSink = { say() {}, delta() {}, tell() {} };

/** The same object that the stream ends with, so that both lanes of a client's code read the same. */
export function whole(
  answer: ModelAnswer,
  to: AnswerContext,
  dialect: ResponsesDialect,
): JsonObject {
  const encoder = new ResponseWriter(to, dialect, SILENT);
  encoder.event({ type: "start" });
  answer.blocks.forEach((block, index) => retell(block, index, encoder));
  if (Object.keys(answer.usage).length > 0) encoder.event({ type: "usage", usage: answer.usage });
  encoder.event(answer.finish);
  return responseObject(to).whole(encoder.last);
}

/** A block as the events that spell it. */
function retell(block: ModelAnswer["blocks"][number], index: number, to: ResponseWriter): void {
  const delta = (text: Opt<string>, logprobs?: Opt<readonly Json[]>) => {
    if (text !== undefined && text !== "") to.event({ type: "delta", index, text, logprobs });
  };
  switch (block.type) {
    case "text":
    case "refusal":
      to.event({ type: "open", index, block: { type: block.type } });
      delta(block.text, block.type === "text" ? block.logprobs : undefined);
      if (block.type === "text")
        for (const citation of block.citations ?? []) to.event({ type: "cite", index, citation });
      break;
    case "reasoning": {
      const digest = block.text === undefined && block.summary !== undefined;
      to.event({ type: "open", index, block: { type: "reasoning", summary: digest } });
      delta(block.text ?? block.summary?.join("\n\n"));
      break;
    }
    case "call":
      to.event({ type: "open", index, block: { ...block, type: "call" } });
      delta(block.args);
      break;
    case "image":
    case "audio":
      to.event({ type: "open", index, block: { type: block.type } });
      to.event({ type: "media", index, media: block.media, note: block.note });
      break;
    case "opaque":
      to.event({ type: "open", index, block });
      delta(block.text);
      break;
    default:
      return;
  }
  if (block.proof) to.event({ type: "proof", index, proof: block.proof });
  to.event({ type: "close", index });
}
