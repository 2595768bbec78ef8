import type { Fault } from "../../../model/error.ts";
import type { Finish, ModelEvent } from "../../../model/event.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { wholeCharacters } from "../../characters.ts";
import { InTurn, type EventOfBlock } from "../../in-turn.ts";
import { BlockWriter } from "./block-writer.ts";
import { ChunkWriter } from "./chunk-writer.ts";
import { countsTo, ending } from "./content.ts";
import { faultBody } from "./fault.ts";

/**
 * A stream of chunks without names, each an answer of its own with the parts that are new. Its end is named in the last one,
 * beside the counts.
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
          return page.last(lastOf(e, blocks), { usageMetadata: countsTo(usage) });
        default:
          turns.event(e);
      }
    },
    fail: (f: Fault) => page.fail(faultBody(f)),
  });
}

/** Without a part: one client forgets a whole turn of its chat for one empty text in it. */
const lastOf = (finish: Finish, { held }: BlockWriter): JsonObject => ({
  content: { parts: [], role: "model" },
  finishReason: ending(finish, held),
  index: 0,
});
