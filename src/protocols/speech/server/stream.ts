// Encodes audio as it arrives, or events if the client requests them. The last piece is held back
// until usage is settled. Without it the audio is incomplete.
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
    // An audio stream cannot express an error. Only closing the connection signals it.
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
