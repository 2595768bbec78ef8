// Stop sequences beyond those that a format has a field for.
import { fail } from "../model/error.ts";
import type { CallContext } from "../plugin/protocol.ts";

/** Leaves these to the host. */
export function leaveStops(texts: readonly string[], of: Pick<CallContext, "cutAt">): void {
  if (texts.length === 0) return;
  if (of.cutAt) of.cutAt(texts);
  else
    fail("unsupported", "This model's protocol does not support so many stop sequences.", {
      param: "stop",
      code: "unsupported_parameter",
    });
}
