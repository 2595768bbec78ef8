import type { Fault } from "../../../model/error.ts";
import type { OpenBlock } from "../../../model/event.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { joinSurrogatePairs } from "../../surrogate-pairs.ts";
import { BlockSequencer, type IndexedEvent } from "../../block-sequencer.ts";
import { usageTo } from "../usage.ts";
import { isObject } from "../../json-values.ts";
import { formatFinish, namesOf } from "./content.ts";
import { encodeFault as refusal } from "./fault.ts";
import { MessageWriter, createBlockWriter, type BlockWriter } from "./block-writers.ts";

/**
 * Encodes a response as a stream. This protocol's order is strict: one `message_start`, blocks one
 * after another with rising indexes, `message_delta`, and `message_stop`. Each event has an
 * `event:` line. If several blocks are open, the first is written as it arrives and the others
 * after it has closed.
 */
export function createEncoder(write: (text: string) => void, to: ResponseContext): Encoder {
  const page = new MessageWriter(write, to);
  const named = namesOf(to);
  let block: BlockWriter | undefined;
  let saidIn: OpenBlock["type"] | undefined;
  const held = { hasCalls: false, hasRefusal: false };

  const turns = new BlockSequencer((e: IndexedEvent): void => {
    switch (e.type) {
      case "open":
        saidIn = e.block.type;
        held.hasCalls ||= saidIn === "call" || isCall(e.block);
        block = createBlockWriter(e.block, page, named, to);
        return;
      case "delta":
        held.hasRefusal ||= saidIn === "refusal" && e.text !== "";
        return block?.delta?.(e.text);
      case "cite":
        return block?.cite?.(e.citation);
      case "proof":
        return block?.proof?.(e.proof);
      case "close":
        block?.close?.();
        block = undefined;
    }
  });

  return joinSurrogatePairs({
    writeEvent(e) {
      switch (e.type) {
        case "start":
          return;
        case "usage":
          page.usage = mergeUsage(page.usage, e.usage);
          return;
        case "finish":
          page.begin();
          page.event("message_delta", {
            delta: formatFinish(e, held),
            usage: cumulative(page.usage),
          });
          return page.event("message_stop", {});
        case "item":
          return;
        default:
          turns.event(e);
      }
    },
    writeFault(f: Fault) {
      write(`event: error\ndata: ${JSON.stringify(refusal(f, to).body)}\n\n`);
    },
  });
}

/** Whether a block is a call to the client's tool in a form that only this protocol has. */
const isCall = (block: OpenBlock): boolean =>
  block.type === "opaque" && isObject(block.raw) && block.raw["type"] === "tool_use";

/**
 * Returns the usage for `message_delta`, which contains counts but no service tier, speed, or
 * region.
 */
const cumulative = (usage: Usage): JsonObject => {
  const {
    service_tier: _tier,
    speed: _speed,
    inference_geo: _geo,
    ...counts
  } = usageTo(usage) as {
    [name: string]: Json;
  };
  return counts;
};
