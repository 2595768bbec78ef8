// An answer in events: words as they are heard, and all of them once more at the end, with the counts.
import type { ModelEvent } from "../../../model/event.ts";
import type { Passage } from "../../../model/sound.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { present } from "../../json.ts";
import { fault } from "../../responses/server/fault.ts";
import { usageTo } from "../usage.ts";
import { formatIn } from "../words.ts";
import { passagesIn, spoken, timed, worded } from "./passages.ts";

export function stream(
  write: (piece: string) => void,
  to: Pick<AnswerContext, "id" | "body">,
): Encoder {
  const said: string[] = [];
  const items: Passage[] = [];
  let segments = 0;
  const segment = formatIn(to.body) === "diarized_json" ? spoken : timed;
  let usage: Usage = {};
  const event = (of: JsonObject): void => write(`data: ${JSON.stringify(of)}\n\n`);
  return {
    event(e: ModelEvent) {
      switch (e.type) {
        case "delta":
          said.push(e.text);
          return event(
            present({ type: "transcript.text.delta", delta: e.text, logprobs: e.logprobs }),
          );
        case "item": {
          const item = e.item as Passage;
          if (item.type === "segment") return event(segment(item, segments++));
          return void items.push(item);
        }
        case "usage":
          usage = e.usage;
          return undefined;
        case "finish": {
          const { about, words } = passagesIn(items);
          return event(
            present({
              type: "transcript.text.done",
              text: said.join(""),
              ...about,
              ...(words.length > 0 && { words: words.map(worded) }),
              usage: usageTo(usage),
            }),
          );
        }
        default:
          return undefined;
      }
    },
    fail: (f) => event(fault(f, to).body),
  };
}
