// Encodes a non-streaming response: the content of the stream in one buffer.
import type { ModelResponse } from "../../../model/event.ts";
import type { AudioChunk } from "../../../model/operations/audio-requests.ts";
import type { ResponseContext } from "../../../plugin/protocol.ts";
import { createEncoder } from "./stream.ts";

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
