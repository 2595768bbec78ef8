import type { Fault } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";
import { BlockSequencer, type IndexedEvent } from "../../block-sequencer.ts";
import { BlockWriter } from "./block-writer.ts";
import { ChunkWriter } from "./chunk-writer.ts";
import { countsTo, formatFinish } from "./content.ts";
import { faultBody } from "./fault.ts";

/**
 * Creates an encoder for a stream of chunks without names. Each chunk is a response that contains
 * only the new part. The last one also contains the finish reason and the usage.
 */
export function createEncoder(write: (text: string) => void, to: ResponseContext): Encoder {
  const page = new ChunkWriter(write, to);
  const blocks = new BlockWriter(page, to);
  const turns = new BlockSequencer((e: IndexedEvent) => blocks.event(e));
  let usage: Usage = {};
  return joinSurrogatePairs({
    writeEvent(e: ModelEvent) {
      switch (e.type) {
        case "start":
        case "item":
          return;
        case "usage":
          usage = mergeUsage(usage, e.usage);
          return;
        case "finish":
          return page.end(
            { finishReason: formatFinish(e, blocks.flaws) },
            { usageMetadata: countsTo(usage) },
          );
        default:
          turns.event(e);
      }
    },
    writeFault: (f: Fault) => page.fail(faultBody(f)),
  });
}
