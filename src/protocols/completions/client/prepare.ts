// Adapts an outgoing request to the backend's dialect, in both modes. Usage is requested, and
// fields that the backend rejects are dropped.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { asObject } from "../../json-values.ts";
import type { CompletionDialect } from "../dialect.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: CompletionDialect): void {
  if (!of.stream || dialect.streamUsage === "none") {
    if (out.get("stream_options") !== undefined) out.remove("stream_options");
  } else {
    const streamOptions = asObject(out.get("stream_options"));
    if (streamOptions?.["include_usage"] !== true)
      out.set("stream_options", { ...streamOptions, include_usage: true });
  }
  for (const field of dialect.dropFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null) of.reportLoss(field, "dropped");
  }
}
