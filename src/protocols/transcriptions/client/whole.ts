// A host's answer in one piece, as events.
import type { ModelEvent } from "../../../model/event.ts";
import type { HeadersIn } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { finishing, transcriptIn, type Transcript } from "./reading.ts";

export const whole = (
  body: Buffer,
  emit: (event: ModelEvent) => void,
  _of: CallContext | undefined,
  headers: HeadersIn,
): void => spelt(transcriptIn(body, headers), emit);

export function spelt(
  { text, passages, usage, logprobs }: Transcript,
  emit: (event: ModelEvent) => void,
): void {
  emit({ type: "start" });
  emit({ type: "open", index: 0, block: { type: "text" } });
  if (text !== "") emit({ type: "delta", index: 0, text, ...(logprobs && { logprobs }) });
  emit({ type: "close", index: 0 });
  passages.forEach((item, index) => emit({ type: "item", index, item }));
  finishing(emit, usage);
}
