import type { Fault } from "../../../model/error.ts";
import type { OpenBlock } from "../../../model/event.ts";
import { mergeUsage, type Usage } from "../../../model/usage.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { wholeCharacters } from "../../characters.ts";
import { InTurn, type EventOfBlock } from "../../in-turn.ts";
import { usageTo } from "../usage.ts";
import { isObject } from "../../json.ts";
import { ending, namesOf } from "./content.ts";
import { fault as refusal } from "./fault.ts";
import { MessageWriter } from "./message-writer.ts";
import { writer, type Writer } from "./block-writers.ts";

/**
 * This wire's grammar is strict: one `message_start`, blocks one after the other with rising indexes, `message_delta`,
 * `message_stop`, each event under its `event:` line. Blocks that are open together are written one by one: the first
 * as it comes, the others when it has closed.
 */
export function stream(write: (text: string) => void, to: AnswerContext): Encoder {
  const page = new MessageWriter(write, to);
  const named = namesOf(to);
  let block: Writer | undefined;
  let saidIn: OpenBlock["type"] | undefined;
  const held = { calls: false, refused: false };

  const turns = new InTurn((e: EventOfBlock): void => {
    switch (e.type) {
      case "open":
        saidIn = e.block.type;
        held.calls ||= saidIn === "call" || isCall(e.block);
        block = writer(e.block, page, named, to);
        return;
      case "delta":
        held.refused ||= saidIn === "refusal" && e.text !== "";
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

  return wholeCharacters({
    event(e) {
      switch (e.type) {
        case "start":
          return;
        case "usage":
          page.usage = mergeUsage(page.usage, e.usage);
          return;
        case "finish":
          page.begin();
          page.event("message_delta", { delta: ending(e, held), usage: cumulative(page.usage) });
          return page.event("message_stop", {});
        case "item":
          return;
        default:
          turns.event(e);
      }
    },
    fail(f: Fault) {
      write(`event: error\ndata: ${JSON.stringify(refusal(f, to).body)}\n\n`);
    },
  });
}

/** A block of this wire's own that is a call to the client's tool, in a form only this wire has. */
const isCall = (block: OpenBlock): boolean =>
  block.type === "opaque" && isObject(block.raw) && block.raw["type"] === "tool_use";

/** `message_delta` tells the counts, not the circumstances. */
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
