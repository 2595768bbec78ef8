// Handles stop sequences that exceed the number that a protocol supports.
import { fail } from "../model/error.ts";
import type { CallContext } from "../plugin/protocol.ts";

/** Leaves these stop sequences to the host. Throws if the host cannot emulate them. */
export function delegateStopSequences(
  texts: readonly string[],
  of: Pick<CallContext, "emulateStopSequences">,
): void {
  if (texts.length === 0) return;
  if (of.emulateStopSequences) of.emulateStopSequences(texts);
  else
    fail("unsupported", "This model's protocol does not support this many stop sequences.", {
      param: "stop",
      code: "unsupported_parameter",
    });
}
