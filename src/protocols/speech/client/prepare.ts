// Applies the dialect in both modes. If a model reports usage only in events, the gateway requests
// events and still sends the client the form that it requested.
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
