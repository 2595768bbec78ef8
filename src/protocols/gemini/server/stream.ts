import type { Fault } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { wholeCharacters } from "../../characters.ts";
import { InTurn, type EventOfBlock } from "../../in-turn.ts";
import { BlockWriter } from "./block-writer.ts";
import { ChunkWriter } from "./chunk-writer.ts";
import { countsTo, ending } from "./content.ts";
import { faultBody } from "./fault.ts";

/**
 * A stream of chunks without names, each an answer of its own with the part that is new. The last one has the reason for the end
 * and the counts.
 */
export function stream(write: (text: string) => void, to: AnswerContext): Encoder {
  const page = new ChunkWriter(write, to);
  const blocks = new BlockWriter(page, to);
  const turns = new InTurn((e: EventOfBlock) => blocks.event(e));
  let usage: Usage = {};
  return wholeCharacters({
    event(e: ModelEvent) {
      switch (e.type) {
        case "start":
        case "item":
          return;
        case "usage":
          usage = mergeUsage(usage, e.usage);
          return;
        case "finish":
          return page.last(
            { finishReason: ending(e, blocks.held) },
            { usageMetadata: countsTo(usage) },
          );
        default:
          turns.event(e);
      }
    },
    fail: (f: Fault) => page.fail(faultBody(f)),
  });
}
