// Encodes a response as events: text as it is transcribed, then the whole text at the end with the
// usage.
import type { ModelEvent } from "../../../model/event.ts";
import type { TranscriptItem } from "../../../model/operations/audio-requests.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { omitUndefined } from "../../json-values.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { usageTo } from "../usage.ts";
import { formatIn } from "../constants.ts";
import { groupItems, toDiarizedSegment, toTimedSegment, toWord } from "./transcript-items.ts";

export function createEncoder(
  write: (piece: string) => void,
  to: Pick<ResponseContext, "id" | "body">,
): Encoder {
  const pieces: string[] = [];
  const items: TranscriptItem[] = [];
  let segments = 0;
  const segment = formatIn(to.body) === "diarized_json" ? toDiarizedSegment : toTimedSegment;
  let usage: Usage = {};
  const event = (of: JsonObject): void => write(`data: ${JSON.stringify(of)}\n\n`);
  return {
    writeEvent(e: ModelEvent) {
      switch (e.type) {
        case "delta":
          pieces.push(e.text);
          return event(
            omitUndefined({ type: "transcript.text.delta", delta: e.text, logprobs: e.logprobs }),
          );
        case "item": {
          const item = e.item as TranscriptItem;
          if (item.type === "segment") return event(segment(item, segments++));
          return void items.push(item);
        }
        case "usage":
          usage = e.usage;
          return undefined;
        case "finish": {
          const { summary, words } = groupItems(items);
          return event(
            omitUndefined({
              type: "transcript.text.done",
              text: pieces.join(""),
              ...summary,
              ...(words.length > 0 && { words: words.map(toWord) }),
              usage: usageTo(usage),
            }),
          );
        }
        default:
          return undefined;
      }
    },
    writeFault: (f) => event(encodeFault(f, to).body),
  };
}
