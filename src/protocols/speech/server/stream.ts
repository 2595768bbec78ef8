// Sound as it comes, or in events for clients that want those. The last piece waits for the bill: without it the sound is not whole.
import type { Sound } from "../../../model/sound.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { AnswerContext, Encoder } from "../../../plugin/protocol.ts";
import { fault } from "../../responses/server/fault.ts";
import { usageTo } from "../usage.ts";
import { wantsEvents } from "../words.ts";

type Write = (piece: string | Buffer) => void;

export const stream = (write: Write, to: Pick<AnswerContext, "body" | "id">): Encoder =>
  wantsEvents(to.body) ? events(write, to) : plain(write);

function plain(write: Write): Encoder {
  let last: Buffer | undefined;
  return {
    event(event) {
      if (event.type === "item") {
        if (last) write(last);
        last = (event.item as Sound).bytes;
      } else if (event.type === "finish" && last) write(last);
    },
    // Sound has no words for it: the connection is all that can say it.
    fail() {},
  };
}

const written = (said: JsonObject): string => `data: ${JSON.stringify(said)}\n\n`;

function events(write: Write, to: { readonly id: string }): Encoder {
  let usage: Usage = {};
  return {
    event(event) {
      if (event.type === "item") {
        const audio = (event.item as Sound).bytes.toString("base64");
        write(written({ type: "speech.audio.delta", audio }));
      } else if (event.type === "usage") usage = event.usage;
      else if (event.type === "finish")
        write(written({ type: "speech.audio.done", usage: usageTo(usage) }));
    },
    fail: (f) => write(written(fault(f, to).body)),
  };
}
