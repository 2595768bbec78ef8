// Applies the dialect in both modes. A text-only backend receives no images.
import { fail } from "../../../model/error.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { isObject, asList } from "../../json-values.ts";
import type { ModerationDialect } from "../dialect.ts";

export function prepare(out: Outgoing, of: CallContext, { textOnly }: ModerationDialect): void {
  if (textOnly && asList(out.get("input")).some((one) => isObject(one)))
    fail("unsupported", `${of.model} supports text only.`, {
      param: "input",
      code: "unsupported_input",
    });
}
