// The dialect, on both lanes: counts are asked for, and what a host refuses is not sent.
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { object } from "../../json.ts";
import type { CompletionDialect } from "../dialect.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: CompletionDialect): void {
  if (!of.stream || dialect.usage === "none") {
    if (out.get("stream_options") !== undefined) out.drop("stream_options");
  } else {
    const said = object(out.get("stream_options"));
    if (said?.["include_usage"] !== true)
      out.set("stream_options", { ...said, include_usage: true });
  }
  for (const field of dialect.drop ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    if (value !== null) of.lose(field, "dropped");
  }
}
