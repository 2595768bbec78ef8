// The dialect, in both modes. A model that counts in events alone is asked for them: the client gets sound all the same.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { matchesGlob } from "../../../lib/glob.ts";
import type { SpeechDialect } from "../dialect.ts";
import { STREAM_FORMAT } from "../constants.ts";

export function prepare(
  out: Outgoing,
  of: CallContext,
  { events, dropFields }: SpeechDialect,
): void {
  if (events) {
    const speaks = events.some((pattern) => matchesGlob(pattern, of.model));
    const asked = out.get(STREAM_FORMAT);
    if (speaks && asked !== "sse") out.set(STREAM_FORMAT, "sse");
    else if (!speaks && asked !== undefined) out.remove(STREAM_FORMAT);
  }
  for (const field of dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null) of.reportLoss(field, "dropped");
  }
}
