// Reasoning that its provider has encrypted is read by the account that made it, and by no other.
import { fail } from "../../../model/error.ts";
import type { CallContext, Outgoing } from "../../../plugin/index.ts";
import { list, object, text } from "../../json.ts";
import { kindOf } from "../item-kind.ts";
import { nameless } from "../state.ts";

/** How a refusal says that another account's was sent. */
const CODES = ["invalid_encrypted_content"];

/** Without it the conversation goes on: the model thinks anew. What was compacted is all that there is of it, and stays. */
function leave(out: Outgoing, of: CallContext): void {
  const kept = list(out.get("input")).filter((raw) => {
    const item = object(raw);
    if (!item || text(item["encrypted_content"]) === undefined) return true;
    if (kindOf(item) === "reasoning") return false;
    return fail("unsupported", "A compacted conversation is read by the account that made it.", {
      code: "bound_to_account",
      param: "input",
    });
  });
  of.lose("input", "dropped", "bound_to_account");
  out.set("input", kept.map(nameless));
}

export const bound = { codes: CODES, leave };
