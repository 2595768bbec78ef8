// The half of the speech protocol that faces clients.
import type { ModelResponse } from "../../model/event.ts";
import type { SpeechRequest, AudioChunk } from "../../model/operations/audio-requests.ts";
import type { Usage } from "../../model/usage.ts";
import type { Body, JsonObject } from "../../model/values.ts";
import type { ResponseContext, Encoder } from "../../plugin/protocol.ts";
import { asNumber, asObject, omitUndefined, asText } from "../json-values.ts";
import { encodeFault } from "../failure/openai-error.ts";
import { ID, knowsField, STREAM_FORMAT, usageTo, wantsEvents } from "./spec.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";

/** Decodes a client's request into the common form. */
export function decodeRequest(body: Body): SpeechRequest {
  const events = asText(body[STREAM_FORMAT]);
  return omitUndefined({
    operation: "speech" as const,
    model: asText(body["model"]) ?? "",
    // Clients read audio as it arrives, whether or not they request a stream.
    stream: true,
    input: asText(body["input"]) ?? "",
    voice: asText(body["voice"]) ?? asObject(body["voice"]),
    instructions: asText(body["instructions"]),
    format: asText(body["response_format"]),
    speed: asNumber(body["speed"]),
    rest: unknownTopLevelFields(body, (name) => body[name] === null || knowsField(name)),
    ext: events === undefined ? {} : { [ID]: { [STREAM_FORMAT]: events } },
  });
}

/** Encodes a non-streaming response: the content of the stream in one buffer. */
export function encodeResponse(
  { items = [], usage, finish }: ModelResponse,
  to: Pick<ResponseContext, "body" | "id">,
): Buffer {
  const pieces: Buffer[] = [];
  const { writeEvent } = createEncoder((piece) => pieces.push(Buffer.from(piece as string)), to);
  (items as readonly AudioChunk[]).forEach((item, index) =>
    writeEvent({ type: "item", index, item }),
  );
  writeEvent({ type: "usage", usage });
  writeEvent(finish);
  return Buffer.concat(pieces);
}

/**
 * Encodes audio as it arrives, or events if the client requests them. The last piece is held back
 * until usage is settled. Audio without its last piece is incomplete.
 */
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
    // An audio stream cannot express an error. Closing the connection is the only signal.
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
