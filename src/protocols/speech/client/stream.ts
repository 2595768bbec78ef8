// Decodes a backend's audio into events, one item per piece.
import { BOUNDS } from "../../../lib/bounds.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { CallContext, Decoder } from "../../../plugin/protocol.ts";
import { createEventDecoder } from "../../sse/index.ts";
import { parseAudioEvent, isEvents, failNoAudio, failTruncated } from "./parse-response.ts";
import { createAudioDetector } from "./audio-detector.ts";

type Emit = (event: ModelEvent) => void;

/**
 * Size of one piece of audio, in bytes. Pieces have a fixed size, so that the output does not
 * depend on how the network split the bytes.
 */
const CHUNK_BYTES = 4096;

export const createDecoder = (
  emit: Emit,
  _of: CallContext | undefined,
  headers: HeadersIn,
): Decoder =>
  isEvents(headers) ? createAudioEventDecoder(emit) : createAudioDecoder(emit, headers);

function createAudioEventDecoder(emit: Emit): Decoder {
  let index = 0;
  let over = false;
  emit({ type: "start" });
  const events = createEventDecoder(
    (_event, data) => {
      if (over || data === "[DONE]") return;
      const { sound, over: usage } = parseAudioEvent(data);
      if (sound !== undefined)
        emit({ type: "item", index: index++, item: { bytes: Buffer.from(sound, "base64") } });
      if (!usage) return;
      if (index === 0) failNoAudio();
      over = true;
      emit({ type: "usage", usage });
      emit({ type: "finish", reason: "stop" });
    },
    { maxLineBytes: BOUNDS.event.max },
  );
  return {
    push: (chunk) => events.push(chunk),
    end() {
      events.end();
      if (!over) failTruncated();
    },
  };
}

/** Decodes raw audio. Only the end of the connection marks the end of the audio. */
function createAudioDecoder(emit: Emit, headers: HeadersIn): Decoder {
  if (/^text\//i.test(headers["content-type"] ?? ""))
    fail("upstream", "The provider returned text instead of audio.", {
      code: "bad_content_type",
    });
  let index = 0;
  let held: Buffer[] = [];
  let size = 0;
  emit({ type: "start" });
  const give = (all: boolean): void => {
    const bytes = Buffer.concat(held);
    let at = 0;
    for (; at + CHUNK_BYTES <= bytes.length || (all && at < bytes.length); at += CHUNK_BYTES)
      emit({ type: "item", index: index++, item: { bytes: bytes.subarray(at, at + CHUNK_BYTES) } });
    held = at < bytes.length ? [bytes.subarray(at)] : [];
    size = Math.max(0, bytes.length - at);
  };
  const sound = createAudioDetector((bytes) => {
    held.push(bytes);
    size += bytes.length;
    if (size >= CHUNK_BYTES) give(false);
  });
  return {
    push: (chunk) => sound.push(chunk),
    end() {
      sound.end();
      give(true);
      if (index === 0) failNoAudio();
      emit({ type: "finish", reason: "stop" });
    },
  };
}
