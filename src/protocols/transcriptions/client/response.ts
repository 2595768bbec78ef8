// Decodes a non-streaming response into events.
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { emitEnd, parseTranscriptBody, type Transcript } from "./parse-response.ts";

export const decodeResponse = (
  body: Buffer,
  emit: (event: ModelEvent) => void,
  _of: CallContext | undefined,
  headers: HeadersIn,
): void => emitTranscript(parseTranscriptBody(body, headers), emit);

export function emitTranscript(
  { text, items, usage, logprobs }: Transcript,
  emit: (event: ModelEvent) => void,
): void {
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  if (text !== "") emit({ type: "delta", index: 0, text, ...(logprobs && { logprobs }) });
  emit({ type: "close", index: 0 });
  items.forEach((item, index) => emit({ type: "item", index, item }));
  emitEnd(emit, usage);
}
