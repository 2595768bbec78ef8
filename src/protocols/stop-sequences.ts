// Stop sequences beyond those that a format has a field for.
import { fail } from "../model/error.ts";
import type { CallContext } from "../plugin/protocol.ts";

/** Leaves these to the host. */
export function delegateStopSequences(
  texts: readonly string[],
  of: Pick<CallContext, "emulateStopSequences">,
): void {
  if (texts.length === 0) return;
  if (of.emulateStopSequences) of.emulateStopSequences(texts);
  else
    fail("unsupported", "This model's protocol does not support so many stop sequences.", {
      param: "stop",
      code: "unsupported_parameter",
    });
}
