// Sound as it comes, or in events for clients that want those. The last piece waits for the bill: without it the sound is not whole.
import type { AudioChunk } from "../../../model/operations/audio-requests.ts";
import type { Usage } from "../../../model/usage.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Encoder } from "../../../plugin/protocol.ts";
import { encodeFault } from "../../responses/server/fault.ts";
import { usageTo } from "../usage.ts";
import { wantsEvents } from "../constants.ts";

type Write = (piece: string | Buffer) => void;

export const createEncoder = (write: Write, to: Pick<ResponseContext, "body" | "id">): Encoder =>
  wantsEvents(to.body) ? createEventEncoder(write, to) : createAudioEncoder(write);

function createAudioEncoder(write: Write): Encoder {
  let last: Buffer | undefined;
  return {
    writeEvent(event) {
      if (event.type === "item") {
        if (last) write(last);
        last = (event.item as AudioChunk).bytes;
      } else if (event.type === "finish" && last) write(last);
    },
    // Sound has no words for it: the connection is all that can say it.
    writeFault() {},
  };
}

const written = (event: JsonObject): string => `data: ${JSON.stringify(event)}\n\n`;

function createEventEncoder(write: Write, to: { readonly id: string }): Encoder {
  let usage: Usage = {};
  return {
    writeEvent(event) {
      if (event.type === "item") {
        const audio = (event.item as AudioChunk).bytes.toString("base64");
        write(written({ type: "speech.audio.delta", audio }));
      } else if (event.type === "usage") usage = event.usage;
      else if (event.type === "finish")
        write(written({ type: "speech.audio.done", usage: usageTo(usage) }));
    },
    writeFault: (f) => write(written(encodeFault(f, to).body)),
  };
}
